#include "sources.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <span>
#include <thread>

namespace drover::ingest {
namespace {

constexpr std::size_t kSourcesMax = std::numeric_limits<std::uint16_t>::max();
constexpr int kMetadataTimeoutMs = 5'000;
constexpr auto kGatePause = std::chrono::microseconds(20);

}  // namespace

void Gate::close() {
  closed_.store(true);
  while (inside_.load() != 0) std::this_thread::sleep_for(kGatePause);
}

Sources::Sources(const std::vector<Topic>& topics, const std::vector<model::SourcePosition>& positions)
    : counters_(topics.size()) {
  for (const Topic& topic : topics) topic_names_.push_back(topic.mapping.topic);
  const model::LockGuard lock(mutex_);
  for (const model::SourcePosition& position : positions) {
    next_id_ = std::max(next_id_, position.source.value + 1u);
    const auto name = std::find(topic_names_.begin(), topic_names_.end(), position.topic);
    if (name == topic_names_.end()) continue;
    const auto topic = static_cast<std::size_t>(name - topic_names_.begin());
    auto source = std::make_unique<Source>(topic, position.topic, position.partition, position.source);
    source->state.log_time_ms = position.log_time_ms;
    source->next_offset = position.next_offset;
    source->last = position.last;
    source->unproven_offset = position.last.offset.value;
    source->note_done();
    sources_[{topic, position.partition}] = std::move(source);
  }
}

Source* Sources::find(rd_kafka_t* handle, const std::string& topic_name, std::int32_t partition) {
  const auto name = std::find(topic_names_.begin(), topic_names_.end(), topic_name);
  if (name == topic_names_.end()) return nullptr;
  const auto topic = static_cast<std::size_t>(name - topic_names_.begin());
  const model::LockGuard lock(mutex_);
  if (!numbered_) number_all(handle);
  const auto known = sources_.find({topic, partition});
  return known != sources_.end() ? known->second.get() : add(topic, partition);
}

/// A broker that doesn't answer now costs the order of the ids, nothing else.
void Sources::number_all(rd_kafka_t* handle) {
  numbered_ = true;
  const struct rd_kafka_metadata* metadata = nullptr;
  if (rd_kafka_metadata(handle, 0, nullptr, &metadata, kMetadataTimeoutMs) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
  const Holder<const struct rd_kafka_metadata, rd_kafka_metadata_destroy> holder(metadata);
  const std::span<const rd_kafka_metadata_topic> found(metadata->topics, static_cast<std::size_t>(metadata->topic_cnt));
  for (std::size_t topic = 0; topic < topic_names_.size(); ++topic) {
    const auto entry = std::find_if(found.begin(), found.end(), [&](const rd_kafka_metadata_topic& candidate) {
      return candidate.topic == topic_names_[topic];
    });
    if (entry == found.end()) continue;
    for (std::int32_t partition = 0; partition < entry->partition_cnt; ++partition) {
      if (!sources_.contains({topic, partition})) add(topic, partition);
    }
  }
}

Source* Sources::add(std::size_t topic, std::int32_t partition) {
  if (next_id_ > kSourcesMax) return nullptr;
  const model::SourceId id{static_cast<std::uint16_t>(next_id_++)};
  auto source = std::make_unique<Source>(topic, topic_names_[topic], partition, id);
  return sources_.emplace(std::pair{topic, partition}, std::move(source)).first->second.get();
}

bool Sources::renew(Source& source) {
  {
    const model::LockGuard lock(mutex_);
    if (next_id_ > kSourcesMax) return false;
    source.state = {model::SourceId{static_cast<std::uint16_t>(next_id_++)}, 0};
  }
  source.last = {};
  source.next_offset.store(-1, std::memory_order_relaxed);
  source.unproven_offset.store(-1, std::memory_order_relaxed);
  source.note_done();
  renewals.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Sources::count_rejects(std::size_t topic, const Rejects& rejects) {
  for (std::size_t reason = 0; reason < rejects.size(); ++reason) {
    if (rejects[reason] > 0) counters_[topic].rejects[reason].fetch_add(rejects[reason], std::memory_order_relaxed);
  }
}

std::vector<IngestStats::TopicRejects> Sources::rejects() const {
  std::vector<IngestStats::TopicRejects> rejects;
  for (std::size_t topic = 0; topic < topic_names_.size(); ++topic) {
    IngestStats::TopicRejects& entry = rejects.emplace_back();
    entry.topic = topic_names_[topic];
    for (std::size_t reason = 0; reason < entry.by_reason.size(); ++reason) {
      entry.by_reason[reason] = counters_[topic].rejects[reason].load(std::memory_order_relaxed);
    }
  }
  return rejects;
}

std::vector<model::SourcePosition> Sources::positions() const {
  std::vector<model::SourcePosition> positions;
  const model::LockGuard lock(mutex_);
  for (const auto& [key, source] : sources_) {
    if (source->done.next_offset < 0) continue;
    positions.push_back({source->topic_name, source->partition, source->state.source, source->done.next_offset,
                         source->done.log_time_ms, source->done.last});
  }
  return positions;
}

}  // namespace drover::ingest

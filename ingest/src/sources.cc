#include "sources.h"

#include <algorithm>
#include <limits>
#include <span>

namespace drover::ingest {
namespace {

constexpr std::size_t kSourcesMax = std::numeric_limits<std::uint16_t>::max();
constexpr int kMetadataTimeoutMs = 5'000;

}  // namespace

Sources::Sources(const std::vector<Topic>& topics) : counters_(topics.size()) {
  for (const Topic& topic : topics) topic_names_.push_back(topic.mapping.topic);
}

Source* Sources::find(rd_kafka_t* handle, const std::string& topic_name, std::int32_t partition) {
  const auto name = std::find(topic_names_.begin(), topic_names_.end(), topic_name);
  if (name == topic_names_.end()) return nullptr;
  const auto topic = static_cast<std::size_t>(name - topic_names_.begin());
  const model::LockGuard lock(mutex_);
  if (sources_.empty()) number_all(handle);
  const auto known = sources_.find({topic, partition});
  return known != sources_.end() ? known->second.get() : add(topic, partition);
}

/// A broker that doesn't answer now costs the order of the ids, nothing else.
void Sources::number_all(rd_kafka_t* handle) {
  const struct rd_kafka_metadata* metadata = nullptr;
  if (rd_kafka_metadata(handle, 0, nullptr, &metadata, kMetadataTimeoutMs) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
  const Holder<const struct rd_kafka_metadata, rd_kafka_metadata_destroy> holder(metadata);
  const std::span<const rd_kafka_metadata_topic> found(metadata->topics, static_cast<std::size_t>(metadata->topic_cnt));
  for (std::size_t topic = 0; topic < topic_names_.size(); ++topic) {
    const auto entry = std::find_if(found.begin(), found.end(), [&](const rd_kafka_metadata_topic& candidate) {
      return candidate.topic == topic_names_[topic];
    });
    if (entry == found.end()) continue;
    for (std::int32_t partition = 0; partition < entry->partition_cnt; ++partition) add(topic, partition);
  }
}

Source* Sources::add(std::size_t topic, std::int32_t partition) {
  if (sources_.size() >= kSourcesMax) return nullptr;
  const model::SourceId id{static_cast<std::uint16_t>(sources_.size() + 1)};
  auto source = std::make_unique<Source>(topic, topic_names_[topic], partition, id);
  return sources_.emplace(std::pair{topic, partition}, std::move(source)).first->second.get();
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

}  // namespace drover::ingest

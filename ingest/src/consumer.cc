#include "drover/ingest/consumer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <tuple>
#include <utility>

#include "drover/model/clock.h"
#include "group_member.h"
#include "sources.h"

namespace drover::ingest {
namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;
/// Of the time to stop, what leaving the group keeps even if handing over has used up the rest.
constexpr std::int64_t kLeaveMsMin = 500;

class KafkaConsumer : public Consumer {
 public:
  KafkaConsumer(ConsumerOptions options, std::vector<Topic> topics, model::AttributeNames& names, RowSink& sink,
                const std::vector<model::SourcePosition>& positions)
      : options_(std::move(options)),
        topics_(std::move(topics)),
        names_(names),
        sink_(sink),
        sources_(topics_, positions) {}
  ~KafkaConsumer() override { stop(); }

  model::Status open() {
    const GroupMember::Shared shared{options_, topics_, names_, sink_, sources_};
    for (std::uint32_t i = 0; i < options_.handles; ++i) {
      model::Result<std::shared_ptr<GroupMember>> member = GroupMember::open(i, shared);
      if (!member.ok()) return member.status();
      members_.push_back(std::move(*member));
    }
    return {};
  }

  void start() override {
    for (const auto& member : members_) member->start();
  }

  void stop() override {
    if (stopped_) return;
    stopped_ = true;
    const std::int64_t deadline_ns = model::steady_clock_ns() + options_.stop_timeout_ms * kNsPerMs;
    for (const auto& member : members_) member->request_stop(deadline_ns);
    for (const auto& member : members_) member->join();
    leave(std::max(deadline_ns - model::steady_clock_ns(), kLeaveMsMin * kNsPerMs));
  }

  IngestStats stats() const override {
    IngestStats stats;
    stats.group = options_.group;
    if (const auto group = options_.librdkafka.find("group.id"); group != options_.librdkafka.end()) {
      stats.group = group->second;
    }
    stats.rejects = sources_.rejects();
    stats.rebalances = sources_.rebalances.load(std::memory_order_relaxed);
    stats.hand_backs = sources_.hand_backs.load(std::memory_order_relaxed);
    stats.renewals = sources_.renewals.load(std::memory_order_relaxed);
    stats.records_missed = sources_.records_missed.load(std::memory_order_relaxed);
    stats.rows_dropped = sources_.rows_dropped.load(std::memory_order_relaxed);
    if (stopped_) return stats;
    const std::int64_t now_ms = model::system_clock_ms();
    for (const auto& member : members_) {
      member->add_partitions(stats.partitions, now_ms);
      stats.connected |= member->health().connected() && member->has_partitions();
      if (stats.last_error.empty()) stats.last_error = member->health().last_error();
    }
    std::sort(stats.partitions.begin(), stats.partitions.end(), [](const PartitionStats& a, const PartitionStats& b) {
      return std::tie(a.topic, a.partition) < std::tie(b.topic, b.partition);
    });
    return stats;
  }

  void hold() override { sources_.gate.close(); }
  void release() override { sources_.gate.open(); }
  std::vector<model::SourcePosition> positions() const override { return sources_.positions(); }
  void commit(const std::vector<model::SourcePosition>& positions) override {
    for (const auto& member : members_) member->commit(positions);
  }

 private:
  /// The handles end on threads of their own, which own them: where librdkafka hangs (a broker that is gone), they are
  /// left behind rather than waited for, since nothing of ours is used there any more.
  void leave(std::int64_t timeout_ns) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
    std::vector<std::pair<std::thread, std::future<void>>> leaving;
    for (const auto& member : members_) {
      std::promise<void> left;
      std::future<void> has_left = left.get_future();
      leaving.emplace_back(std::thread([member, left = std::move(left)]() mutable {
                             member->leave();
                             left.set_value();
                           }),
                           std::move(has_left));
    }
    for (auto& [thread, has_left] : leaving) {
      if (has_left.wait_until(deadline) == std::future_status::ready) {
        thread.join();
      } else {
        thread.detach();
      }
    }
  }

  const ConsumerOptions options_;
  const std::vector<Topic> topics_;
  model::AttributeNames& names_;
  RowSink& sink_;
  Sources sources_;
  std::vector<std::shared_ptr<GroupMember>> members_;  ///< Shared with the threads of leave().
  std::atomic<bool> stopped_{false};
};

}  // namespace

model::Result<std::unique_ptr<Consumer>> Consumer::open(ConsumerOptions options, std::vector<Topic> topics,
                                                        model::AttributeNames& names, RowSink& sink,
                                                        const std::vector<model::SourcePosition>& positions) {
  auto consumer = std::make_unique<KafkaConsumer>(std::move(options), std::move(topics), names, sink, positions);
  if (model::Status status = consumer->open(); !status.ok()) return status;
  return std::unique_ptr<Consumer>(std::move(consumer));
}

}  // namespace drover::ingest

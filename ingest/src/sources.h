#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drover/ingest/consumer.h"
#include "drover/ingest/decoder.h"
#include "drover/model/sync.h"
#include "rdkafka.h"

namespace drover::ingest {

/// One Kafka partition as this process knows it, whichever group member reads it at the time.
///
/// At most one lane holds it, so its records are handed over by one thread in one order, also while the partition moves
/// from one member of this process to another.
class Source {
 public:
  Source(std::size_t topic_index, std::string name, std::int32_t number, model::SourceId id)
      : topic(topic_index), topic_name(std::move(name)), partition(number), state{id, 0} {}

  const std::size_t topic;  ///< Index in the configuration's order.
  const std::string topic_name;
  const std::int32_t partition;

  /// Whether the caller has become the holder. Acquire pairs with release(): the last holder's work is seen.
  bool try_hold() { return !held_.exchange(true, std::memory_order_acquire); }
  void release() { held_.store(false, std::memory_order_release); }

  SourceState state;       ///< Holder only.
  model::RecordMark last;  ///< Of the record that was read last. Holder only.

  /// Up to where everything has been handed over, and the log time there. Holder only, and, while the consumer is held,
  /// whoever holds it. Negative: nothing yet.
  struct Done {
    std::int64_t next_offset = -1;
    std::int64_t log_time_ms = 0;
    model::RecordMark last;
  };
  Done done;
  /// Holder: nothing that was read is still to be handed over.
  void note_done() { done = {next_offset.load(std::memory_order_relaxed), state.log_time_ms, last}; }

  /// Where a lane begins: at the record that is to be compared, else behind what was read. Negative: at an end of the
  /// log. Any thread; relaxed, as who becomes the holder looks again.
  std::int64_t begin_offset() const {
    const std::int64_t unproven = unproven_offset.load(std::memory_order_relaxed);
    return unproven >= 0 ? unproven : next_offset.load(std::memory_order_relaxed);
  }

  // Written by the holder, a few times a batch; read by anyone. Relaxed: each is a figure of its own.
  std::atomic<std::int64_t> next_offset{-1};
  /// Of `last`, while the log is still to be compared with it: an earlier process has read it. Else -1.
  std::atomic<std::int64_t> unproven_offset{-1};
  std::atomic<std::int64_t> end_offset{-1};  ///< While fetched directly; else -1, and librdkafka knows it.
  std::atomic<std::uint64_t> records{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::int64_t> last_timestamp_ms{-1};
  std::atomic<std::int64_t> last_advance_ms{0};
  std::atomic<bool> paused{false};

 private:
  std::atomic<bool> held_{false};
};

/// Lets a few threads through, each for a moment, until somebody closes it.
///
/// Sequentially consistent: who enters counts itself, then looks whether it is closed; who closes says so, then waits
/// for the count.
class Gate {
 public:
  bool try_enter() {
    inside_.fetch_add(1);
    if (!closed_.load()) return true;
    leave();
    return false;
  }
  void leave() { inside_.fetch_sub(1); }
  /// Returns when nobody is inside.
  void close();
  void open() { closed_.store(false); }

 private:
  std::atomic<std::uint32_t> inside_{0};
  std::atomic<bool> closed_{false};
};

/// What all members of one consumer share: the sources, their ids, and counters by topic.
///
/// Threads: all members from any thread.
class Sources {
 public:
  /// `positions`: of earlier processes. Their sources keep their ids and go on there.
  Sources(const std::vector<Topic>& topics, const std::vector<model::SourcePosition>& positions);

  /// The source of a partition; nullptr if the topic isn't ours, or all ids are given out.
  ///
  /// New ids follow the highest one known and are given in the order of the configuration's topics and their
  /// partitions, as the broker has them at the first call; later partitions get the next ones.
  Source* find(rd_kafka_t* handle, const std::string& topic_name, std::int32_t partition);

  /// The source's topic was made anew: it becomes a new one, nothing of which has been read. False: all ids are given
  /// out. Holder only.
  bool renew(Source& source);

  using Rejects = std::array<std::uint64_t, static_cast<std::size_t>(RejectReason::kCount)>;
  void count_rejects(std::size_t topic, const Rejects& rejects);
  std::vector<IngestStats::TopicRejects> rejects() const;

  /// Of all sources that have handed something over. Requires: the gate is closed.
  std::vector<model::SourcePosition> positions() const;

  Gate gate;  ///< What decodes and hands over goes through here.

  std::atomic<std::uint64_t> rebalances{0};  // Relaxed, as the next one: figures.
  std::atomic<std::uint64_t> rows_dropped{0};
  std::atomic<std::uint64_t> hand_backs{0};
  std::atomic<std::uint64_t> renewals{0};
  std::atomic<std::uint64_t> records_missed{0};

 private:
  void number_all(rd_kafka_t* handle) REQUIRES_LOCK(mutex_);
  Source* add(std::size_t topic, std::int32_t partition) REQUIRES_LOCK(mutex_);

  struct TopicCounters {
    std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(RejectReason::kCount)> rejects{};
  };

  std::vector<std::string> topic_names_;
  std::vector<TopicCounters> counters_;
  mutable model::Mutex mutex_;
  std::uint32_t next_id_ GUARDED_BY(mutex_) = 1;
  bool numbered_ GUARDED_BY(mutex_) = false;
  std::map<std::pair<std::size_t, std::int32_t>, std::unique_ptr<Source>> sources_ GUARDED_BY(mutex_);
};

}  // namespace drover::ingest

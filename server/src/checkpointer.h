#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "drover/ingest/consumer.h"
#include "drover/store/stats.h"
#include "drover/store/store.h"

namespace drover::server {

/// Makes what came from Kafka durable, again and again: holds the consumer, has the store mark a cut, lets the consumer
/// go on, writes the cut, and tells the group how far it came.
///
/// The next one begins an interval after the last one, or, if that took long, after four times as long: so writing
/// takes a fifth of the time at most. Where nothing has changed, nothing is written. If a cut can't be written (a full
/// device), the consumer is held until it can: what is in memory stays bounded, and Kafka keeps the rest.
/// Threads: start(), stop() from one thread; stats() from any.
class Checkpointer {
 public:
  /// `consumer` is null without topics. Both outlive this.
  Checkpointer(store::Store& store, ingest::Consumer* consumer, std::int64_t interval_ms);
  ~Checkpointer();

  void start();
  /// Makes a last checkpoint. Call when nothing more is handed over. kUnavailable: it could not be made; the next start
  /// reads what it lacks from Kafka again.
  model::Status stop();

  store::CheckpointStats stats() const;

 private:
  void run();
  model::Status checkpoint();
  /// Writes the cut, however often it takes; false: stopped before it could be.
  bool write(store::Cut& cut, const std::vector<model::SourcePosition>& positions);
  void look_at_the_room(bool written);
  void fail(const std::string& error);
  bool wait_ms(std::int64_t timeout_ms);

  store::Store& store_;
  ingest::Consumer* const consumer_;
  const std::int64_t interval_ms_;
  std::vector<model::SourcePosition> positions_at_last_;  // the thread's, then stop()'s

  mutable std::mutex mutex_;
  std::condition_variable wakeup_;
  bool stopping_ = false;         // under mutex_
  store::CheckpointStats stats_;  // under mutex_
  std::thread thread_;
};

}  // namespace drover::server

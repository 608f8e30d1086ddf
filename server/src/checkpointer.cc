#include "checkpointer.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "drover/model/clock.h"
#include "drover/model/crash_point.h"

namespace drover::server {
namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;
/// Work in hand is a few batches for each shard: far less.
constexpr std::int64_t kRestTimeoutMs = 10'000;
constexpr std::int64_t kRetryMs = 1'000;
constexpr std::int64_t kDurationFactor = 4;
/// Of the device: less free room than this part of it is worth a warning.
constexpr std::uint64_t kLowRoomPart = 10;

}  // namespace

Checkpointer::Checkpointer(store::Store& store, ingest::Consumer* consumer, std::int64_t interval_ms)
    : store_(store), consumer_(consumer), interval_ms_(interval_ms) {
  stats_.durable = true;
}

Checkpointer::~Checkpointer() {
  (void)stop();
}

void Checkpointer::start() {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "checkpoint");
    run();
  });
}

model::Status Checkpointer::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return {};
    stopping_ = true;
  }
  wakeup_.notify_one();
  if (!thread_.joinable()) return {};
  thread_.join();
  return checkpoint();
}

store::CheckpointStats Checkpointer::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

/// Whether the time is over and nobody asked to stop.
bool Checkpointer::wait_ms(std::int64_t timeout_ms) {
  std::unique_lock lock(mutex_);
  return !wakeup_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] { return stopping_; });
}

void Checkpointer::run() {
  std::int64_t pause_ms = interval_ms_;
  while (wait_ms(pause_ms)) {
    const std::int64_t begin_ns = model::steady_clock_ns();
    const model::Status status = checkpoint();
    if (!status.ok()) fail(status.message());
    const std::int64_t took_ms = (model::steady_clock_ns() - begin_ns) / kNsPerMs;
    pause_ms = std::max(interval_ms_, kDurationFactor * took_ms);
  }
}

void Checkpointer::fail(const std::string& error) {
  const std::lock_guard lock(mutex_);
  ++stats_.failed;
  stats_.error = error;
}

model::Status Checkpointer::checkpoint() {
  const std::int64_t begin_ns = model::steady_clock_ns();
  const std::int64_t begin_ms = model::system_clock_ms();
  if (consumer_ != nullptr) consumer_->hold();
  auto cut = store_.cut(kRestTimeoutMs);
  const std::vector<model::SourcePosition> positions =
      consumer_ != nullptr ? consumer_->positions() : std::vector<model::SourcePosition>{};
  if (consumer_ != nullptr) consumer_->release();
  const std::int64_t hold_ns = model::steady_clock_ns() - begin_ns;
  if (!cut.ok()) return cut.status();
  if ((*cut)->empty() && positions == positions_at_last_) {
    const std::lock_guard lock(mutex_);
    stats_.error.clear();
    return {};
  }
  if (!write(**cut, positions)) {
    return {model::StatusCode::kUnavailable, "it could not be written; the next start reads from Kafka again"};
  }
  model::crash_point("cut.commit");
  if (consumer_ != nullptr) consumer_->commit(positions);
  positions_at_last_ = positions;

  const std::lock_guard lock(mutex_);
  ++stats_.written;
  stats_.last_ms = model::system_clock_ms();
  stats_.last_cut_ms = begin_ms;
  stats_.last_bytes = (*cut)->size_bytes();
  stats_.bytes += stats_.last_bytes;
  stats_.last_hold_ns = hold_ns;
  stats_.hold_ns_sum += hold_ns;
  stats_.last_duration_ns = model::steady_clock_ns() - begin_ns;
  return {};
}

bool Checkpointer::write(store::Cut& cut, const std::vector<model::SourcePosition>& positions) {
  bool held = false;
  bool written = false;
  do {
    const model::Status status = cut.write(positions);
    written = status.ok();
    if (!written) fail("store.directory can't be written, reading Kafka waits until it can: " + status.message());
    look_at_the_room(written);
    if (!written && consumer_ != nullptr && !std::exchange(held, true)) consumer_->hold();
  } while (!written && wait_ms(kRetryMs));
  if (held) consumer_->release();
  return written;
}

void Checkpointer::look_at_the_room(bool written) {
  const store::Store::Room room = store_.room();
  const std::lock_guard lock(mutex_);
  stats_.room_is_low = room.free_bytes < room.total_bytes / kLowRoomPart;
  stats_.free_bytes = room.free_bytes;
  stats_.total_bytes = room.total_bytes;
  if (written) stats_.error.clear();
}

}  // namespace drover::server

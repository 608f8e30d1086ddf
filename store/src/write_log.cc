#include "write_log.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "disk_format.h"
#include "drover/model/crash_point.h"

namespace drover::store {

WriteLog::WriteLog(Disk& disk, const model::AttributeNames& names, std::size_t names_on_disk, std::uint64_t sequence)
    : disk_(disk), names_(names), sequence_(sequence), names_written_(names_on_disk), thread_([this] {
        pthread_setname_np(pthread_self(), "write-log");
        run();
      }) {}

WriteLog::~WriteLog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wakeup_.notify_one();
  thread_.join();
}

void WriteLog::append(std::vector<Entry> entries, Written written) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(entries), std::move(written)});
  }
  wakeup_.notify_one();
}

void WriteLog::run() {
  constexpr auto kRetryPause = std::chrono::seconds(1);
  const auto called = [this] { return stopping_ || !waiting_.empty(); };
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool is_called =
        writable() ? (wakeup_.wait(lock, called), true) : wakeup_.wait_for(lock, kRetryPause, called);
    if (is_called && waiting_.empty()) return;
    const std::vector<Waiting> waiting = std::exchange(waiting_, {});
    lock.unlock();
    write(waiting);
    lock.lock();
  }
}

void WriteLog::write(const std::vector<Waiting>& waiting) {
  DiskBatch batch;
  const std::size_t names = names_.size();  // of all that the entries refer to
  add_names(batch, names_, names_written_, names);
  model::Bytes value;
  for (const Waiting& group : waiting) {
    for (const Entry& entry : group.entries) {
      value.clear();
      append_big_endian(value, entry.table);
      append_bytes(value, entry.partition_key);
      value.append(entry.row);
      batch.put(Family::kLog, log_key(entry.interval, ++sequence_), value);
    }
  }
  model::crash_point("log.write");
  if (!writable()) batch.put(Family::kMeta, kProbeKey, {});
  const model::Status status = disk_.write(batch);
  writable_.store(status.ok(), std::memory_order_relaxed);
  model::crash_point("log.written");
  if (status.ok()) names_written_ = names;
  for (const Waiting& group : waiting) group.written(status);
}

void add_names(DiskBatch& batch, const model::AttributeNames& names, std::size_t from, std::size_t to) {
  for (std::size_t id = from + 1; id <= to; ++id) {
    const auto number = static_cast<std::uint32_t>(id);
    batch.put(Family::kMeta, numbered_key(kNamePrefix, number), names.name(model::NameId{number}));
  }
}

}  // namespace drover::store

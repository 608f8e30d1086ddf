#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "disk.h"
#include "drover/model/names.h"

namespace drover::store {

/// API writes with their result, made durable by a thread of its own before they are acknowledged. Those that come
/// while the device is busy are written together.
///
/// An entry is needed until a cut contains it: a checkpoint removes those of its interval and earlier ones. An entry
/// that is left behind does no harm, since its version is not above that of what it made.
/// Threads: append() from any.
class WriteLog {
 public:
  /// `names_on_disk`: how many of the names are there; `sequence`: the highest one that stands in the log.
  WriteLog(Disk& disk, const model::AttributeNames& names, std::size_t names_on_disk, std::uint64_t sequence);
  /// Writes what waits.
  ~WriteLog();
  WriteLog(const WriteLog&) = delete;
  WriteLog& operator=(const WriteLog&) = delete;

  struct Entry {
    std::uint32_t table = 0;
    std::uint32_t interval = 0;  ///< In which it was applied (changes.h).
    model::Bytes partition_key;
    model::Bytes row;
  };
  /// `written` is called once with the outcome, from the log's thread, which waits for it.
  using Written = std::function<void(const model::Status&)>;
  void append(std::vector<Entry> entries, Written written);

  /// False from a failure until something could be written again, which the log's thread tries every second: writes are
  /// refused meanwhile, so that memory does not fill with what nobody was promised.
  bool writable() const { return writable_.load(std::memory_order_relaxed); }  // a hint

 private:
  struct Waiting {
    std::vector<Entry> entries;
    Written written;
  };
  void run();
  void write(const std::vector<Waiting>& waiting);

  Disk& disk_;
  const model::AttributeNames& names_;
  std::uint64_t sequence_ = 0;  // log thread only
  std::size_t names_written_;   // log thread only
  std::mutex mutex_;
  std::condition_variable wakeup_;
  std::vector<Waiting> waiting_;  // under mutex_
  bool stopping_ = false;         // under mutex_
  std::atomic<bool> writable_{true};
  std::thread thread_;  // last: it uses all of the above
};

/// Adds the names with ids of (`from`, `to`] to a batch.
void add_names(DiskBatch& batch, const model::AttributeNames& names, std::size_t from, std::size_t to);

}  // namespace drover::store

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace drover::cli {

/// Tells on standard error what a long command is at, as long as it lives: one line, ever anew, on a terminal; anywhere
/// else a line each five seconds.
///
/// Threads: any.
class Progress {
 public:
  /// `doing`: "reading". Items are told of once there are any.
  explicit Progress(std::string doing);
  ~Progress();

  void add(std::uint64_t items) { items_.fetch_add(items, std::memory_order_relaxed); }  // nothing follows from it
  /// Goes on with something else, or further with the same.
  void set(std::string doing, std::uint64_t items);

 private:
  void run();

  const bool terminal_;
  std::atomic<std::uint64_t> items_{0};
  std::mutex mutex_;
  std::condition_variable end_;
  std::string doing_;    // under mutex_
  bool ending_ = false;  // under mutex_
  std::thread thread_;
};

}  // namespace drover::cli

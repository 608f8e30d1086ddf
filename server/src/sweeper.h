#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "drover/store/store.h"

namespace drover::server {

/// Removes what has expired, as long as the server lives: one Store::expire_step() after the other, on a thread of its
/// own that takes a tenth of a core at most. What expires while a round is on its way is met in the next one.
///
/// Threads: start(), stop() from one thread.
class Sweeper {
 public:
  /// The store outlives this.
  explicit Sweeper(store::Store& store) : store_(store) {}
  ~Sweeper() { stop(); }

  void start();
  void stop();

 private:
  void run();

  store::Store& store_;
  std::mutex mutex_;
  std::condition_variable wakeup_;
  bool stopping_ = false;  // under mutex_
  std::thread thread_;
};

}  // namespace drover::server

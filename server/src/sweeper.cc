#include "sweeper.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>

namespace drover::server {
namespace {

using std::chrono::steady_clock;

/// Between two steps, and between two rounds: at least.
constexpr steady_clock::duration kStepPause = std::chrono::milliseconds(1);
constexpr steady_clock::duration kRoundPause = std::chrono::seconds(1);
/// And at least as many times what the step took.
constexpr int kPauseFactor = 9;

}  // namespace

void Sweeper::start() {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "sweeper");
    run();
  });
}

void Sweeper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wakeup_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Sweeper::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const auto begin = steady_clock::now();
    const bool round_is_complete = store_.expire_step();
    const auto took = steady_clock::now() - begin;
    lock.lock();
    wakeup_.wait_for(lock, std::max(kPauseFactor * took, round_is_complete ? kRoundPause : kStepPause),
                     [this] { return stopping_; });
  }
}

}  // namespace drover::server

#include "executor.h"

#include <pthread.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace drover::store {

namespace {

/// oneTBB's threads else carry the name of whoever was the first to need them.
void name_this_worker() {
  thread_local bool named = false;
  if (!std::exchange(named, true)) pthread_setname_np(pthread_self(), "store");
}

}  // namespace

struct Executor::Arena {
  explicit Arena(std::uint32_t workers)
      : limit(tbb::global_control::max_allowed_parallelism, workers + 1), arena(static_cast<int>(workers), 0) {}
  tbb::global_control limit;  // the arena has no thread of its own: all workers are oneTBB's
  tbb::task_arena arena;
};

Executor::Executor(std::uint32_t workers)
    : workers_(workers != 0 ? workers : std::max(1u, std::thread::hardware_concurrency())),
      arena_(std::make_unique<Arena>(workers_)) {}

Executor::~Executor() {
  // Looks again and again instead of being told: a turn's last act may be nothing but its count.
  while (waiting_or_running_.load(std::memory_order_acquire) != 0) {  // pairs with the release in enqueue()
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Executor::enqueue(std::function<void()> turn) {
  auto owned = std::make_unique<std::function<void()>>(std::move(turn));
  // oneTBB hands the turn over, and with it what was written before. ThreadSanitizer can't see into oneTBB's library,
  // so the count says the same once more: this release pairs with the acquire in the task.
  waiting_or_running_.fetch_add(1, std::memory_order_release);
  arena_->arena.enqueue([this, task = owned.release()] {
    name_this_worker();
    static_cast<void>(waiting_or_running_.load(std::memory_order_acquire));
    (*task)();
    delete task;  // what the turn kept alive goes before the executor may
    waiting_or_running_.fetch_sub(1, std::memory_order_release);  // pairs with the destructor
  });
}

}  // namespace drover::store

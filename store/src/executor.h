#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace drover::store {

/// The workers that run shards' turns: a oneTBB arena. Any idle worker takes the next turn.
///
/// Threads: all members from any thread.
class Executor {
 public:
  /// 0: one worker per core.
  explicit Executor(std::uint32_t workers);
  /// Waits until everything that was enqueued has run.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  std::uint32_t workers() const { return workers_; }
  void enqueue(std::function<void()> turn);

 private:
  struct Arena;  // keeps oneTBB out of this header
  std::uint32_t workers_;
  std::unique_ptr<Arena> arena_;
  std::atomic<std::uint64_t> waiting_or_running_{0};
};

}  // namespace drover::store

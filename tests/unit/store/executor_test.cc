#include "executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

namespace drover::store {
namespace {

TEST(Executor, EndsWhenEverythingThatWasEnqueuedHasRun) {
  std::atomic<int> run{0};
  {
    Executor executor(2);
    for (int i = 0; i < 1'000; ++i) {
      executor.enqueue([&, i] {
        if (i % 10 == 0) executor.enqueue([&] { ++run; });
        ++run;
      });
    }
  }
  EXPECT_EQ(run, 1'100);
}

TEST(Executor, AWaitingWorkerDoesNotHoldUpTheOther) {
  std::atomic<bool> released{false};
  Executor executor(2);
  executor.enqueue([&] {
    while (!released.load()) std::this_thread::yield();
  });
  executor.enqueue([&] { released.store(true); });
}

TEST(Executor, LetsGoOfATurnBeforeItEnds) {
  auto kept = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = kept;
  {
    Executor executor(1);
    executor.enqueue([kept = std::move(kept)] {});
  }
  EXPECT_TRUE(watch.expired());
}

TEST(Executor, HasAsManyWorkersAsAskedForAndAtLeastOne) {
  EXPECT_EQ(Executor(3).workers(), 3u);
  EXPECT_GE(Executor(0).workers(), 1u);
}

}  // namespace
}  // namespace drover::store

#include "epoch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace drover::store {
namespace {

void count_one(void* counter) {
  ++*static_cast<int*>(counter);
}

TEST(RetireList, FreesAtOnceWhatNoReaderCanSee) {
  EpochDomain epochs;
  RetireList retired(epochs);
  int freed = 0;
  retired.retire(&freed, count_one);
  EXPECT_EQ(freed, 0);
  retired.collect();
  EXPECT_EQ(freed, 1);
  retired.collect();
  EXPECT_EQ(freed, 1);
}

TEST(RetireList, KeepsWhatAReaderMaySeeUntilItHasLeft) {
  EpochDomain epochs;
  RetireList retired(epochs);
  int freed = 0;
  {
    const EpochDomain::Guard reader(epochs);
    retired.retire(&freed, count_one);
    retired.collect();
    retired.retire(&freed, count_one);
    retired.collect();
    EXPECT_EQ(freed, 0);
  }
  retired.collect();
  EXPECT_EQ(freed, 2);
}

TEST(RetireList, AReaderThatCameLaterHoldsNothingBack) {
  EpochDomain epochs;
  RetireList retired(epochs);
  int freed_early = 0;
  int freed_late = 0;
  std::optional<EpochDomain::Guard> first(std::in_place, epochs);
  retired.retire(&freed_early, count_one);
  retired.collect();
  const EpochDomain::Guard second(epochs);
  retired.retire(&freed_late, count_one);
  first.reset();
  retired.collect();
  EXPECT_EQ(freed_early, 1);
  EXPECT_EQ(freed_late, 0);
}

TEST(RetireList, FreesEverythingWhenItGoes) {
  EpochDomain epochs;
  int freed = 0;
  {
    RetireList retired(epochs);
    const EpochDomain::Guard reader(epochs);
    retired.retire(&freed, count_one);
    retired.collect();
    retired.retire(&freed, count_one);
  }
  EXPECT_EQ(freed, 2);
}

TEST(EpochDomain, OneThreadMayReadManyTimesAtOnce) {
  EpochDomain epochs;
  std::vector<std::unique_ptr<EpochDomain::Guard>> guards;
  for (std::size_t i = 0; i < kReaderSlots; ++i) guards.push_back(std::make_unique<EpochDomain::Guard>(epochs));
  const std::uint64_t begin = epochs.oldest_reader();
  epochs.advance();
  EXPECT_EQ(epochs.oldest_reader(), begin);
  guards.clear();
  EXPECT_EQ(epochs.oldest_reader(), begin + 1);
}

}  // namespace
}  // namespace drover::store

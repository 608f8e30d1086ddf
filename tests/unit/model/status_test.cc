#include "drover/model/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "drover/model/clock.h"

namespace drover::model {
namespace {

TEST(Status, OkCarriesNoMessage) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().message(), "");
  EXPECT_EQ(invalid("too long").code(), StatusCode::kInvalid);
  EXPECT_EQ(invalid("too long").message(), "too long");
}

TEST(Result, HoldsAValueOrTheReasonThatThereIsNone) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(**result, 7);
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 7);
  const Result<int> failed = Status(StatusCode::kNotFound, "no such table");
  EXPECT_FALSE(failed);
  EXPECT_EQ(failed.status().code(), StatusCode::kNotFound);
}

TEST(ResultDeathTest, AnOkStatusIsNoReason) {
  EXPECT_DEATH({ const Result<int> result{Status()}; }, "needs an error");
}

TEST(CheckDeathTest, SaysWhereAndWhat) {
  const int shard = 1;
  EXPECT_DEATH(DROVER_CHECK(shard == 2, "a batch for another shard"),
               "status_test.cc:[0-9]+: check failed: shard == 2 \\(a batch for another shard\\)");
}

TEST(Clock, SteadyClockNeverFalls) {
  const std::int64_t first = steady_clock_ns();
  EXPECT_GE(steady_clock_ns(), first);
  EXPECT_GT(system_clock_ms(), 1'600'000'000'000);
}

}  // namespace
}  // namespace drover::model

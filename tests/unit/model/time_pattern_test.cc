#include "drover/model/time_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace drover::model {
namespace {

using testing::HasSubstr;

std::string text_at(std::string_view format, std::string_view time) {
  return bucket_text(TimePattern::parse(format).value(), parse_time(time).value());
}

std::string formatted(TimeNs time) {
  return format_time(time, TimePrecision::kNanos);
}

TEST(TimePattern, NamesTheBucketInUtc) {
  EXPECT_EQ(text_at("%Y-%m", "2026-06-23T09:00:01Z"), "2026-06");
  EXPECT_EQ(text_at("#%Y%m%dT%H!", "2026-06-23T09:00:01Z"), "#20260623T09!");
  EXPECT_EQ(text_at("%Y-%m-%d", "2026-01-01T00:30:00+01:00"), "2025-12-31");
}

TEST(TimePattern, RefusesWhatIsNoBucketAndSaysWhatIs) {
  EXPECT_THAT(TimePattern::parse("%Y-%B").status().message(), HasSubstr("%B is not known"));
  EXPECT_THAT(TimePattern::parse("%Y-%").status().message(), HasSubstr("%Y, %m, %d and %H"));
  EXPECT_THAT(TimePattern::parse("%m").status().message(), HasSubstr("has %Y too"));
  EXPECT_THAT(TimePattern::parse("%Y-%d").status().message(), HasSubstr("has %m too"));
  EXPECT_THAT(TimePattern::parse("month").status().message(), HasSubstr("%Y-%m"));
}

TEST(TimePattern, BucketsFollowEachOtherWithoutAGap) {
  const TimeNs time = parse_time("2024-02-29T23:30:00Z").value();
  EXPECT_EQ(formatted(bucket_begin(time, TimeSpan::kYear)), "2024-01-01T00:00:00.000000000Z");
  EXPECT_EQ(formatted(bucket_begin(time, TimeSpan::kHour)), "2024-02-29T23:00:00.000000000Z");
  EXPECT_EQ(formatted(bucket_end(time, TimeSpan::kYear)), "2024-12-31T23:59:59.999999999Z");
  EXPECT_EQ(formatted(bucket_end(time, TimeSpan::kMonth)), "2024-02-29T23:59:59.999999999Z");
  EXPECT_EQ(formatted(bucket_end(time, TimeSpan::kDay)), "2024-02-29T23:59:59.999999999Z");
  EXPECT_EQ(formatted(bucket_end(time, TimeSpan::kHour)), "2024-02-29T23:59:59.999999999Z");
  EXPECT_EQ(formatted(bucket_end(parse_time("2024-01-31T00:00:00Z").value(), TimeSpan::kMonth)),
            "2024-01-31T23:59:59.999999999Z");
}

TEST(TimePattern, APeriodIsWhatWasWrittenOfATime) {
  const auto ends = [](std::string_view text) {
    const auto period = parse_period(text);
    return period ? formatted(period->begin) + " " + formatted(period->end) : "none";
  };
  EXPECT_EQ(ends("2026"), "2026-01-01T00:00:00.000000000Z 2026-12-31T23:59:59.999999999Z");
  EXPECT_EQ(ends("2026-04"), "2026-04-01T00:00:00.000000000Z 2026-04-30T23:59:59.999999999Z");
  EXPECT_EQ(ends("2026-04-30"), "2026-04-30T00:00:00.000000000Z 2026-04-30T23:59:59.999999999Z");
  EXPECT_EQ(ends("2026-04-30T09"), "2026-04-30T09:00:00.000000000Z 2026-04-30T09:59:59.999999999Z");
  EXPECT_EQ(ends("2026-04-30T09:01:02Z"), "2026-04-30T09:01:02.000000000Z 2026-04-30T09:01:02.000000000Z");
  for (const char* text : {"", "April", "2026-13", "2026-04-31", "26", "2026/04"}) EXPECT_EQ(ends(text), "none");
}

}  // namespace
}  // namespace drover::model

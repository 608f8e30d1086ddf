#include "drover/model/time.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "random_values.h"

namespace drover::model {
namespace {

constexpr std::uint64_t kSeed = 20260623;
constexpr int kRounds = 20'000;
constexpr std::int64_t kNanosPerSecond = 1'000'000'000;
constexpr std::int64_t kSecondsMin = -9'214'560'000;  // 1678-01-01T00:00:00Z
constexpr std::int64_t kSecondsEnd = 9'214'646'400;   // 2262-01-01T00:00:00Z
constexpr TimePrecision kPrecisions[] = {TimePrecision::kSeconds, TimePrecision::kMillis, TimePrecision::kMicros,
                                         TimePrecision::kNanos};

std::int64_t pow10(int exponent) {
  return exponent == 0 ? 1 : 10 * pow10(exponent - 1);
}

std::int64_t cut(std::int64_t nanos, TimePrecision precision) {
  const std::int64_t step = pow10(9 - static_cast<int>(precision));
  return nanos - ((nanos % step) + step) % step;
}

std::int64_t random_time(Random& random) {
  return pick(random, kSecondsMin, kSecondsEnd - 1) * kNanosPerSecond + pick(random, 0, kNanosPerSecond - 1);
}

std::string zulu(std::string_view text, TimePrecision precision = TimePrecision::kSeconds) {
  const std::optional<TimeNs> time = parse_time(text);
  return time ? format_time(*time, precision) : "nothing";
}

/// Takes what it is asked for off a text, a character at a time; once something is missing, ok() stays false.
class PlainReader {
 public:
  explicit PlainReader(std::string_view text) : rest_(text) {}

  bool next_is(std::string_view choice) const { return !rest_.empty() && choice.find(rest_[0]) != choice.npos; }
  char one_of(std::string_view choice) {
    if (!next_is(choice)) {
      ok_ = false;
      return choice[0];
    }
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  int number(int digits) {
    int value = 0;
    for (int i = 0; i < digits; ++i) value = value * 10 + (one_of(kDigits) - '0');
    return value;
  }
  std::string digits() {
    std::string digits(1, one_of(kDigits));
    while (next_is(kDigits)) digits.push_back(one_of(kDigits));
    return digits;
  }
  bool ended() const { return rest_.empty(); }
  bool ok() const { return ok_; }

 private:
  static constexpr std::string_view kDigits = "0123456789";
  std::string_view rest_;
  bool ok_ = true;
};

/// The naive model of parse_time(): one character after the other, and the standard library's calendar.
std::optional<TimeNs> parse_naively(std::string_view text) {
  PlainReader in(text);
  const int year = in.number(4);
  in.one_of("-");
  const auto month = static_cast<unsigned>(in.number(2));
  in.one_of("-");
  const auto day = static_cast<unsigned>(in.number(2));
  in.one_of("Tt ");
  const int hour = in.number(2);
  in.one_of(":");
  const int minute = in.number(2);
  in.one_of(":");
  const int second = in.number(2);
  std::string fraction;
  if (in.next_is(".,")) {
    in.one_of(".,");
    fraction = in.digits();
  }
  const char zone = in.one_of("Zz+-");
  int zone_hours = 0;
  int zone_minutes = 0;
  if (zone == '+' || zone == '-') {
    zone_hours = in.number(2);
    if (!in.ended()) {
      if (in.next_is(":")) in.one_of(":");
      zone_minutes = in.number(2);
    }
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  const bool real = date.ok() && hour < 24 && minute < 60 && second <= 60 && zone_hours < 24 && zone_minutes < 60;
  if (!in.ok() || !in.ended() || !real) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const int offset = (zone_hours * 60 + zone_minutes) * 60;
  const int second_of_day = hour * 3600 + minute * 60 + second + (zone == '-' ? offset : -offset);
  const std::int64_t seconds = days * 86'400 + second_of_day;
  if (seconds < kSecondsMin || seconds >= kSecondsEnd) return std::nullopt;
  return TimeNs{seconds * kNanosPerSecond + std::stoll((fraction + "000000000").substr(0, 9))};
}

/// The naive model of format_time().
std::string format_naively(std::int64_t nanos, TimePrecision precision) {
  const auto since_1970 = std::chrono::nanoseconds(nanos);
  const auto days = std::chrono::floor<std::chrono::days>(since_1970);
  const std::chrono::year_month_day date{std::chrono::sys_days(days)};
  const std::chrono::hh_mm_ss time(std::chrono::floor<std::chrono::seconds>(since_1970) - days);
  const std::int64_t fraction = (since_1970 - std::chrono::floor<std::chrono::seconds>(since_1970)).count();
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%09d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()), static_cast<int>(fraction));
  const auto digits = static_cast<std::size_t>(precision);
  return std::string(text).substr(0, digits == 0 ? 19 : 20 + digits) + "Z";
}

TEST(Time, OneInstantHasOneText) {
  EXPECT_EQ(zulu("2026-06-23T09:00:01Z"), "2026-06-23T09:00:01Z");
  EXPECT_EQ(zulu("2026-06-23t09:00:01z"), "2026-06-23T09:00:01Z");
  EXPECT_EQ(zulu("2026-06-23 09:00:01+00:00"), "2026-06-23T09:00:01Z");
  EXPECT_EQ(zulu("2026-06-23T10:00:01+01:00"), "2026-06-23T09:00:01Z");
  EXPECT_EQ(zulu("2026-06-23T10:00:01+0100"), "2026-06-23T09:00:01Z");
  EXPECT_EQ(zulu("2026-06-23T10:00:01+01"), "2026-06-23T09:00:01Z");
  EXPECT_EQ(zulu("2026-06-22T23:30:01-09:30"), "2026-06-23T09:00:01Z");
}

TEST(Time, DaylightSavingOffsetsNameTheSameInstant) {
  const std::optional<TimeNs> utc = parse_time("2024-03-31T00:30:00Z");
  ASSERT_TRUE(utc);
  EXPECT_EQ(utc->value, 1'711'845'000 * kNanosPerSecond);
  EXPECT_EQ(parse_time("2024-03-31T01:30:00+01:00"), utc);
  EXPECT_EQ(parse_time("2024-03-31T00:30:00.000+0000"), utc);
  EXPECT_EQ(parse_time("2024-03-31T02:30:00+02:00"), utc);
  EXPECT_EQ(parse_time("2024-03-30T20:30:00-04:00"), utc);
}

TEST(Time, FractionsOfAnyLengthAreCutAtNanoseconds) {
  const std::int64_t second = parse_time("2026-06-23T09:00:01Z")->value;
  EXPECT_EQ(parse_time("2026-06-23T09:00:01.5Z")->value, second + 500'000'000);
  EXPECT_EQ(parse_time("2026-06-23T09:00:01,25Z")->value, second + 250'000'000);
  EXPECT_EQ(parse_time("2026-06-23T09:00:01.000000001Z")->value, second + 1);
  EXPECT_EQ(parse_time("2026-06-23T09:00:01.9999999999999999999999Z")->value, second + 999'999'999);
  EXPECT_EQ(parse_time("2026-06-23T09:00:01.0000000009+00:00")->value, second);
}

TEST(Time, WithoutAZoneItIsNoTime) {
  for (const char* text : {"2026-06-23T09:00:01", "2026-06-23T09:00:01.123", "2026-06-23", "2026-06-23T09:00:01 ",
                           "2026-06-23T09:00:01+", "2026-06-23T09:00:01+1", "2026-06-23T09:00:01 Z", ""}) {
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  }
}

TEST(Time, ImpossibleDatesAndTimesAreRefused) {
  for (const char* text :
       {"2026-00-23T09:00:01Z",  "2026-13-23T09:00:01Z",     "2026-06-00T09:00:01Z",      "2026-06-31T09:00:01Z",
        "2026-02-29T09:00:01Z",  "1900-02-29T09:00:01Z",     "2024-02-30T09:00:01Z",      "2026-06-23T24:00:00Z",
        "2026-06-23T09:60:01Z",  "2026-06-23T09:00:61Z",     "2026-06-23T09:00:01+24:00", "2026-06-23T09:00:01+01:60",
        "2026-06-23T09:00:01.Z", "2026-06-23X09:00:01Z",     "2026/06/23T09:00:01Z",      "+2026-06-23T09:00:01Z",
        "2026-06-23T09:00:01ZZ", "2026-06-23T09:00:01+01:0", "2026-06-23T09:00:01+01-00", "20260623T090001Z"}) {
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  }
}

TEST(Time, LeapDaysAndLeapSecondsAreRead) {
  EXPECT_EQ(zulu("2024-02-29T23:59:59Z"), "2024-02-29T23:59:59Z");
  EXPECT_EQ(zulu("2000-02-29T12:00:00Z"), "2000-02-29T12:00:00Z");
  EXPECT_EQ(zulu("2016-12-31T23:59:60Z"), "2017-01-01T00:00:00Z");
  EXPECT_EQ(zulu("2016-12-31T23:59:60.5Z", TimePrecision::kMillis), "2017-01-01T00:00:00.500Z");
}

TEST(Time, YearsEndWhereNanosecondsDo) {
  EXPECT_EQ(zulu("1678-01-01T00:00:00Z"), "1678-01-01T00:00:00Z");
  EXPECT_EQ(zulu("2261-12-31T23:59:59.999999999Z", TimePrecision::kNanos), "2261-12-31T23:59:59.999999999Z");
  for (const char* text : {"1677-12-31T23:59:59Z", "1678-01-01T00:00:00+00:01", "2262-01-01T00:00:00Z",
                           "2261-12-31T23:59:59-00:01", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z"}) {
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  }
}

TEST(Time, FormatIsTheCalendarsAndComesBack) {
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t nanos = random_time(random);
    for (const TimePrecision precision : kPrecisions) {
      const std::string text = format_time(TimeNs{nanos}, precision);
      ASSERT_EQ(text, format_naively(nanos, precision)) << nanos;
      ASSERT_TRUE(is_canonical_time(text, precision)) << text;
      ASSERT_EQ(parse_time(text), TimeNs{cut(nanos, precision)}) << text;
    }
  }
}

TEST(Time, EveryDayOfFourCenturiesIsTheCalendars) {
  for (std::int64_t seconds = kSecondsMin; seconds < kSecondsEnd; seconds += 86'400) {
    const std::int64_t nanos = seconds * kNanosPerSecond;
    const std::string text = format_time(TimeNs{nanos}, TimePrecision::kSeconds);
    ASSERT_EQ(text, format_naively(nanos, TimePrecision::kSeconds));
    ASSERT_EQ(parse_time(text), TimeNs{nanos});
  }
}

TEST(Time, TheWholeRangeOfTheTypeCanBeFormatted) {
  EXPECT_EQ(format_time(TimeNs{std::numeric_limits<std::int64_t>::min()}, TimePrecision::kNanos),
            "1677-09-21T00:12:43.145224192Z");
  EXPECT_EQ(format_time(TimeNs{std::numeric_limits<std::int64_t>::max()}, TimePrecision::kNanos),
            "2262-04-11T23:47:16.854775807Z");
}

TEST(Time, TextOrderIsTimeOrder) {
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  for (int round = 0; round < kRounds; ++round) {
    const TimeNs a{random_time(random)};
    const TimeNs b{pick(random, 0, 1) == 0 ? random_time(random) : a.value + pick(random, -2'000'000, 0)};
    ASSERT_EQ(format_time(a, TimePrecision::kNanos) < format_time(b, TimePrecision::kNanos), a < b);
  }
}

// Goal: the eight-bytes-at-a-time checks let through exactly what a plain reading of the grammar does.
// Method: good texts of all forms with one byte replaced, dropped or doubled, against PlainReader.
TEST(Time, DamagedTextsAreReadAsAPlainReaderReadsThem) {
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  static constexpr char kBytes[] = "0123456789-+:.,TtZz /;@\x7f\x80\xff";
  const std::vector<std::string> zones{"Z", "+01:00", "-0930", "+05", "z"};
  int readable = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string text = format_time(TimeNs{random_time(random)}, kPrecisions[pick(random, 0, 3)]);
    text.pop_back();
    text += zones[static_cast<std::size_t>(pick(random, 0, 4))];
    const auto at = static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(text.size()) - 1));
    const std::int64_t damage = pick(random, 0, 9);
    if (damage == 0) {
      text.erase(at, 1);
    } else if (damage == 1) {
      text.insert(at, 1, text[at]);
    } else {
      text[at] = kBytes[pick(random, 0, sizeof kBytes - 2)];
    }
    const std::optional<TimeNs> time = parse_time(text);
    ASSERT_EQ(time, parse_naively(text)) << text;
    readable += time ? 1 : 0;
    for (const TimePrecision precision : kPrecisions) {
      ASSERT_EQ(is_canonical_time(text, precision), time && format_time(*time, precision) == text) << text;
    }
  }
  EXPECT_GT(readable, kRounds / 10);
  EXPECT_LT(readable, kRounds);
}

TEST(Time, CanonicalTextHasTheTablesPrecision) {
  EXPECT_TRUE(is_canonical_time("2026-06-23T09:00:01Z", TimePrecision::kSeconds));
  EXPECT_FALSE(is_canonical_time("2026-06-23T09:00:01Z", TimePrecision::kMillis));
  EXPECT_TRUE(is_canonical_time("2026-06-23T09:00:01.000Z", TimePrecision::kMillis));
  EXPECT_FALSE(is_canonical_time("2026-06-23T09:00:01.000Z", TimePrecision::kMicros));
  EXPECT_FALSE(is_canonical_time("2026-06-23t09:00:01.000Z", TimePrecision::kMillis));
  EXPECT_FALSE(is_canonical_time("2026-06-23T09:00:60.000Z", TimePrecision::kMillis));
  EXPECT_FALSE(is_canonical_time("2026-02-29T09:00:01.000Z", TimePrecision::kMillis));
  EXPECT_FALSE(is_canonical_time("", TimePrecision::kMillis));
}

TEST(Time, NumbersOfEveryUnitAreTheSameInstant) {
  const TimeNs time = *parse_time("2026-06-23T09:00:01.5Z");
  EXPECT_EQ(time_of_number(17'822'052'015, -1, TimeUnit::kSeconds), time);
  EXPECT_EQ(time_of_number(1'782'205'201'500, 0, TimeUnit::kMillis), time);
  EXPECT_EQ(time_of_number(17'822'052'015, 5, TimeUnit::kMicros), time);
  EXPECT_EQ(time_of_number(1'782'205'201'500'000'000, 0, TimeUnit::kNanos), time);
  EXPECT_EQ(time_of_number(0, 2'000'000'000, TimeUnit::kSeconds), TimeNs{0});
}

TEST(Time, NumbersAreCutTowardsThePastAtNanoseconds) {
  EXPECT_EQ(time_of_number(19, -1, TimeUnit::kNanos), TimeNs{1});
  EXPECT_EQ(time_of_number(-11, -1, TimeUnit::kNanos), TimeNs{-2});
  EXPECT_EQ(time_of_number(-1, -400, TimeUnit::kSeconds), TimeNs{-1});
  EXPECT_EQ(time_of_number(1, std::numeric_limits<std::int32_t>::min(), TimeUnit::kSeconds), TimeNs{0});
}

TEST(Time, NumbersOutOfRangeGiveNothing) {
  EXPECT_EQ(time_of_number(1'782'205'201'500, 0, TimeUnit::kSeconds), std::nullopt);
  EXPECT_EQ(time_of_number(kSecondsEnd, 0, TimeUnit::kSeconds), std::nullopt);
  EXPECT_EQ(time_of_number(kSecondsMin - 1, 0, TimeUnit::kSeconds), std::nullopt);
  EXPECT_EQ(time_of_number(1, 400, TimeUnit::kNanos), std::nullopt);
  EXPECT_EQ(time_of_number(std::numeric_limits<std::int64_t>::max(), 0, TimeUnit::kNanos), std::nullopt);
  EXPECT_EQ(time_of_number(kSecondsEnd - 1, 0, TimeUnit::kSeconds), TimeNs{(kSecondsEnd - 1) * kNanosPerSecond});
  EXPECT_EQ(time_of_number(kSecondsMin, 0, TimeUnit::kSeconds), TimeNs{kSecondsMin * kNanosPerSecond});
}

}  // namespace
}  // namespace drover::model

#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drover/model/status.h"
#include "drover/model/time.h"

/// Text that names a bucket of time, such as the month in `VEH#V-7741#2026-06`.
namespace drover::model {

/// How long a bucket is.
enum class TimeSpan : std::uint8_t { kYear, kMonth, kDay, kHour };

/// Two digits of a text that are two of a time's canonical text.
struct TimeDigits {
  std::uint16_t to = 0;
  std::uint8_t from = 0;
  friend bool operator==(const TimeDigits&, const TimeDigits&) = default;
};

struct TimePattern {
  std::string text;  ///< With zeros where the time's digits go.
  std::vector<TimeDigits> digits;
  TimeSpan span = TimeSpan::kYear;

  /// Reads `%Y-%m`: %Y, %m, %d and %H, in UTC, and any other text. kInvalid with what is accepted if anything else
  /// stands behind a %, or if the text names no bucket of time: %d without the month and the year.
  static Result<TimePattern> parse(std::string_view format);
};

/// Puts the digits of a canonical time into their places.
inline void put_digits(char* text, const std::vector<TimeDigits>& digits, std::string_view time) {
  for (const TimeDigits& two : digits) std::memcpy(text + two.to, time.data() + two.from, 2);
}

/// The pattern's text for the bucket that the time is in.
std::string bucket_text(const TimePattern& pattern, TimeNs time);

/// Where the bucket begins that the time is in, and the last nanosecond of it.
TimeNs bucket_begin(TimeNs time, TimeSpan span);
TimeNs bucket_end(TimeNs time, TimeSpan span);

/// A year, month, day or hour as it is written, `2026-06`, or a whole time: when it begins and ends.
struct TimePeriod {
  TimeNs begin;
  TimeNs end;
};
std::optional<TimePeriod> parse_period(std::string_view text);

}  // namespace drover::model

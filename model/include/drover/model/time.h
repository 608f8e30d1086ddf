#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "drover/model/bytes.h"

/// Points in time as sort keys need them: UTC, fixed width, so that text order is time order.
namespace drover::model {

/// Digits of the fraction in canonical text.
enum class TimePrecision : std::uint8_t { kSeconds = 0, kMillis = 3, kMicros = 6, kNanos = 9 };

/// The unit of a time that is given as a number.
enum class TimeUnit : std::uint8_t { kSeconds, kMillis, kMicros, kNanos };

/// Nanoseconds since 1970-01-01T00:00:00Z. Covers the years 1678 to 2261.
struct TimeNs {
  std::int64_t value = 0;
  friend auto operator<=>(const TimeNs&, const TimeNs&) = default;
};

inline constexpr std::size_t kCanonicalTimeSizeBytesMax = 30;  // 2026-06-23T09:00:01.000000000Z

/// Reads ISO 8601 / RFC 3339 text with a zone: `2026-06-23T09:00:01Z`, a fraction of any length (digits past
/// nanoseconds are cut), `+01:00`, `+0000`, `+01`, lower-case t and z, a space instead of the T. Text without a zone,
/// an impossible date and a year outside 1678–2261 give nothing; a leap second :60 is read as the next second.
std::optional<TimeNs> parse_time(std::string_view text);

/// Whether `text` is exactly what format_time() writes at this precision (a real date included).
bool is_canonical_time(std::string_view text, TimePrecision precision);

/// Writes the canonical text (cutting, not rounding) and returns the position behind; room: kCanonicalTimeSizeBytesMax.
char* format_time(char* out, TimeNs time, TimePrecision precision);
std::string format_time(TimeNs time, TimePrecision precision);

/// A number of `unit`s since 1970 as a time, if it is in range. `coefficient` * 10^`exponent` is the number.
std::optional<TimeNs> time_of_number(std::int64_t coefficient, std::int32_t exponent, TimeUnit unit);

}  // namespace drover::model

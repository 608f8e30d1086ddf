#include "drover/model/time.h"

#include <array>
#include <bit>
#include <cstring>

#include "drover/model/digits.h"

namespace drover::model {
namespace {

static_assert(std::endian::native == std::endian::little, "the eight-byte steps below read little-endian words");

constexpr std::int64_t kSecondsPerDay = 86'400;
constexpr std::int64_t kNanosPerSecond = 1'000'000'000;
constexpr std::uint32_t kYearMin = 1678;
constexpr std::uint32_t kYearMax = 2261;

// Days of year 0, March 1st, to 1970, January 1st, in the proleptic Gregorian calendar.
constexpr std::uint32_t kDaysTo1970 = 719'468;

// Calendar arithmetic after Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": years begin in March, so
// that the leap day is the last one. All years here are positive, so that 32 bits without a sign do.
constexpr std::int64_t days_since_1970(std::uint32_t year, std::uint32_t month, std::uint32_t day) {
  year -= month <= 2 ? 1 : 0;
  const std::uint32_t era = year / 400;
  const std::uint32_t year_of_era = year - era * 400;
  const std::uint32_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const std::uint32_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return std::int64_t{era * 146'097 + day_of_era} - kDaysTo1970;
}

constexpr std::int64_t kSecondsMin = days_since_1970(kYearMin, 1, 1) * kSecondsPerDay;
constexpr std::int64_t kSecondsEnd = days_since_1970(kYearMax + 1, 1, 1) * kSecondsPerDay;

constexpr std::array<std::uint8_t, 16> kDaysOfMonth{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

constexpr std::array<std::int64_t, 19> kPowersOfTen = [] {
  std::array<std::int64_t, 19> powers{1};
  for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 10;
  return powers;
}();

struct DateTime {
  std::uint32_t year = 0;
  std::uint32_t month = 0;
  std::uint32_t day = 0;
  std::uint32_t hour = 0;
  std::uint32_t minute = 0;
  std::uint32_t second = 0;
};

constexpr std::size_t kDateTimeSizeBytes = 19;  // 2026-06-23T09:00:01

std::uint64_t load_word(const char* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// A word that has the bytes of `text` in their order.
constexpr std::uint64_t word_of(const char (&text)[9]) {
  std::uint64_t word = 0;
  for (unsigned i = 0; i < 8; ++i) word |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[i])) << (8 * i);
  return word;
}

/// For each byte of a pattern, what makes a wrong one reach 0x80: a '0' stands for any digit (0..9 once the pattern is
/// taken off), anything else for itself (0).
constexpr std::uint64_t word_of_limits(const char (&pattern)[9]) {
  std::uint64_t word = 0;
  for (unsigned i = 0; i < 8; ++i)
    word |= (pattern[i] == '0' ? std::uint64_t{0x80 - 10} : std::uint64_t{0x7f}) << (8 * i);
  return word;
}

/// The two-digit number at byte `at` of a word whose pattern was taken off.
std::uint32_t two_digits(std::uint64_t word, unsigned at) {
  return static_cast<std::uint32_t>((word >> (8 * at) & 0xff) * 10 + (word >> (8 * at + 8) & 0xff));
}

/// Reads kDateTimeSizeBytes bytes whose byte 10 is left to the caller. False: not digits and separators in their
/// places, or no such date, or no such time of day (a second of 60 is let through).
///
/// Eight bytes at a time, with one branch for all checks: this runs once a record.
bool read_date_time(const char* at, DateTime& out) {
  const std::uint64_t date = load_word(at) ^ word_of("0000-00-");
  const std::uint64_t time = load_word(at + 11) ^ word_of("00:00:00");
  const std::uint32_t day_tens = static_cast<unsigned char>(at[8]) ^ std::uint32_t{'0'};
  const std::uint32_t day_ones = static_cast<unsigned char>(at[9]) ^ std::uint32_t{'0'};
  const std::uint64_t wrong =
      (date | (date + word_of_limits("0000-00-")) | time | (time + word_of_limits("00:00:00"))) & 0x8080808080808080u;
  out.year = two_digits(date, 0) * 100 + two_digits(date, 2);
  out.month = two_digits(date, 5);
  out.day = day_tens * 10 + day_ones;
  out.hour = two_digits(time, 0);
  out.minute = two_digits(time, 3);
  out.second = two_digits(time, 6);
  const bool leap = out.year % (out.year % 100 == 0 ? 16 : 4) == 0;  // of the centuries, 400 divides what 16 does
  const bool short_february = (out.month == 2) & !leap;
  return (wrong == 0) & (day_tens < 10) & (day_ones < 10) & (out.month <= 12) & (out.day >= 1) &
         (out.day + (short_february ? 1 : 0) <= kDaysOfMonth[out.month & 15]) & (out.hour < 24) & (out.minute < 60) &
         (out.second <= 60);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Reads digits behind a decimal point up to a non-digit; nanoseconds, further digits cut. False: no digit.
bool read_fraction(const char*& at, const char* end, std::int64_t& nanos) {
  const char* const begin = at;
  for (; at != end && is_digit(*at); ++at) {
    if (at - begin < 9) nanos = nanos * 10 + (*at - '0');
  }
  const std::int64_t digits = at - begin;
  if (digits < 9) nanos *= kPowersOfTen[static_cast<std::size_t>(9 - digits)];
  return digits > 0;
}

bool read_two_digits(const char* at, std::int64_t limit, std::int64_t& value) {
  if (!is_digit(at[0]) || !is_digit(at[1])) return false;
  value = (at[0] - '0') * 10 + (at[1] - '0');
  return value < limit;
}

/// Reads a zone that must end at `end`: Z, z, +hh:mm, +hhmm or +hh. Nothing: no zone.
std::optional<std::int64_t> read_zone_seconds(const char* at, const char* end) {
  const std::int64_t size = end - at;
  if (size == 1 && (*at | 0x20) == 'z') return 0;
  if (size < 3 || (*at != '+' && *at != '-')) return std::nullopt;
  const std::int64_t sign = *at == '-' ? -1 : 1;
  std::int64_t hours = 0;
  std::int64_t minutes = 0;
  if (!read_two_digits(at + 1, 24, hours)) return std::nullopt;
  if (size != 3) {
    if (size != 5 && (size != 6 || at[3] != ':')) return std::nullopt;
    if (!read_two_digits(end - 2, 60, minutes)) return std::nullopt;
  }
  return sign * (hours * 3600 + minutes * 60);
}

char* put_date(char* out, std::int64_t days) {
  const auto shifted = static_cast<std::uint32_t>(days + kDaysTo1970);
  const std::uint32_t era = shifted / 146'097;
  const std::uint32_t day_of_era = shifted - era * 146'097;
  const std::uint32_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const std::uint32_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::uint32_t month_from_march = (5 * day_of_year + 2) / 153;
  const std::uint32_t day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
  const std::uint32_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
  const std::uint32_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  out = put_two_digits(out, year / 100);
  out = put_two_digits(out, year % 100);
  *out++ = '-';
  out = put_two_digits(out, month);
  *out++ = '-';
  return put_two_digits(out, day);
}

char* put_time_of_day(char* out, std::uint32_t seconds) {
  out = put_two_digits(out, seconds / 3600);
  *out++ = ':';
  out = put_two_digits(out, seconds / 60 % 60);
  *out++ = ':';
  return put_two_digits(out, seconds % 60);
}

/// Writes all nine digits; the caller keeps as many as it wants.
void put_nanos(char* out, std::uint32_t nanos) {
  put_two_digits(out, nanos / 10'000'000);
  put_two_digits(out + 2, nanos / 100'000 % 100);
  put_two_digits(out + 4, nanos / 1'000 % 100);
  put_two_digits(out + 6, nanos / 10 % 100);
  out[8] = static_cast<char>('0' + nanos % 10);
}

std::int64_t floor_divide(std::int64_t value, std::int64_t divisor) {
  return value / divisor - (value % divisor < 0 ? 1 : 0);
}

}  // namespace

std::optional<TimeNs> parse_time(std::string_view text) {
  if (text.size() <= kDateTimeSizeBytes) return std::nullopt;
  DateTime given;
  const char separator = text[10];
  const bool separated = (separator | 0x20) == 't' || separator == ' ';
  if (!read_date_time(text.data(), given) || !separated) return std::nullopt;

  const char* at = text.data() + kDateTimeSizeBytes;
  const char* const end = text.data() + text.size();
  std::int64_t nanos = 0;
  if (*at == '.' || *at == ',') {
    if (!read_fraction(++at, end, nanos)) return std::nullopt;
  }
  const std::optional<std::int64_t> zone = read_zone_seconds(at, end);
  if (!zone) return std::nullopt;
  const std::int64_t seconds = days_since_1970(given.year, given.month, given.day) * kSecondsPerDay +
                               (given.hour * 3600 + given.minute * 60 + given.second) - *zone;
  if (seconds < kSecondsMin || seconds >= kSecondsEnd) return std::nullopt;
  return TimeNs{seconds * kNanosPerSecond + nanos};
}

bool is_canonical_time(std::string_view text, TimePrecision precision) {
  const auto digits = static_cast<std::size_t>(precision);
  const std::size_t size = kDateTimeSizeBytes + (digits > 0 ? 1 + digits : 0) + 1;
  if (text.size() != size) return false;
  DateTime given;
  if (!read_date_time(text.data(), given) || text[10] != 'T' || text[size - 1] != 'Z') return false;
  if (given.second > 59 || given.year < kYearMin || given.year > kYearMax) return false;
  if (digits == 0) return true;
  bool right = text[kDateTimeSizeBytes] == '.';
  for (std::size_t i = kDateTimeSizeBytes + 1; i + 1 < size; ++i) right &= is_digit(text[i]);
  return right;
}

char* format_time(char* out, TimeNs time, TimePrecision precision) {
  const std::int64_t seconds = floor_divide(time.value, kNanosPerSecond);
  const std::int64_t days = floor_divide(seconds, kSecondsPerDay);
  out = put_date(out, days);
  *out++ = 'T';
  out = put_time_of_day(out, static_cast<std::uint32_t>(seconds - days * kSecondsPerDay));
  if (const auto digits = static_cast<std::size_t>(precision); digits > 0) {
    *out = '.';
    put_nanos(out + 1, static_cast<std::uint32_t>(time.value - seconds * kNanosPerSecond));
    out += 1 + digits;
  }
  *out++ = 'Z';
  return out;
}

std::string format_time(TimeNs time, TimePrecision precision) {
  char buffer[kCanonicalTimeSizeBytesMax];
  return {buffer, format_time(buffer, time, precision)};
}

std::optional<TimeNs> time_of_number(std::int64_t coefficient, std::int32_t exponent, TimeUnit unit) {
  if (coefficient == 0) return TimeNs{};
  const std::int64_t shift = std::int64_t{exponent} + 9 - 3 * static_cast<std::int64_t>(unit);
  constexpr auto kShiftMax = static_cast<std::int64_t>(kPowersOfTen.size()) - 1;
  std::int64_t nanos = 0;
  if (shift < -kShiftMax) {
    nanos = coefficient < 0 ? -1 : 0;
  } else if (shift < 0) {
    nanos = floor_divide(coefficient, kPowersOfTen[static_cast<std::size_t>(-shift)]);
  } else if (shift > kShiftMax ||
             __builtin_mul_overflow(coefficient, kPowersOfTen[static_cast<std::size_t>(shift)], &nanos)) {
    return std::nullopt;
  }
  const std::int64_t seconds = floor_divide(nanos, kNanosPerSecond);
  if (seconds < kSecondsMin || seconds >= kSecondsEnd) return std::nullopt;
  return TimeNs{nanos};
}

}  // namespace drover::model

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "drover/model/time.h"
#include "swar.h"

namespace drover::ingest {

/// Brings times in UTC text to a table's precision, digit for digit, without computing the time.
///
/// Threads: one at a time.
class TimeText {
 public:
  explicit TimeText(model::TimePrecision precision) : digits_(static_cast<std::size_t>(precision)) {}

  /// Reads `2026-06-23T09:00:01.5Z` (a fraction of up to 9 digits, or none) at `at`, up to and with the Z; returns the
  /// position behind, or nullptr for any other text, good or bad. canonical() is then the time.
  const char* take(const char* at, const char* end);
  std::string_view canonical() const { return {text_, size_}; }

  /// Takes any time. Requires: in TimeNs' range, as all are.
  void set(model::TimeNs time) {
    size_ =
        static_cast<std::size_t>(model::format_time(text_, time, static_cast<model::TimePrecision>(digits_)) - text_);
  }

 private:
  static constexpr std::size_t kDateSizeBytes = 11;      // 2026-06-23T
  static constexpr std::size_t kDateTimeSizeBytes = 19;  // 2026-06-23T09:00:01

  bool is_date(const char* at);

  std::size_t digits_;
  std::size_t size_ = 0;
  std::uint64_t date_begin_ = 0;  ///< The first and the last eight bytes of the last good date.
  std::uint64_t date_end_ = 0;
  char text_[model::kCanonicalTimeSizeBytesMax + 8];
};

namespace detail {

/// Whether eight bytes are 00:00:00 to 23:59:59.
inline bool is_time_of_day(std::uint64_t word) {
  const std::uint64_t value = word ^ 0x30303a30303a3030;                          // "00:00:00"
  const std::uint64_t above = value + (0x7f7f7f7f7f7f7f7f - 0x0905000905000902);  // each byte's bound: 2 9 0 5 9 0 5 9
  const auto hour = (value & 0xff) * 10 + (value >> 8 & 0xff);
  return ((value | above) & kHighBits) == 0 && hour < 24;
}

}  // namespace detail

inline bool TimeText::is_date(const char* at) {
  const auto begin = load<std::uint64_t>(at);
  const auto last = load<std::uint64_t>(at + kDateSizeBytes - 8);
  if (begin == date_begin_ && last == date_end_) return true;
  char midnight[] = "2026-06-23T00:00:00Z";
  std::memcpy(midnight, at, kDateSizeBytes);
  // Centuries that TimeNs covers in part are left to parse_time().
  const bool whole_century = at[0] == '1' ? at[1] >= '7' : at[0] == '2' && at[1] <= '1';
  if (!whole_century || !model::is_canonical_time({midnight, 20}, model::TimePrecision::kSeconds)) return false;
  date_begin_ = begin;
  date_end_ = last;
  return true;
}

inline const char* TimeText::take(const char* at, const char* end) {
  if (end - at <= static_cast<std::ptrdiff_t>(kDateTimeSizeBytes)) return nullptr;
  if (!is_date(at) || !detail::is_time_of_day(load<std::uint64_t>(at + kDateSizeBytes))) return nullptr;
  put_bytes(text_, at, kDateTimeSizeBytes);
  at += kDateTimeSizeBytes;
  char* out = text_ + kDateTimeSizeBytes;
  std::size_t given = 0;
  if (*at == '.') {
    ++at;
    if (digits_ > 0) *out++ = '.';
    for (; at != end && *at >= '0' && *at <= '9'; ++at, ++given) {
      if (given < digits_) *out++ = *at;
    }
    if (given == 0 || given > 9) return nullptr;
  } else if (digits_ > 0) {
    *out++ = '.';
  }
  for (; given < digits_; ++given) *out++ = '0';
  if (at == end || *at != 'Z') return nullptr;
  *out++ = 'Z';
  size_ = static_cast<std::size_t>(out - text_);
  return at + 1;
}

}  // namespace drover::ingest

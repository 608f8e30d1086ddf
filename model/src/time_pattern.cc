#include "drover/model/time_pattern.h"

namespace drover::model {
namespace {

constexpr std::string_view kFirst = "0001-01-01T00:00:00Z";
constexpr std::size_t kHeadSizeBytes[] = {4, 7, 10, 13};  ///< Of 2026-06-23T09, up to each TimeSpan's own digits.
constexpr std::int64_t kHourNs = 3'600'000'000'000;
/// At least a span, and less than two.
constexpr std::int64_t kSpanNs[] = {366 * 24 * kHourNs, 31 * 24 * kHourNs, 24 * kHourNs, kHourNs};

/// The first time of the period that the text names.
std::optional<TimeNs> first_time(std::string_view text) {
  return parse_time(std::string(text) += kFirst.substr(text.size()));
}

}  // namespace

Result<TimePattern> TimePattern::parse(std::string_view format) {
  constexpr std::string_view kLetters = "YmdH";
  TimePattern pattern;
  bool named[kLetters.size()] = {};
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      pattern.text += format[i];
      continue;
    }
    const std::size_t part = ++i < format.size() ? kLetters.find(format[i]) : std::string_view::npos;
    if (part == std::string_view::npos) {
      return invalid("%" + std::string(format.substr(i, 1)) +
                     " is not known in a bucket: %Y, %m, %d and %H are, all in UTC, such as %Y-%m");
    }
    named[part] = true;
    // %Y is twice two digits.
    for (std::size_t from = part == 0 ? 0 : kHeadSizeBytes[part] - 2; from < kHeadSizeBytes[part]; from += 2) {
      pattern.digits.push_back({static_cast<std::uint16_t>(pattern.text.size()), static_cast<std::uint8_t>(from)});
      pattern.text += "00";
    }
  }
  std::size_t parts = 0;
  while (parts < kLetters.size() && named[parts]) ++parts;
  for (std::size_t part = parts; part < kLetters.size(); ++part) {
    if (!named[part]) continue;
    return invalid(std::string("%") + kLetters[part] + " alone comes again and again: a bucket has %" +
                   kLetters[parts] + " too, such as %Y-%m or %Y-%m-%d");
  }
  if (parts == 0) return invalid("a bucket has a year at least, such as %Y-%m");
  pattern.span = static_cast<TimeSpan>(parts - 1);
  return pattern;
}

std::string bucket_text(const TimePattern& pattern, TimeNs time) {
  std::string text = pattern.text;
  put_digits(text.data(), pattern.digits, format_time(time, TimePrecision::kSeconds));
  return text;
}

TimeNs bucket_begin(TimeNs time, TimeSpan span) {
  const std::string text = format_time(time, TimePrecision::kSeconds);
  // Of the first year that TimeNs has, it has a part only.
  return first_time(text.substr(0, kHeadSizeBytes[static_cast<std::size_t>(span)])).value_or(TimeNs{INT64_MIN});
}

TimeNs bucket_end(TimeNs time, TimeSpan span) {
  const std::int64_t ns = kSpanNs[static_cast<std::size_t>(span)];
  const TimeNs begin = bucket_begin(time, span);
  if (begin.value > INT64_MAX - ns) return {INT64_MAX};
  return {bucket_begin({begin.value + ns}, span).value - 1};
}

std::optional<TimePeriod> parse_period(std::string_view text) {
  for (std::size_t span = 0; span < std::size(kHeadSizeBytes); ++span) {
    if (text.size() != kHeadSizeBytes[span]) continue;
    const std::optional<TimeNs> begin = first_time(text);
    if (!begin) return std::nullopt;
    return TimePeriod{*begin, bucket_end(*begin, static_cast<TimeSpan>(span))};
  }
  const std::optional<TimeNs> time = parse_time(text);
  return time ? std::optional(TimePeriod{*time, *time}) : std::nullopt;
}

}  // namespace drover::model

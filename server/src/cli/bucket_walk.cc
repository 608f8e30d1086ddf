#include "bucket_walk.h"

#include <chrono>
#include <optional>
#include <string_view>

namespace drover::cli {
namespace {

/// Where TimeNs begins.
constexpr const char* kFirstYear = "1678";

/// The period that a time in a sort key lies in: TS#2026-06-23T09:00:00Z is in 2026-06-23T09.
std::optional<model::TimePeriod> period_in(std::string_view sort_key) {
  constexpr std::string_view kHour = "2026-06-23T09";
  constexpr std::string_view kDay = "2026-06-23";
  constexpr std::string_view kMonth = "2026-06";
  for (; sort_key.size() >= kMonth.size(); sort_key.remove_prefix(1)) {
    for (const std::string_view form : {kHour, kDay, kMonth}) {
      const auto period =
          sort_key.size() >= form.size() ? model::parse_period(sort_key.substr(0, form.size())) : std::nullopt;
      if (period) return period;
    }
  }
  return std::nullopt;
}

/// What an option, or else a bound of --between, says; `otherwise` if neither is given.
model::Result<model::TimePeriod> period_of(const std::string& option, const std::string& text, const std::string* bound,
                                           model::TimePeriod otherwise) {
  if (!text.empty()) {
    const auto period = model::parse_period(text);
    if (period) return *period;
    return model::invalid(option + " is no time: \"" + text + "\"; write 2026, 2026-01, 2026-01-31 or 2026-01-31T09");
  }
  if (bound == nullptr) return otherwise;
  const auto period = period_in(*bound);
  if (period) return *period;
  return model::invalid("--between's \"" + *bound + "\" has no time that says where the buckets begin and end: give " +
                        option);
}

}  // namespace

model::Result<BucketWalk> BucketWalk::make(std::string_view key, const std::string& since, const std::string& until,
                                           const std::vector<std::string>& between) {
  const std::size_t open = key.find("{%");
  const std::size_t close = key.find('}', open);
  if (close == std::string_view::npos) {
    return model::invalid("a bucket of time stands in braces, such as 'VEH#V-7741#{%Y-%m}'");
  }
  auto pattern = model::TimePattern::parse(key.substr(open + 1, close - open - 1));
  if (!pattern.ok()) return pattern.status();
  BucketWalk walk;
  walk.before_ = key.substr(0, open);
  walk.pattern_ = *pattern;
  walk.behind_ = key.substr(close + 1);
  walk.bounded_ = !since.empty() || !between.empty();

  // Vehicles' clocks may be ahead of ours a little.
  const auto soon = std::chrono::system_clock::now().time_since_epoch() + std::chrono::hours(1);
  const model::TimeNs now{std::chrono::duration_cast<std::chrono::nanoseconds>(soon).count()};
  const auto oldest = period_of("--since", since, between.empty() ? nullptr : &between[0],
                                {*model::parse_time(std::string(kFirstYear) + "-01-01T00:00:00Z"), {}});
  if (!oldest.ok()) return oldest.status();
  const auto newest = period_of("--until", until, between.empty() ? nullptr : &between[1], {now, now});
  if (!newest.ok()) return newest.status();
  walk.since_ = oldest->begin;
  walk.time_ = newest->end;
  return walk;
}

}  // namespace drover::cli

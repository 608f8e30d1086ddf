#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "drover/model/status.h"
#include "drover/model/time_pattern.h"

namespace drover::cli {

/// The partition keys of a vehicle whose readings are kept in buckets of time, from the newest to the oldest.
class BucketWalk {
 public:
  /// Whether a key has a bucket in it: `VEH#V-7741#{%Y-%m}`.
  static bool is_for(std::string_view key) { return key.find("{%") != std::string_view::npos; }

  /// `since` and `until` are periods as parse_period() reads them, or empty: then the times in the two sort keys of
  /// `between` say it, if there are such. kInvalid with what to change.
  static model::Result<BucketWalk> make(std::string_view key, const std::string& since, const std::string& until,
                                        const std::vector<std::string>& between);

  bool at_end() const { return time_ < since_; }
  std::string key() const { return before_ + model::bucket_text(pattern_, time_) + behind_; }
  void next() { time_ = {model::bucket_begin(time_, pattern_.span).value - 1}; }
  /// Whether there is an oldest bucket.
  bool bounded() const { return bounded_; }

 private:
  std::string before_;
  model::TimePattern pattern_;
  std::string behind_;
  model::TimeNs time_;
  model::TimeNs since_;
  bool bounded_ = false;
};

}  // namespace drover::cli

#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "drover/server/pipeline.h"

namespace drover::loadtest {

/// One line about the present state of a running pipeline: rate, lag, shards, the hottest vehicle, the largest
/// collection.
///
/// Threads: one at a time.
class LiveLine {
 public:
  explicit LiveLine(server::Pipeline& pipeline) : pipeline_(pipeline) {}

  /// The rate is that since the call before.
  std::string next();

 private:
  server::Pipeline& pipeline_;
  std::uint64_t records_before_ = 0;
  std::chrono::steady_clock::time_point time_before_{};
};

}  // namespace drover::loadtest

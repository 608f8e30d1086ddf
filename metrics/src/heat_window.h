#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "drover/store/stats.h"

namespace drover::metrics {

/// Makes a heat ratio out of the shards' writer time: the share of a recent window that a shard's writer ran.
///
/// The window begins at the older of two marks, and marks are at least kWindowNs apart: so it is one to two of those
/// long however many scrapers there are and however often they come. Before that it begins with the first scrape.
/// Threads: one at a time.
class HeatWindow {
 public:
  static constexpr std::int64_t kWindowNs = 10'000'000'000;

  /// Takes the counters of a scrape at `now_ns`.
  void advance(const store::StoreStats& stats, std::int64_t now_ns);
  /// 0 (idle) to 1 (its writer never rested). 0 for a shard that the window's beginning didn't have.
  double ratio(const store::SpaceStats& space, const store::ShardStats& shard) const;

 private:
  struct Mark {
    std::int64_t time_ns = 0;
    std::map<std::tuple<std::string, std::string, std::uint16_t>, std::uint64_t> writer_time_ns;
  };
  static Mark mark(const store::StoreStats& stats, std::int64_t now_ns);

  Mark older_;
  Mark newer_;
  std::int64_t now_ns_ = 0;
  bool started_ = false;
};

}  // namespace drover::metrics

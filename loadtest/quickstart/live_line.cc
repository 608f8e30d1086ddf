#include "loadtest/quickstart/live_line.h"

#include <cstdio>

#include "loadtest/quickstart/answers.h"

namespace drover::loadtest {
namespace {

struct Hottest {
  std::string key;
  double share = 0;
};

// Of the first space, which is the table; indexes see the same readings again under other keys.
Hottest hottest_of(const store::SpaceStats& table) {
  Hottest hottest;
  std::uint64_t samples = 0;
  std::uint64_t count = 0;
  for (const store::ShardStats& shard : table.shards) {
    samples += shard.hot_key_samples;
    if (shard.hot_keys.empty() || shard.hot_keys.front().count <= count) continue;
    count = shard.hot_keys.front().count;
    hottest.key = shard.hot_keys.front().partition_key;
  }
  if (samples > 0) hottest.share = static_cast<double>(count) / static_cast<double>(samples);
  return hottest;
}

}  // namespace

std::string LiveLine::next() {
  std::uint64_t records = 0;
  std::int64_t lag = 0;
  for (const ingest::PartitionStats& partition : pipeline_.ingest_stats().partitions) {
    records += partition.records;
    lag += partition.lag_records;
  }
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - time_before_).count();
  const double rate = records < records_before_ ? 0 : static_cast<double>(records - records_before_) / seconds;
  records_before_ = records;
  time_before_ = now;

  const store::StoreStats stats = pipeline_.store().stats();
  std::size_t shards = 0;
  for (const store::SpaceStats& space : stats.spaces) shards += space.shards.size();
  std::string line = with_thousands(static_cast<std::uint64_t>(rate)) + " records/s, lag " +
                     with_thousands(static_cast<std::uint64_t>(lag)) + ", " + std::to_string(shards) + " shards";
  if (stats.spaces.empty()) return line;
  const store::SpaceStats& table = stats.spaces.front();
  const Hottest hottest = hottest_of(table);
  char share[32];
  std::snprintf(share, sizeof share, " (%.0f %%)", hottest.share * 100);
  if (!hottest.key.empty()) line += ", hottest " + hottest.key + share;
  return line + ", largest " + table.largest_collection_key + " with " +
         with_thousands(table.largest_collection_items) + " items";
}

}  // namespace drover::loadtest

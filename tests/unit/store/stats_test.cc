#include "drover/store/stats.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "drover/store/store.h"
#include "tests/support/rows.h"
#include "tests/support/tables.h"

namespace drover::store {
namespace {

using model::SourceId;
using model::Version;
using test::number;
using test::text;

constexpr std::int64_t kDrainMs = 20'000;

class StatsTest : public testing::Test {
 protected:
  StatsTest()
      : store_(Store::open({.workers = 2, .shards_per_table = 4})),
        table_(store_->create_table(test::telemetry_schema({test::depot_index()})).value()) {}

  void readings(const std::string& vehicle, int begin, int end) {
    test::BatchBuilder batch(store_->names());
    for (int n = begin; n < end; ++n) {
      batch.add(vehicle, "TS#" + std::to_string(100'000 + n), {{"depotCode", text("DEP-A")}, {"n", number(n)}},
                Version::of(n, SourceId{1}, 0));
    }
    ASSERT_TRUE(test::feed(*table_, batch.take()));
    ASSERT_TRUE(store_->drain(kDrainMs));
  }

  std::unique_ptr<Store> store_;
  std::shared_ptr<Table> table_;
};

std::uint64_t sum(const std::vector<ShardStats>& shards, std::uint64_t ShardStats::*value) {
  return std::accumulate(shards.begin(), shards.end(), std::uint64_t{0},
                         [&](std::uint64_t total, const ShardStats& shard) { return total + shard.*value; });
}

TEST_F(StatsTest, CollectionsAreCountedInTheirSizeClass) {
  readings("VEH#one", 0, 1);
  readings("VEH#ten", 0, 10);
  readings("VEH#eleven", 0, 11);
  for (int n = 0; n < 150; ++n) readings("VEH#grown", n, n + 1);
  readings("VEH#thousand", 0, 1'000);
  const SpaceStats space = store_->stats().spaces[0];
  EXPECT_EQ(space.collections_by_items, (std::array<std::uint64_t, 9>{1, 1, 1, 2, 0, 0, 0, 0, 0}));
  EXPECT_EQ(std::accumulate(space.collections_by_bytes.begin(), space.collections_by_bytes.end(), std::uint64_t{0}),
            5u);
  EXPECT_EQ(space.collections_by_bytes[0], 3u);
}

TEST_F(StatsTest, ACollectionThatShrinksFallsBackIntoItsClass) {
  readings("VEH#1", 0, 11);
  ASSERT_EQ(store_->stats().spaces[0].collections_by_items[2], 1u);
  ASSERT_TRUE(test::remove(*table_, "VEH#1", "TS#100003").ok());
  EXPECT_EQ(store_->stats().spaces[0].collections_by_items[2], 0u);
  EXPECT_EQ(store_->stats().spaces[0].collections_by_items[1], 1u);
}

TEST_F(StatsTest, TheLargestCollectionIsNamed) {
  for (int n = 0; n < 20; ++n) readings("VEH#" + std::to_string(n), 0, 5 + n);
  const SpaceStats space = store_->stats().spaces[0];
  EXPECT_EQ(space.largest_collection_key, "VEH#19");
  EXPECT_EQ(space.largest_collection_items, 24u);
  EXPECT_GT(space.largest_collection_bytes, 24u * 20);
}

TEST_F(StatsTest, SumsAgreeWithWhatWasFed) {
  for (int n = 0; n < 50; ++n) readings("VEH#" + std::to_string(n), 0, 20);
  readings("VEH#7", 5, 9);    // repeats
  readings("VEH#8", 20, 21);  // one more
  ASSERT_TRUE(test::remove(*table_, "VEH#9", "TS#100003").ok());
  const StoreStats stats = store_->stats();
  EXPECT_EQ(stats.rows_stored, 1'001u);
  EXPECT_EQ(stats.rows_repeated, 4u);
  ASSERT_EQ(stats.spaces.size(), 2u);
  const SpaceStats& base = stats.spaces[0];
  EXPECT_EQ(base.table, "telemetry");
  EXPECT_EQ(base.index, "");
  EXPECT_EQ(sum(base.shards, &ShardStats::items), 1'000u);
  EXPECT_EQ(sum(base.shards, &ShardStats::collections), 50u);
  EXPECT_EQ(sum(base.shards, &ShardStats::items), table_->size("").items);
  EXPECT_EQ(sum(base.shards, &ShardStats::bytes), table_->size("").bytes);
  EXPECT_EQ(sum(base.shards, &ShardStats::queue_depth), 0u);
  std::uint64_t records = 0;
  for (const ShardStats& shard : base.shards) {
    records += shard.heat.records;
    EXPECT_GT(shard.heat.writer_time_ns, 0u);
    EXPECT_GT(shard.heat.batches, 0u);
  }
  EXPECT_EQ(records, 1'006u);  // 1,005 rows and the delete
  const SpaceStats& depot = stats.spaces[1];
  EXPECT_EQ(depot.index, "depot");
  EXPECT_EQ(sum(depot.shards, &ShardStats::items), 1'000u);
  EXPECT_EQ(sum(depot.shards, &ShardStats::items), table_->size("depot").items);
  EXPECT_EQ(depot.largest_collection_key, "DEP-A");
}

TEST_F(StatsTest, LateRowsAreCounted) {
  readings("VEH#1", 10, 20);
  readings("VEH#1", 5, 8);
  readings("VEH#1", 15, 16);  // a repeat is not late
  EXPECT_EQ(store_->stats().rows_late, 3u);
}

TEST_F(StatsTest, ReadsAreCountedAtTheShardThatOwnsTheKey) {
  readings("VEH#1", 0, 30);
  EXPECT_EQ(test::read_items(*table_, store_->names(), "", "VEH#1").size(), 30u);
  EXPECT_EQ(test::read_items(*table_, store_->names(), "depot", "DEP-A").size(), 30u);
  for (const SpaceStats& space : store_->stats().spaces) {
    std::uint64_t reads = 0;
    for (const ShardStats& shard : space.shards) {
      reads += shard.heat.reads;
      EXPECT_EQ(shard.heat.reads > 0, shard.collections > 0);
    }
    EXPECT_EQ(reads, 30u);
  }
}

TEST_F(StatsTest, ShardsCoverTheWholeKeySpace) {
  for (const SpaceStats& space : store_->stats().spaces) {
    std::uint32_t next = 0;
    for (const ShardStats& shard : space.shards) {
      EXPECT_EQ(shard.segment_begin, next);
      next = shard.segment_end;
    }
    EXPECT_EQ(next, model::kSegments);
  }
}

TEST_F(StatsTest, TheHottestKeyIsNamed) {
  // One vehicle in five rows is hot; the rest is spread over 400 others.
  int others = 0;
  for (int round = 0; round < 50; ++round) {
    test::BatchBuilder batch(store_->names());
    for (int n = 0; n < 1'000; ++n) {
      const std::string vehicle = n % 5 == 0 ? "VEH#hot" : "VEH#" + std::to_string(others++ % 400);
      batch.add(vehicle, "TS#" + std::to_string(1'000'000 + round * 1'000 + n), {}, Version::of(round, SourceId{1}, 0));
    }
    ASSERT_TRUE(test::feed(*table_, batch.take()));
  }
  ASSERT_TRUE(store_->drain(kDrainMs));
  const model::KeyHash hash = model::hash_key("VEH#hot");
  const StoreStats stats = store_->stats();
  for (const ShardStats& shard : stats.spaces[0].shards) {
    const std::uint32_t segment = model::segment_of(hash);
    if (segment < shard.segment_begin || segment >= shard.segment_end) continue;
    ASSERT_FALSE(shard.hot_keys.empty());
    EXPECT_EQ(shard.hot_keys[0].partition_key, "VEH#hot");
    EXPECT_GT(shard.hot_keys[0].count - shard.hot_keys[0].error, shard.hot_key_samples / 10);
  }
}

}  // namespace
}  // namespace drover::store

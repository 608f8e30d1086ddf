#include "drover/partitioner/shard_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace drover::partitioner {
namespace {

constexpr std::uint16_t kShardCounts[] = {1, 2, 3, 4, 7, 100, 16'383, 16'384};

TEST(ShardMap, RangesFollowEachOtherAndCoverTheKeySpace) {
  for (const std::uint16_t shards : kShardCounts) {
    const ShardMap map = ShardMap::uniform(shards);
    ASSERT_EQ(map.shards(), shards);
    std::uint32_t covered = 0;
    for (std::uint16_t shard = 0; shard < shards; ++shard) {
      const ShardMap::Range range = map.range(ShardId{shard});
      ASSERT_EQ(range.begin, covered) << shards << " shards, shard " << shard;
      ASSERT_GE(range.end - range.begin, model::kSegments / shards);
      ASSERT_LE(range.end - range.begin, model::kSegments / shards + 1);
      for (std::uint32_t segment = range.begin; segment < range.end; ++segment) {
        ASSERT_EQ(map.owner_of_segment(segment), ShardId{shard});
      }
      covered = range.end;
    }
    EXPECT_EQ(covered, model::kSegments);
  }
}

TEST(ShardMap, TheEndsOfTheHashesHaveOwners) {
  const ShardMap map = ShardMap::uniform(7);
  EXPECT_EQ(map.owner(0), ShardId{0});
  EXPECT_EQ(map.owner(~model::KeyHash{0}), ShardId{6});
}

TEST(ShardMap, AHashIsOwnedByTheShardOfItsSegment) {
  const ShardMap map = ShardMap::uniform(5);
  for (int i = 0; i < 1000; ++i) {
    const model::KeyHash hash = model::hash_key(std::to_string(i));
    const ShardMap::Range range = map.range(map.owner(hash));
    EXPECT_LE(range.begin, model::segment_of(hash));
    EXPECT_LT(model::segment_of(hash), range.end);
  }
}

TEST(ShardMap, ARangeOfAShardThatIsNotThereIsEmpty) {
  const ShardMap::Range range = ShardMap::uniform(2).range(ShardId{2});
  EXPECT_EQ(range.begin, range.end);
}

TEST(ShardMapDeathTest, NeedsAShardAndASegmentForEach) {
  EXPECT_DEATH(ShardMap::uniform(0), "1 to kSegments");
  EXPECT_DEATH(ShardMap::uniform(model::kSegments + 1), "1 to kSegments");
}

TEST(CurrentShardMap, PublishedMapsCountUpAndEarlierOnesStay) {
  CurrentShardMap maps(ShardMap::uniform(2));
  const ShardMap& first = maps.current();
  EXPECT_EQ(first.version(), 1u);
  maps.publish(ShardMap::uniform(4));
  EXPECT_EQ(maps.current().version(), 2u);
  EXPECT_EQ(maps.current().shards(), 4);
  maps.publish(first);
  EXPECT_EQ(maps.current().version(), 3u);
  EXPECT_EQ(first.version(), 1u);
  EXPECT_EQ(first.shards(), 2);
}

// Goal: whoever takes the current map sees a whole one, and never an older one than before.
// Method: one thread publishes maps whose shard count follows from their version; others read owners and compare.
TEST(CurrentShardMap, ReadersSeeWholeMapsOfRisingVersions) {
  constexpr std::uint16_t kMaps = 200;
  CurrentShardMap maps(ShardMap::uniform(1));
  std::atomic<int> mismatches{0};
  {
    std::vector<std::jthread> readers;
    readers.reserve(2);
    for (int i = 0; i < 2; ++i) {
      readers.emplace_back([&] {
        std::uint64_t version = 0;
        while (version < kMaps) {
          const ShardMap& map = maps.current();
          const ShardId last{static_cast<std::uint16_t>(map.shards() - 1)};
          const bool whole = map.shards() == map.version() && map.owner(~model::KeyHash{0}) == last;
          if (!whole || map.version() < version) ++mismatches;
          version = map.version();
        }
      });
    }
    for (std::uint16_t shards = 2; shards <= kMaps; ++shards) maps.publish(ShardMap::uniform(shards));
  }
  EXPECT_EQ(mismatches, 0);
}

}  // namespace
}  // namespace drover::partitioner

#include "drover/partitioner/router.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace drover::partitioner {
namespace {

constexpr std::uint64_t kSeed = 20260623;

std::shared_ptr<const model::RowBatch> batch_of(const std::vector<model::KeyHash>& hashes) {
  auto batch = std::make_shared<model::RowBatch>();
  for (const model::KeyHash hash : hashes) batch->rows.push_back({hash, 0, 0, 0});
  return batch;
}

TEST(Router, KeepsTheOrderAndLosesNothing) {
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  for (const std::uint16_t shards : std::initializer_list<std::uint16_t>{1, 2, 3, 16, 1000}) {
    const ShardMap map = ShardMap::uniform(shards);
    std::vector<model::KeyHash> hashes(random() % 3000);
    for (model::KeyHash& hash : hashes) hash = random();
    const auto batch = batch_of(hashes);

    std::vector<std::vector<std::uint32_t>> expected(shards);
    for (std::uint32_t i = 0; i < hashes.size(); ++i) expected[map.owner(hashes[i]).value].push_back(i);

    std::vector<std::vector<std::uint32_t>> routed(shards);
    for (const RoutedBatch& part : route(batch, map)) {
      EXPECT_EQ(part.rows, batch);
      EXPECT_EQ(part.map_version, map.version());
      EXPECT_FALSE(part.selected.empty());
      EXPECT_TRUE(routed[part.shard.value].empty()) << "two parts for one shard";
      routed[part.shard.value] = part.selected;
    }
    EXPECT_EQ(routed, expected);
  }
}

TEST(Router, ABatchOfOneShardIsOnePart) {
  const ShardMap map = ShardMap::uniform(8);
  const std::vector<RoutedBatch> parts = route(batch_of(std::vector<model::KeyHash>(100, ~model::KeyHash{0})), map);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].shard, ShardId{7});
  ASSERT_EQ(parts[0].selected.size(), 100u);
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(parts[0].selected[i], i);
}

TEST(Router, PartsComeInTheOrderOfTheirShards) {
  const ShardMap map = ShardMap::uniform(2);
  const std::vector<RoutedBatch> parts = route(batch_of({~model::KeyHash{0}, 0, ~model::KeyHash{0}}), map);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].shard, ShardId{0});
  EXPECT_EQ(parts[0].selected, std::vector<std::uint32_t>({1}));
  EXPECT_EQ(parts[1].shard, ShardId{1});
  EXPECT_EQ(parts[1].selected, std::vector<std::uint32_t>({0, 2}));
}

TEST(Router, AnEmptyBatchHasNoParts) {
  EXPECT_TRUE(route(batch_of({}), ShardMap::uniform(4)).empty());
}

TEST(Router, PartsKeepTheRowsAlive) {
  auto batch = batch_of({1, 2, 3});
  const std::weak_ptr<const model::RowBatch> watched = batch;
  std::vector<RoutedBatch> parts = route(batch, ShardMap::uniform(2));
  batch.reset();
  EXPECT_FALSE(watched.expired());
  parts.clear();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace drover::partitioner

#include "drover/partitioner/heat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace drover::partitioner {
namespace {

constexpr std::uint64_t kSeed = 20260623;

void add(HotKeySketch& sketch, const std::string& key) {
  sketch.add(model::hash_key(key), key);
}

TEST(HotKeySketch, CountsExactlyWhileThereIsRoom) {
  HotKeySketch sketch(3);
  for (const char* key : {"a", "b", "a", "c", "a", "b"}) add(sketch, key);
  const std::vector<HotKey> top = sketch.top(10);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].partition_key, "a");
  EXPECT_EQ(top[0].count, 3u);
  EXPECT_EQ(top[0].error, 0u);
  EXPECT_EQ(top[1].partition_key, "b");
  EXPECT_EQ(top[2].partition_key, "c");
  EXPECT_EQ(sketch.total(), 6u);
}

TEST(HotKeySketch, ANewKeyTakesTheColdestOnesPlaceAndItsCountAsError) {
  HotKeySketch sketch(2);
  for (const char* key : {"a", "a", "a", "b", "b", "new"}) add(sketch, key);
  const std::vector<HotKey> top = sketch.top(2);
  ASSERT_EQ(top.size(), 2u);
  const HotKey& entered = top[0].partition_key == "new" ? top[0] : top[1];
  EXPECT_EQ(entered.partition_key, "new");
  EXPECT_EQ(entered.count, 3u);
  EXPECT_EQ(entered.error, 2u);
}

TEST(HotKeySketch, TrueCountsLieInTheirBoundsAndNoFrequentKeyIsMissed) {
  SCOPED_TRACE(kSeed);
  constexpr std::size_t kCapacity = 32;
  std::mt19937_64 random(kSeed);
  std::geometric_distribution<int> skewed(0.02);
  HotKeySketch sketch(kCapacity);
  std::map<std::string, std::uint64_t> truth;
  for (int i = 0; i < 50'000; ++i) {
    const std::string key = "VEH#V-" + std::to_string(skewed(random));
    ++truth[key];
    add(sketch, key);
  }
  const std::vector<HotKey> top = sketch.top(kCapacity);
  ASSERT_EQ(top.size(), kCapacity);
  EXPECT_GT(truth.size(), 4 * kCapacity);
  EXPECT_TRUE(std::is_sorted(top.begin(), top.end(), [](const auto& a, const auto& b) { return a.count > b.count; }));
  for (const HotKey& key : top) {
    EXPECT_LE(truth[key.partition_key], key.count);
    EXPECT_GE(truth[key.partition_key], key.count - key.error);
    truth.erase(key.partition_key);
  }
  for (const auto& [key, count] : truth) EXPECT_LE(count, sketch.total() / kCapacity) << key << " was missed";
}

TEST(HotKeySketch, KeysOfOneHashAreKeptApart) {
  HotKeySketch sketch(4);
  sketch.add(7, "a");
  sketch.add(7, "b");
  sketch.add(7, "b");
  const std::vector<HotKey> top = sketch.top(4);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].partition_key, "b");
  EXPECT_EQ(top[0].count, 2u);
}

TEST(HotKeySketch, DecayHalvesAndForgets) {
  HotKeySketch sketch(4);
  for (const char* key : {"a", "a", "a", "a", "b"}) add(sketch, key);
  sketch.decay();
  ASSERT_EQ(sketch.top(4).size(), 1u);
  EXPECT_EQ(sketch.top(4)[0].count, 2u);
  EXPECT_EQ(sketch.total(), 2u);
  sketch.decay();
  sketch.decay();
  EXPECT_TRUE(sketch.top(4).empty());
  EXPECT_EQ(sketch.total(), 0u);
  add(sketch, "b");
  EXPECT_EQ(sketch.top(4)[0].partition_key, "b");
}

TEST(HotKeySketch, TopGivesAtMostWhatWasAskedFor) {
  HotKeySketch sketch;
  for (const char* key : {"a", "b", "b"}) add(sketch, key);
  ASSERT_EQ(sketch.top(1).size(), 1u);
  EXPECT_EQ(sketch.top(1)[0].partition_key, "b");
  EXPECT_TRUE(sketch.top(0).empty());
}

TEST(HotKeySketch, CanBeReadWhileItIsWritten) {
  HotKeySketch sketch(8);
  constexpr std::uint64_t kAdded = 20'000;
  {
    const std::jthread writer([&] {
      for (std::uint64_t i = 0; i < kAdded; ++i) add(sketch, std::to_string(i % 20));
    });
    while (sketch.total() < kAdded) {
      std::uint64_t sum = 0;
      for (const HotKey& key : sketch.top(8)) sum += key.count;
      ASSERT_LE(sum, kAdded);
    }
  }
  EXPECT_EQ(sketch.top(8).size(), 8u);
}

}  // namespace
}  // namespace drover::partitioner

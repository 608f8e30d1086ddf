#include "space.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>

namespace drover::store {
namespace {

constexpr CollectionTuning kTuning{};

TEST(Space, FindsEveryCollectionOfACrowdedSegment) {
  EpochDomain epochs;
  RetireList retired(epochs);
  Space space(kTuning);
  // One segment, and hashes whose lower bits collide: long probe sequences and many growths.
  const auto hash_of = [](std::uint64_t n) { return std::uint64_t{7} << 50 | (n % 5) << 32 | n / 100; };
  for (std::uint64_t n = 0; n < 1'000; ++n) {
    const std::string key = "VEH#" + std::to_string(n);
    EXPECT_EQ(space.find(hash_of(n), key), nullptr);
    Collection& made = space.find_or_create(hash_of(n), key, retired);
    EXPECT_EQ(&space.find_or_create(hash_of(n), key, retired), &made);
    retired.collect();
  }
  for (std::uint64_t n = 0; n < 1'000; ++n) {
    const std::string key = "VEH#" + std::to_string(n);
    const Collection* found = space.find(hash_of(n), key);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->partition_key(), key);
    EXPECT_EQ(space.find(hash_of(n) + 1'000'000, key), nullptr);
  }
}

TEST(Space, KeysOfOneHashAreDifferentCollections) {
  EpochDomain epochs;
  RetireList retired(epochs);
  Space space(kTuning);
  Collection& a = space.find_or_create(42, "a", retired);
  Collection& b = space.find_or_create(42, "b", retired);
  EXPECT_NE(&a, &b);
  EXPECT_EQ(space.find(42, "a"), &a);
  EXPECT_EQ(space.find(42, "b"), &b);
  EXPECT_EQ(space.find(42, "c"), nullptr);
}

TEST(Space, ASegmentListsItsCollectionsByHashAndKeyAndNoOthers) {
  EpochDomain epochs;
  RetireList retired(epochs);
  Space space(kTuning);
  std::set<std::tuple<std::uint64_t, std::string>> expected;
  for (int n = 0; n < 20'000; ++n) {
    const std::string key = "VEH#" + std::to_string(n);
    const model::KeyHash hash = n % 3 == 0 ? 42 : model::hash_key(key);
    space.find_or_create(hash, key, retired);
    expected.emplace(hash, key);
  }
  std::set<std::tuple<std::uint64_t, std::string>> listed;
  std::tuple<std::uint64_t, std::string> last;
  for (std::uint32_t segment = 0; segment < model::kSegments; ++segment) {
    for (const Collection* collection : space.collections(segment)) {
      const std::tuple<std::uint64_t, std::string> at(collection->hash(), collection->partition_key());
      EXPECT_EQ(model::segment_of(collection->hash()), segment);
      EXPECT_LT(last, at);
      last = at;
      listed.insert(at);
    }
  }
  EXPECT_EQ(listed, expected);
}

}  // namespace
}  // namespace drover::store

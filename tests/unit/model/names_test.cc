#include "drover/model/names.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace drover::model {
namespace {

TEST(AttributeNames, ANameKeepsItsId) {
  AttributeNames names;
  const NameId speed = names.intern("speedKph");
  const NameId coolant = names.intern("coolantC");
  EXPECT_NE(speed, NameId{});
  EXPECT_NE(speed, coolant);
  EXPECT_EQ(names.intern("speedKph"), speed);
  EXPECT_EQ(names.name(speed), "speedKph");
  EXPECT_EQ(names.name(coolant), "coolantC");
}

TEST(AttributeNames, BytesOfAnyKindAreNames) {
  AttributeNames names;
  const std::string odd("\0\xff", 2);
  EXPECT_EQ(names.name(names.intern(odd)), odd);
  EXPECT_EQ(names.name(names.intern("")), "");
}

TEST(AttributeNames, BeyondTheBoundNewNamesGetNoIdAndOldOnesKeepTheirs) {
  AttributeNames names;
  for (std::size_t i = 0; i < kInternedNamesMax; ++i) ASSERT_NE(names.intern(std::to_string(i)), NameId{}) << i;
  EXPECT_EQ(names.intern("one more"), NameId{});
  EXPECT_EQ(names.name(names.intern("0")), "0");
  EXPECT_EQ(names.name(names.intern(std::to_string(kInternedNamesMax - 1))), std::to_string(kInternedNamesMax - 1));
}

TEST(AttributeNames, LongNamesGetNoId) {
  AttributeNames names;
  EXPECT_NE(names.intern(std::string(AttributeNames::kInternedNameSizeBytesMax, 'n')), NameId{});
  EXPECT_EQ(names.intern(std::string(AttributeNames::kInternedNameSizeBytesMax + 1, 'n')), NameId{});
}

TEST(AttributeNames, ThreadsThatInternTheSameNamesGetTheSameIds) {
  constexpr std::size_t kNames = 2'000;
  AttributeNames names;
  std::vector<std::vector<NameId>> ids(4, std::vector<NameId>(kNames));
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < ids.size(); ++t) {
      threads.emplace_back([&names, &own = ids[t], t] {
        for (std::size_t i = 0; i < kNames; ++i) {
          const std::size_t n = t % 2 == 0 ? i : kNames - 1 - i;
          own[n] = names.intern(std::to_string(n));
          EXPECT_EQ(names.name(own[n]), std::to_string(n));
        }
      });
    }
  }
  for (const std::vector<NameId>& other : ids) EXPECT_EQ(other, ids.front());
}

}  // namespace
}  // namespace drover::model

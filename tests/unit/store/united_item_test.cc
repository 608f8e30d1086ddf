#include "united_item.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "drover/store/item.h"
#include "drover/store/store.h"
#include "tests/support/rows.h"
#include "tests/support/seeds.h"
#include "tests/support/tables.h"

namespace drover::store {
namespace {

using model::Item;
using model::kRowTombstone;
using model::kRowUnites;
using model::RowView;
using model::SourceId;
using model::Version;
using test::number;
using test::text;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kDrainMs = 20'000;
constexpr std::int64_t kFirstMs = 1'000'000;

std::int64_t clock_ms = kFirstMs;

/// What one record says of an item.
struct Said {
  std::int64_t version = 0;
  Item attributes;
  std::uint8_t flags = kRowUnites;
};

class Unites : public testing::Test {
 protected:
  void stream(const std::vector<Said>& records, const std::string& sort_key = "TS#1") {
    for (const Said& said : records) {
      test::BatchBuilder builder(store_->names());
      builder.add("VEH#1", sort_key, said.attributes, Version::of(kFirstMs + said.version, SourceId{1}, 7), said.flags);
      ASSERT_TRUE(test::feed(*table_, builder.take()));
    }
    ASSERT_TRUE(store_->drain(kDrainMs));
  }

  std::vector<Item> items(std::string_view index = "", const std::string& partition_key = "VEH#1") {
    return test::read_items(*table_, store_->names(), index, partition_key);
  }
  static Item item(Item attributes, const std::string& sort_key = "TS#1") {
    attributes.emplace("vehicleId", text("VEH#1"));
    attributes.emplace("recordedAt", text(sort_key));
    return attributes;
  }

  std::unique_ptr<Store> store_ = Store::open({.workers = 2, .shards_per_table = 2, .clock = [] { return clock_ms; }});
  std::shared_ptr<Table> table_ = store_->create_table(test::telemetry_schema({test::depot_index()})).value();
};

TEST_F(Unites, ThreeRecordsEndAsOneItemInWhateverOrder) {
  std::vector<Said> records{{1, {{"a", number(1)}}}, {2, {{"a", number(2)}}}, {3, {{"b", number(1)}}}};
  std::vector<int> order{0, 1, 2};
  int n = 0;
  do {
    const std::string key = "TS#" + std::to_string(n++);
    for (const int i : order) stream({records[static_cast<std::size_t>(i)]}, key);
    EXPECT_EQ(items().back(), item({{"a", number(2)}, {"b", number(1)}}, key));
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(n, 6);
}

TEST_F(Unites, ARecordWithoutTheFlagIsAllOfItsItem) {
  stream({{1, {{"a", number(1)}}}, {3, {{"b", number(3)}}}, {2, {{"c", number(2)}}, 0}});
  EXPECT_THAT(items(), ElementsAre(item({{"b", number(3)}, {"c", number(2)}})));
}

TEST_F(Unites, WhatIsContainedIsARepeatAndItsVersionCounts) {
  stream({{1, {{"a", number(1)}, {"b", number(1)}}}, {3, {{"a", number(1)}}}, {2, {{"a", number(2)}}}});
  EXPECT_THAT(items(), ElementsAre(item({{"a", number(1)}, {"b", number(1)}})));
  const StoreStats stats = store_->stats();
  EXPECT_EQ(stats.rows_stored, 1u);
  EXPECT_EQ(stats.rows_repeated, 1u);
  EXPECT_EQ(stats.rows_conflicting, 1u);
}

TEST_F(Unites, ADeleteRemovesWhatIsOlderAndNothingOlderComesBack) {
  stream({{1, {{"a", number(1)}}}, {2, {{"b", number(1)}}}});
  clock_ms = kFirstMs + 5;
  ASSERT_TRUE(test::remove(*table_, "VEH#1", "TS#1").ok());
  stream({{3, {{"c", number(1)}}}});
  EXPECT_THAT(items(), IsEmpty());
  stream({{7, {{"d", number(1)}}}, {4, {{"e", number(1)}}}, {6, {{"f", number(1)}}}});
  EXPECT_THAT(items(), ElementsAre(item({{"d", number(1)}, {"f", number(1)}})));
}

TEST_F(Unites, AnApiWriteIsAllOfItsItemUntilALaterRecord) {
  stream({{1, {{"a", number(1)}}}, {2, {{"b", number(1)}}}});
  clock_ms = kFirstMs + 5;
  ASSERT_TRUE(test::put(*table_, "VEH#1", "TS#1", test::encode_attributes({{"c", number(5)}}, store_->names())).ok());
  stream({{3, {{"a", number(3)}}}});
  EXPECT_THAT(items(), ElementsAre(item({{"c", number(5)}})));
  stream({{6, {{"a", number(6)}}}, {4, {{"c", number(4)}}}});
  EXPECT_THAT(items(), ElementsAre(item({{"a", number(6)}, {"c", number(5)}})));
}

TEST_F(Unites, AnIndexEntryIsTheUnitedItemAndMovesWithItsKey) {
  stream({{1, {{"depotCode", text("D1")}, {"a", number(1)}}}, {2, {{"b", number(2)}}}});
  EXPECT_THAT(items("depot", "D1"), ElementsAre(item({{"depotCode", text("D1")}, {"a", number(1)}, {"b", number(2)}})));
  stream({{3, {{"depotCode", text("D2")}}}});
  EXPECT_THAT(items("depot", "D1"), IsEmpty());
  EXPECT_THAT(items("depot", "D2"), ElementsAre(item({{"depotCode", text("D2")}, {"a", number(1)}, {"b", number(2)}})));
}

TEST_F(Unites, AStampStaysBehindWhateverARecordSaysItself) {
  stream({{1, {{"depotCode", text("D1")}}}}, "META");
  stream({{3, {{"a", number(1)}}}});
  EXPECT_THAT(items("depot", "D1"), testing::SizeIs(2));
  stream({{4, {{"depotCode", text("D9")}}}}, "META");
  stream({{5, {{"b", number(1)}}}});
  EXPECT_EQ(items().back(), item({{"a", number(1)}, {"b", number(1)}, {"depotCode", text("D1")}}));
  stream({{2, {{"depotCode", text("own")}}}});
  EXPECT_EQ(items().back(), item({{"a", number(1)}, {"b", number(1)}, {"depotCode", text("own")}}));
  EXPECT_EQ(items("depot", "own").size(), 1u);
}

TEST_F(Unites, MetaInParts) {
  stream({{1, {{"depotCode", text("D1")}}}, {2, {{"plate", text("LB")}}}}, "META");
  stream({{3, {{"a", number(1)}}}});
  EXPECT_EQ(items().back(), item({{"a", number(1)}, {"depotCode", text("D1")}}));
}

TEST_F(Unites, AnErasureLeavesNothingToUniteWith) {
  stream({{1, {{"a", number(1)}}}, {2, {{"b", number(1)}}}});
  clock_ms = kFirstMs + 5;
  ASSERT_TRUE(test::erase(*table_, "VEH#1").ok());
  stream({{3, {{"c", number(1)}}}, {6, {{"d", number(1)}}}});
  EXPECT_THAT(items(), ElementsAre(item({{"d", number(1)}})));
}

class UnitesRandom : public testing::TestWithParam<std::uint32_t> {
 protected:
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }
  Item attributes() {
    Item some;
    for (const char* name : {"a", "b", "c", "depotCode"}) {
      if (below(2) == 0) some.emplace(name, text(std::string("v") + std::to_string(below(3))));
    }
    return some;
  }

  std::mt19937 random_{GetParam()};
};

/// An item as its records in the order of their versions make it; nothing: deleted, or never there.
std::optional<Item> naive(std::vector<Said> records) {
  std::stable_sort(records.begin(), records.end(), [](const Said& a, const Said& b) { return a.version < b.version; });
  std::optional<Item> item;
  for (const Said& said : records) {
    if ((said.flags & kRowTombstone) != 0) {
      item.reset();
      continue;
    }
    if (!item || (said.flags & kRowUnites) == 0) item.emplace();
    for (const auto& [name, value] : said.attributes) item->insert_or_assign(name, value);
  }
  return item;
}

TEST_P(UnitesRandom, EveryOrderEndsAsTheRecordsInTheOrderOfTheirVersions) {
  constexpr std::uint32_t kKeys = 6;
  model::TableSchema schema = test::telemetry_schema({test::depot_index()});
  schema.inherit.clear();
  std::vector<std::pair<std::uint32_t, Said>> records;
  for (std::uint32_t n = 1 + below(40); n > 0; --n) {
    const std::uint32_t kind = below(10);
    Said said{static_cast<std::int64_t>(n), attributes(), kRowUnites};
    if (kind == 0) said = {said.version, {}, kRowTombstone};
    if (kind == 1) said.flags = 0;
    records.emplace_back(below(kKeys), std::move(said));
    if (below(5) == 0) records.push_back(records.back());  // read twice
  }
  for (int order = 0; order < 5; ++order) {
    const auto store = Store::open({.workers = 2, .shards_per_table = 2, .clock = [] { return clock_ms; }});
    const auto table = store->create_table(schema).value();
    std::shuffle(records.begin(), records.end(), random_);
    std::map<std::uint32_t, std::vector<Said>> seen;
    std::uint64_t stored = 0, repeated = 0, conflicting = 0;
    for (const auto& [key, said] : records) {
      std::vector<Said>& of_key = seen[key];
      const std::optional<Item> before = naive(of_key);
      const bool first = of_key.empty();
      of_key.push_back(said);
      bool contained = before.has_value() == ((said.flags & kRowTombstone) == 0);
      if (contained && before) {
        const bool part = std::all_of(said.attributes.begin(), said.attributes.end(), [&](const auto& named) {
          return before->contains(named.first) && before->at(named.first) == named.second;
        });
        contained = (said.flags & kRowUnites) != 0 ? part : *before == said.attributes;
      }
      ++(first ? stored : contained && before == naive(of_key) ? repeated : conflicting);
      test::BatchBuilder builder(store->names());
      builder.add("VEH#1", "TS#" + std::to_string(key), said.attributes,
                  Version::of(kFirstMs + said.version, SourceId{1}, static_cast<std::uint64_t>(said.version)),
                  said.flags);
      ASSERT_TRUE(test::feed(*table, builder.take()));
    }
    ASSERT_TRUE(store->drain(kDrainMs));
    std::vector<Item> expected;
    for (const auto& [key, of_key] : seen) {
      std::optional<Item> item = naive(of_key);
      if (!item) continue;
      item->emplace("vehicleId", text("VEH#1"));
      item->emplace("recordedAt", text("TS#" + std::to_string(key)));
      expected.push_back(*item);
    }
    ASSERT_EQ(test::read_items(*table, store->names(), "", "VEH#1"), expected);
    for (const char* depot : {"v0", "v1", "v2"}) {
      std::vector<Item> entries = expected;
      std::erase_if(entries, [&](const Item& item) {
        return !item.contains("depotCode") || item.at("depotCode").bytes != depot;
      });
      ASSERT_EQ(test::read_items(*table, store->names(), "depot", depot), entries);
    }
    const StoreStats stats = store->stats();
    EXPECT_EQ(stats.rows_stored, stored);
    EXPECT_EQ(stats.rows_repeated, repeated);
    EXPECT_EQ(stats.rows_conflicting, conflicting);
  }
}

TEST_P(UnitesRandom, ARowSaysAllThatIsKnown) {
  model::AttributeNames names;
  UnitedItem item;
  std::vector<std::string> rows;
  rows.reserve(16);
  for (std::uint32_t n = 1 + below(16); n > 0; --n) {
    const std::uint8_t flags = below(8) == 0 ? 0 : kRowUnites;
    rows.push_back(test::make_row("TS#1", test::encode_attributes(attributes(), names),
                                  Version::of(1 + below(10), SourceId{1}, n), flags));
    item = unite(item, UnitedItem::of(RowView(rows.back()), names));
    std::string row;
    item.append_row(row, "TS#1", {});
    const RowView view(row);
    EXPECT_EQ(UnitedItem::of(view, names), item);
    EXPECT_EQ(view.sort_key(), "TS#1");
    EXPECT_EQ(view.version(), item.version);
    EXPECT_EQ(test::decode_attributes(view.attributes(), names).size(), item.attributes.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, UnitesRandom, test::seeds(40));

}  // namespace
}  // namespace drover::store

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "drover/store/store.h"
#include "tests/support/rows.h"
#include "tests/support/tables.h"

namespace drover::store {
namespace {

using model::Item;
using model::SourceId;
using model::Version;
using test::number;
using test::text;

constexpr std::int64_t kDrainMs = 20'000;
constexpr std::int64_t kNowMs = 1'000'000;

class TableTest : public testing::Test {
 protected:
  void open(const model::TableSchema& schema) {
    store_ = Store::open({.workers = 2, .shards_per_table = 4, .clock = [] { return kNowMs; }});
    table_ = store_->create_table(schema).value();
  }

  /// A reading of VEH#1 that came with the stream at `log_time_ms`.
  void stream(std::string sort_key, const Item& attributes, std::int64_t log_time_ms, std::uint64_t offset = 0) {
    test::BatchBuilder batch(store_->names());
    batch.add("VEH#1", sort_key, attributes, Version::of(log_time_ms, SourceId{1}, offset));
    ASSERT_TRUE(test::feed(*table_, batch.take()));
    ASSERT_TRUE(store_->drain(kDrainMs));
  }

  void put(std::string sort_key, const Item& attributes) {
    ASSERT_TRUE(
        test::put(*table_, "VEH#1", std::move(sort_key), test::encode_attributes(attributes, store_->names())).ok());
  }
  void remove(std::string sort_key) { ASSERT_TRUE(test::remove(*table_, "VEH#1", std::move(sort_key)).ok()); }

  /// All but the key attributes of an item; nothing: no such item.
  std::optional<Item> get(std::string_view sort_key) {
    std::optional<Item> found;
    const KeyRange range{KeyRange::Bound{std::string(sort_key)}, KeyRange::Bound{std::string(sort_key)}};
    EXPECT_TRUE(table_
                    ->read("", "VEH#1", range, true,
                           [&](const StoredItem& item) {
                             found = test::decode_attributes(item.row.attributes(), store_->names());
                             version_ = item.row.version();
                             return true;
                           })
                    .ok());
    return found;
  }

  std::vector<Item> depot(std::string_view code) { return test::read_items(*table_, store_->names(), "depot", code); }

  std::unique_ptr<Store> store_;
  std::shared_ptr<Table> table_;
  Version version_;  ///< Of the last get().
};

Item speed(std::int64_t kph) {
  return {{"speedKph", number(kph)}};
}

// ---- Versions

TEST_F(TableTest, TheHigherVersionWinsWhicheverComesFirst) {
  open(test::telemetry_schema());
  stream("TS#1", speed(50), 100);
  stream("TS#1", speed(60), 101);
  EXPECT_EQ(get("TS#1"), speed(60));
  stream("TS#1", speed(70), 99);
  EXPECT_EQ(get("TS#1"), speed(60));
  EXPECT_EQ(version_, Version::of(101, SourceId{1}, 0));
  const StoreStats stats = store_->stats();
  EXPECT_EQ(stats.rows_stored, 1u);
  EXPECT_EQ(stats.rows_conflicting, 2u);
  EXPECT_EQ(stats.rows_repeated, 0u);
}

TEST_F(TableTest, AnExactRepeatChangesNothingAndIsNoConflict) {
  open(test::telemetry_schema());
  stream("TS#1", speed(50), 100);
  const Table::Size before = table_->size("");
  stream("TS#1", speed(50), 100);
  stream("TS#1", speed(50), 90);
  EXPECT_EQ(get("TS#1"), speed(50));
  EXPECT_EQ(version_, Version::of(100, SourceId{1}, 0));
  EXPECT_EQ(table_->size("").items, before.items);
  EXPECT_EQ(table_->size("").bytes, before.bytes);
  const StoreStats stats = store_->stats();
  EXPECT_EQ(stats.rows_stored, 1u);
  EXPECT_EQ(stats.rows_repeated, 2u);
  EXPECT_EQ(stats.rows_conflicting, 0u);
}

TEST_F(TableTest, ARepeatOfHigherVersionCountsInTheNextConflict) {
  open(test::telemetry_schema());
  stream("TS#1", speed(50), 100);
  stream("TS#1", speed(50), 200);
  EXPECT_EQ(get("TS#1"), speed(50));
  EXPECT_EQ(version_, Version::of(200, SourceId{1}, 0));
  stream("TS#1", speed(60), 150);
  EXPECT_EQ(get("TS#1"), speed(50));
}

TEST_F(TableTest, ARepeatWithItsAttributesInAnotherOrderIsARepeat) {
  open(test::telemetry_schema());
  stream("TS#1", {{"a", number(1)}, {"b", number(2)}}, 100);
  // Decoders write attributes in the order of the record, which BatchBuilder (sorted) can't: by hand.
  model::Bytes attributes;
  for (const char* name : {"b", "a"}) {
    model::append_name(attributes, name, store_->names());
    model::append_value(attributes, number(name[0] == 'a' ? 1 : 2), store_->names());
  }
  const model::Bytes row = test::make_row("TS#1", attributes, Version::of(101, SourceId{1}, 0));
  auto batch = std::make_shared<model::RowBatch>();
  batch->bytes.assign({'V', 'E', 'H', '#', '1'});
  batch->bytes.insert(batch->bytes.end(), row.begin(), row.end());
  batch->rows.push_back({model::hash_key("VEH#1"), 0, 5, static_cast<std::uint32_t>(row.size())});
  ASSERT_TRUE(test::feed(*table_, batch));
  ASSERT_TRUE(store_->drain(kDrainMs));
  EXPECT_EQ(store_->stats().rows_repeated, 1u);
}

TEST_F(TableTest, ARowWithFewerAttributesIsNoRepeat) {
  open(test::telemetry_schema());
  stream("TS#1", {{"speedKph", number(50)}, {"fuelPct", number(80)}}, 100);
  stream("TS#1", speed(50), 101);
  EXPECT_EQ(get("TS#1"), speed(50));
  EXPECT_EQ(store_->stats().rows_conflicting, 1u);
}

TEST_F(TableTest, AReplayNeverBeatsAnApiWriteThatReplacedIt) {
  open(test::telemetry_schema());
  stream("TS#1", speed(50), kNowMs + 500);  // ahead of the clock
  put("TS#1", speed(99));
  EXPECT_EQ(get("TS#1"), speed(99));
  EXPECT_GT(version_, Version::of(kNowMs + 500, SourceId{1}, 0));
  stream("TS#1", speed(50), kNowMs + 500);
  EXPECT_EQ(get("TS#1"), speed(99));
}

TEST_F(TableTest, AnApiWriteTakesTheClockWhereNothingIsReplaced) {
  open(test::telemetry_schema());
  put("TS#1", speed(50));
  ASSERT_TRUE(get("TS#1"));
  EXPECT_EQ(version_.log_time_ms(), kNowMs);
  EXPECT_EQ(version_.source(), model::kApiSource);
  stream("TS#1", speed(60), kNowMs - 1);
  EXPECT_EQ(get("TS#1"), speed(50));
  stream("TS#1", speed(70), kNowMs + 1);
  EXPECT_EQ(get("TS#1"), speed(70));
}

TEST_F(TableTest, ADeletedItemIsGoneAndItsReplayDoesNotBringItBack) {
  open(test::telemetry_schema({test::depot_index()}));
  stream("TS#1", {{"depotCode", text("DEP-LON-3")}}, 100);
  ASSERT_EQ(depot("DEP-LON-3").size(), 1u);
  remove("TS#1");
  EXPECT_EQ(get("TS#1"), std::nullopt);
  EXPECT_TRUE(depot("DEP-LON-3").empty());
  EXPECT_EQ(table_->size("").items, 0u);
  EXPECT_EQ(table_->size("depot").items, 0u);
  stream("TS#1", {{"depotCode", text("DEP-LON-3")}}, 100);
  EXPECT_EQ(get("TS#1"), std::nullopt);
  EXPECT_TRUE(depot("DEP-LON-3").empty());
}

TEST_F(TableTest, ANewerRowBringsADeletedItemBack) {
  open(test::telemetry_schema({test::depot_index()}));
  stream("TS#1", {{"depotCode", text("DEP-LON-3")}}, 100);
  remove("TS#1");
  stream("TS#1", {{"depotCode", text("DEP-LON-3")}}, kNowMs + 1);
  EXPECT_TRUE(get("TS#1"));
  EXPECT_EQ(depot("DEP-LON-3").size(), 1u);
  EXPECT_EQ(table_->size("").items, 1u);
}

TEST_F(TableTest, ADeleteOfNothingLeavesNoTrace) {
  open(test::telemetry_schema());
  remove("TS#1");
  EXPECT_EQ(table_->size("").bytes, 0u);
  stream("TS#1", speed(50), 1);
  EXPECT_EQ(get("TS#1"), speed(50));
}

TEST_F(TableTest, AStreamedTombstoneDeletesAndItsRepeatIsARepeat) {
  open(test::telemetry_schema({test::depot_index()}));
  stream("META", {{"depotCode", text("DEP-A")}}, 1);
  stream("TS#1", {}, 2);  // no attributes of its own, like a tombstone
  ASSERT_EQ(depot("DEP-A").size(), 2u);
  for (int i = 0; i < 2; ++i) {
    test::BatchBuilder batch(store_->names());
    batch.add("VEH#1", "TS#1", {}, Version::of(3 + i, SourceId{1}, 0), model::kRowTombstone);
    ASSERT_TRUE(test::feed(*table_, batch.take()));
    ASSERT_TRUE(store_->drain(kDrainMs));
    EXPECT_EQ(get("TS#1"), std::nullopt);
    EXPECT_EQ(depot("DEP-A").size(), 1u);
  }
  EXPECT_EQ(store_->stats().rows_repeated, 1u);
  stream("TS#1", {}, 3, 1);
  EXPECT_EQ(get("TS#1"), std::nullopt);
}

TEST_F(TableTest, AnEmptiedIndexCollectionTakesNewEntries) {
  open(test::telemetry_schema({test::depot_index()}));
  for (int i = 0; i < 3; ++i) {
    const Item item = {{"depotCode", text("DEP-A")}, {"note", text(std::string(500 * (i + 1), 'n'))}};
    put("TS#1", item);
    put("TS#2", item);
    EXPECT_EQ(depot("DEP-A").size(), 2u);
    remove("TS#1");
    remove("TS#2");
    EXPECT_TRUE(depot("DEP-A").empty());
  }
}

// ---- API writes

TEST_F(TableTest, AWriteSeesTheItemAsItStands) {
  open(test::telemetry_schema());
  std::vector<std::optional<Item>> seen;
  const auto look = [&](ItemWrite::Action action, const Item& attributes) {
    ASSERT_TRUE(test::write_and_wait(*table_, "VEH#1", "TS#1", [&](std::optional<std::string_view> present) {
                  seen.push_back(present ? std::optional(test::decode_attributes(*present, store_->names()))
                                         : std::nullopt);
                  return ItemWrite::Decision{action, test::encode_attributes(attributes, store_->names())};
                }).ok());
  };
  look(ItemWrite::Action::kPut, speed(1));
  look(ItemWrite::Action::kNone, {});
  look(ItemWrite::Action::kPut, speed(2));
  look(ItemWrite::Action::kDelete, {});
  look(ItemWrite::Action::kNone, {});
  EXPECT_EQ(seen, (std::vector<std::optional<Item>>{std::nullopt, speed(1), speed(1), speed(2), std::nullopt}));
  EXPECT_EQ(get("TS#1"), std::nullopt);
}

TEST_F(TableTest, AnAcknowledgedWriteCanBeReadInTheTableAndInEveryIndex) {
  open(test::telemetry_schema({test::depot_index()}));
  for (int n = 0; n < 500; ++n) {
    const std::string depot_code = "DEP-" + std::to_string(n);
    put("TS#1", {{"depotCode", text(depot_code)}});
    ASSERT_EQ(get("TS#1"), (Item{{"depotCode", text(depot_code)}}));
    ASSERT_EQ(depot(depot_code).size(), 1u);
    if (n > 0) {
      ASSERT_TRUE(depot("DEP-" + std::to_string(n - 1)).empty());
    }
  }
  EXPECT_EQ(table_->size("depot").items, 1u);
}

TEST_F(TableTest, AWriteWithAWronglyTypedIndexKeyIsRefusedAndChangesNothing) {
  open(test::telemetry_schema({test::depot_index()}));
  put("TS#1", {{"depotCode", text("DEP-LON-3")}});
  const model::Status status =
      test::put(*table_, "VEH#1", "TS#1", test::encode_attributes({{"depotCode", number(3)}}, store_->names()));
  EXPECT_EQ(status.code(), model::StatusCode::kInvalid);
  EXPECT_EQ(get("TS#1"), (Item{{"depotCode", text("DEP-LON-3")}}));
  EXPECT_EQ(depot("DEP-LON-3").size(), 1u);
}

// ---- Inheritance

TEST_F(TableTest, AReadingInheritsFromTheMetaThatStandsWhenItComes) {
  open(test::telemetry_schema({test::depot_index()}));
  stream("TS#1", speed(1), 100);
  stream("META", {{"depotCode", text("DEP-A")}, {"plate", text("LB 1")}}, 101);
  stream("TS#2", speed(2), 102);
  stream("META", {{"depotCode", text("DEP-B")}, {"plate", text("LB 1")}}, 103);
  stream("TS#3", speed(3), 104);
  EXPECT_EQ(get("TS#1"), speed(1));
  EXPECT_EQ(get("TS#2"), (Item{{"depotCode", text("DEP-A")}, {"speedKph", number(2)}}));
  EXPECT_EQ(get("TS#3"), (Item{{"depotCode", text("DEP-B")}, {"speedKph", number(3)}}));
  EXPECT_EQ(depot("DEP-A").size(), 1u);
  EXPECT_EQ(depot("DEP-B").size(), 2u);
}

TEST_F(TableTest, AnExactRepeatKeepsItsFirstStamp) {
  open(test::telemetry_schema());
  stream("META", {{"depotCode", text("DEP-A")}}, 100);
  stream("TS#1", speed(1), 101);
  put("META", {{"depotCode", text("DEP-B")}});
  stream("TS#1", speed(1), 101);
  stream("TS#1", speed(1), 102);
  EXPECT_EQ(get("TS#1"), (Item{{"depotCode", text("DEP-A")}, {"speedKph", number(1)}}));
  EXPECT_EQ(store_->stats().rows_repeated, 2u);
}

TEST_F(TableTest, AReadingsOwnAttributeIsNotOverwrittenByWhatItInherits) {
  model::TableSchema schema = test::telemetry_schema();
  schema.inherit = {"depotCode", "region"};
  open(schema);
  stream("META", {{"depotCode", text("DEP-A")}, {"region", text("north")}}, 100);
  stream("TS#1", {{"depotCode", text("DEP-OWN")}}, 101);
  EXPECT_EQ(get("TS#1"), (Item{{"depotCode", text("DEP-OWN")}, {"region", text("north")}}));
}

TEST_F(TableTest, NothingIsInheritedFromADeletedMeta) {
  open(test::telemetry_schema());
  stream("META", {{"depotCode", text("DEP-A")}}, 100);
  remove("META");
  stream("TS#1", speed(1), 101);
  EXPECT_EQ(get("TS#1"), speed(1));
}

TEST_F(TableTest, AMetaOfLowerVersionTeachesNothing) {
  open(test::telemetry_schema());
  stream("META", {{"depotCode", text("DEP-B")}}, 200);
  stream("META", {{"depotCode", text("DEP-A")}}, 100);
  stream("TS#1", speed(1), 201);
  EXPECT_EQ(get("TS#1"), (Item{{"depotCode", text("DEP-B")}, {"speedKph", number(1)}}));
}

TEST_F(TableTest, AMetaThatLosesItsDepotIsNoRepeatOfTheOneThatHadIt) {
  open(test::telemetry_schema());
  stream("META", {{"depotCode", text("DEP-A")}, {"plate", text("LB 1")}}, 100);
  stream("META", {{"plate", text("LB 1")}}, 101);
  EXPECT_EQ(get("META"), (Item{{"plate", text("LB 1")}}));
  stream("TS#1", speed(1), 102);
  EXPECT_EQ(get("TS#1"), speed(1));
}

// ---- Rows that can't be stored

TEST_F(TableTest, AnItemThatPassesTheLimitWithItsStampIsRefusedAndCountedOnce) {
  open(test::telemetry_schema());
  stream("META", {{"depotCode", text(std::string(300 * 1024, 'd'))}}, 100);
  stream("TS#1", speed(1), 101);
  stream("TS#2", {{"note", text(std::string(200 * 1024, 'n'))}}, 102);
  EXPECT_TRUE(get("TS#1"));
  EXPECT_EQ(get("TS#2"), std::nullopt);
  const StoreStats stats = store_->stats();
  EXPECT_EQ(stats.rows_stored, 2u);
  EXPECT_EQ(stats.rows_refused, 1u);
}

TEST_F(TableTest, AWriteThatPassesTheLimitWithItsStampIsRefused) {
  open(test::telemetry_schema());
  put("META", {{"depotCode", text(std::string(300 * 1024, 'd'))}});
  const model::Bytes note = test::encode_attributes({{"note", text(std::string(200 * 1024, 'n'))}}, store_->names());
  const model::Status refused = test::put(*table_, "VEH#1", "TS#1", note);
  EXPECT_EQ(refused.code(), model::StatusCode::kInvalid);
  EXPECT_EQ(refused.message(), "Item size has exceeded the maximum allowed size");
  EXPECT_EQ(get("TS#1"), std::nullopt);
}

TEST_F(TableTest, AStampThatManyShareOutlivesTheMetaItCameFrom) {
  open(test::telemetry_schema());
  const Item depot_a = {{"depotCode", text("DEP-A, a name too long to stand in a small string")}};
  const Item depot_b = {{"depotCode", text("DEP-B")}};
  test::BatchBuilder metas(store_->names());
  for (const char* vehicle : {"VEH#1", "VEH#2"}) metas.add(vehicle, "META", depot_a, Version::of(1, SourceId{1}, 0));
  ASSERT_TRUE(test::feed(*table_, metas.take()));
  ASSERT_TRUE(store_->drain(kDrainMs));
  stream("META", depot_b, 2);
  stream("TS#1", speed(1), 3);
  EXPECT_EQ(get("TS#1")->at("depotCode"), text("DEP-B"));
  test::BatchBuilder reading(store_->names());
  reading.add("VEH#2", "TS#1", speed(1), Version::of(3, SourceId{1}, 0));
  ASSERT_TRUE(test::feed(*table_, reading.take()));
  ASSERT_TRUE(store_->drain(kDrainMs));
  const std::vector<Item> items = test::read_items(*table_, store_->names(), "", "VEH#2");
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[1].at("depotCode"), depot_a.at("depotCode"));
}

TEST_F(TableTest, ARowWithAWronglyTypedIndexKeyIsRefusedWholeAndCountedOnce) {
  open(test::telemetry_schema({test::depot_index()}));
  stream("TS#1", {{"depotCode", text("DEP-A")}}, 100);
  stream("TS#1", {{"depotCode", number(7)}}, 101);
  stream("TS#2", {{"depotCode", model::AttributeValue::null()}}, 102);
  stream("TS#3", {{"depotCode", text("")}}, 103);
  EXPECT_EQ(get("TS#1"), (Item{{"depotCode", text("DEP-A")}}));
  EXPECT_EQ(get("TS#2"), std::nullopt);
  EXPECT_EQ(get("TS#3"), std::nullopt);
  EXPECT_EQ(depot("DEP-A").size(), 1u);
  const StoreStats stats = store_->stats();
  EXPECT_EQ(stats.rows_stored, 1u);
  EXPECT_EQ(stats.rows_refused, 3u);
  EXPECT_EQ(stats.rows_conflicting, 0u);
}

// ---- Reads

TEST_F(TableTest, AVisitorThatHasSeenEnoughEndsTheRead) {
  open(test::telemetry_schema());
  test::BatchBuilder batch(store_->names());
  for (int n = 0; n < 100; ++n) {
    batch.add("VEH#1", "TS#" + std::to_string(100 + n), speed(n),
              Version::of(1, SourceId{1}, static_cast<std::uint64_t>(n)));
  }
  ASSERT_TRUE(test::feed(*table_, batch.take()));
  ASSERT_TRUE(store_->drain(kDrainMs));
  std::vector<std::string> seen;
  EXPECT_TRUE(table_
                  ->read("", "VEH#1", {}, false,
                         [&](const StoredItem& item) {
                           seen.emplace_back(item.row.sort_key());
                           return seen.size() < 3;
                         })
                  .ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"TS#199", "TS#198", "TS#197"}));
}

TEST_F(TableTest, AnAbsentCollectionIsEmptyAndAnAbsentIndexIsAnError) {
  open(test::telemetry_schema());
  const auto never = [](const StoredItem&) -> bool {
    ADD_FAILURE();
    return true;
  };
  EXPECT_TRUE(table_->read("", "VEH#none", {}, true, never).ok());
  EXPECT_EQ(table_->read("depot", "VEH#1", {}, true, never).code(), model::StatusCode::kNotFound);
  EXPECT_EQ(table_->scan("depot", 0, model::kSegments, std::nullopt, never).code(), model::StatusCode::kNotFound);
}

TEST_F(TableTest, BoundsThatCrossHoldNothing) {
  open(test::telemetry_schema());
  stream("TS#2", speed(2), 1);
  for (const bool ascending : {true, false}) {
    EXPECT_TRUE(test::read_items(*table_, store_->names(), "", "VEH#1",
                                 {KeyRange::Bound{"TS#3"}, KeyRange::Bound{"TS#1"}}, ascending)
                    .empty());
    EXPECT_TRUE(test::read_items(*table_, store_->names(), "", "VEH#1",
                                 {KeyRange::Bound{"TS#2", false}, KeyRange::Bound{"TS#2", true}}, ascending)
                    .empty());
  }
}

TEST_F(TableTest, ATableWithoutASortKeyKeepsOneItemPerKey) {
  model::TableSchema schema;
  schema.name = "counters";
  schema.key = {{"id", model::KeyType::kString}, std::nullopt};
  open(schema);
  stream("", speed(1), 100);
  stream("", speed(2), 101);
  put("", speed(3));
  EXPECT_EQ(get(""), speed(3));
  EXPECT_EQ(table_->size("").items, 1u);
  remove("");
  EXPECT_EQ(get(""), std::nullopt);
}

// ---- Tables

TEST(Store, KeepsTablesByName) {
  const std::unique_ptr<Store> store = Store::open({.workers = 1, .shards_per_table = 2});
  model::TableSchema schema = test::telemetry_schema();
  for (const char* name : {"zebra", "alpha", "Beta"}) {
    schema.name = name;
    ASSERT_TRUE(store->create_table(schema).ok());
  }
  EXPECT_EQ(store->create_table(schema).status().code(), model::StatusCode::kExists);
  EXPECT_EQ(store->table_names(), (std::vector<std::string>{"Beta", "alpha", "zebra"}));
  EXPECT_EQ(store->find_table("alpha")->schema().name, "alpha");
  EXPECT_EQ(store->find_table("alph"), nullptr);
  EXPECT_TRUE(store->delete_table("alpha").ok());
  EXPECT_EQ(store->delete_table("alpha").code(), model::StatusCode::kNotFound);
  EXPECT_EQ(store->find_table("alpha"), nullptr);
  schema.name = "x";
  EXPECT_EQ(store->create_table(schema).status().code(), model::StatusCode::kInvalid);
}

}  // namespace
}  // namespace drover::store

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "drover/store/store.h"
#include "tests/support/rows.h"
#include "tests/support/tables.h"

namespace drover::store {
namespace {

using model::Item;
using model::SourceId;
using model::StatusCode;
using model::Version;
using test::number;
using test::text;

constexpr std::int64_t kDrainMs = 20'000;
constexpr std::uint64_t kLimitBytes = 2'000;

model::IndexSchema local_index(std::string name, std::string sort_key, model::KeyType type,
                               model::ProjectionType projection, std::vector<std::string> included = {}) {
  return {std::move(name),
          {{"vehicleId", model::KeyType::kString}, model::KeyAttribute{std::move(sort_key), type}},
          true,
          projection,
          std::move(included)};
}

model::TableSchema schema() {
  return test::telemetry_schema(
      {local_index("by-speed", "speedKph", model::KeyType::kNumber, model::ProjectionType::kKeysOnly),
       local_index("by-note", "note", model::KeyType::kString, model::ProjectionType::kAll),
       local_index("by-time", "recordedAt", model::KeyType::kString, model::ProjectionType::kInclude, {"note"})});
}

StoreOptions options(std::uint64_t limit_bytes = kLimitBytes) {
  StoreOptions options;
  options.workers = 2;
  options.shards_per_table = 3;
  options.item_collection_limits["telemetry"] = limit_bytes;
  return options;
}

/// By the rules, from the item as the API shows it.
std::uint64_t size_with_projections(const Item& item) {
  const auto part = [&](std::vector<std::string> names) {
    Item projected;
    for (const std::string& name : names) {
      if (const auto found = item.find(name); found != item.end()) projected.insert(*found);
    }
    return model::item_size_bytes(projected);
  };
  std::uint64_t size = model::item_size_bytes(item);
  const auto note = item.find("note");
  const auto speed = item.find("speedKph");
  if (speed != item.end() && speed->second.type == model::AttributeType::kNumber) {
    size += part({"vehicleId", "recordedAt", "speedKph"});
  }
  if (note != item.end() && note->second.type == model::AttributeType::kString && !note->second.bytes.empty()) {
    size += model::item_size_bytes(item);
  }
  return size + part({"vehicleId", "recordedAt", "note"});
}

class CollectionLimitTest : public testing::Test {
 protected:
  CollectionLimitTest() { open(options()); }
  ~CollectionLimitTest() override {
    table_.reset();
    store_.reset();
    std::filesystem::remove_all(directory_);
  }

  void open(StoreOptions with) {
    table_.reset();
    store_.reset();
    store_ = std::move(Store::open(directory_ + "/store", std::move(with)).value());
    table_ = store_->find_table("telemetry");
    if (table_ == nullptr) table_ = store_->create_table(schema()).value();
  }

  model::Status write(std::string vehicle, std::string sort_key, std::optional<Item> item) {
    std::promise<model::Status> done;
    ItemWrite write;
    write.partition_key = std::move(vehicle);
    write.sort_key = std::move(sort_key);
    write.decide = [&](auto) {
      return item ? ItemWrite::Decision{ItemWrite::Action::kPut, test::encode_attributes(*item, store_->names())}
                  : ItemWrite::Decision{ItemWrite::Action::kDelete, {}};
    };
    write.done = [&](model::Status status) { done.set_value(std::move(status)); };
    write.sized = [&](std::uint64_t size_bytes) { size_ = size_bytes; };
    EXPECT_TRUE(table_->write(std::move(write)).ok());
    return done.get_future().get();
  }

  void stream(std::string_view vehicle, std::string_view sort_key, const Item& item, std::uint64_t offset,
              std::int64_t log_time_ms = 1'000, std::uint8_t flags = 0) {
    test::BatchBuilder batch(store_->names());
    batch.add(vehicle, sort_key, item, Version::of(log_time_ms, SourceId{1}, offset), flags);
    ASSERT_TRUE(test::feed(*table_, batch.take()));
    ASSERT_TRUE(store_->drain(kDrainMs));
  }

  void checkpoint() {
    auto cut = store_->cut(kDrainMs);
    ASSERT_TRUE(cut.ok());
    ASSERT_TRUE((*cut)->write({}).ok());
    ASSERT_TRUE(store_->drain(kDrainMs));
  }

  std::vector<Item> items(std::string_view vehicle) { return test::read_items(*table_, store_->names(), "", vehicle); }
  std::uint64_t measured(std::string_view vehicle) {
    std::uint64_t size = 0;
    for (const Item& item : items(vehicle)) size += size_with_projections(item);
    return size;
  }

  std::string directory_ = [] {
    std::string pattern = (std::filesystem::temp_directory_path() / "drover-limit-XXXXXX").string();
    return std::string(mkdtemp(pattern.data()));
  }();
  std::unique_ptr<Store> store_;
  std::shared_ptr<Table> table_;
  std::uint64_t size_ = 0;  ///< Of the last write's collection.
};

Item note(std::size_t size) {
  return {{"note", text(std::string(size, 'n'))}};
}

TEST_F(CollectionLimitTest, AWriteThatGrowsAFullCollectionFails) {
  ASSERT_TRUE(write("VEH#1", "a", note(500)).ok());
  EXPECT_EQ(write("VEH#1", "b", note(500)).code(), StatusCode::kTooLarge);
  EXPECT_EQ(items("VEH#1").size(), 1u);
  EXPECT_EQ(write("VEH#1", "a", note(900)).code(), StatusCode::kTooLarge);
  EXPECT_EQ(items("VEH#1").front().at("note").bytes.size(), 500u);
  EXPECT_TRUE(write("VEH#2", "a", note(500)).ok()) << "other collections go on";
}

TEST_F(CollectionLimitTest, AWriteThatShrinksAFullCollectionSucceeds) {
  ASSERT_TRUE(write("VEH#1", "a", note(200)).ok());
  ASSERT_TRUE(write("VEH#1", "b", note(200)).ok());
  open(options(1'024));
  EXPECT_EQ(write("VEH#1", "c", note(1)).code(), StatusCode::kTooLarge);
  EXPECT_TRUE(write("VEH#1", "a", note(200)).ok()) << "as large as before";
  EXPECT_TRUE(write("VEH#1", "a", note(190)).ok());
  EXPECT_TRUE(write("VEH#1", "a", std::nullopt).ok());
  EXPECT_TRUE(write("VEH#1", "c", note(1)).ok());
}

TEST_F(CollectionLimitTest, TheLimitItselfMayBeReached) {
  ASSERT_TRUE(write("VEH#1", "a", note(100)).ok());
  const std::uint64_t size = size_;
  ASSERT_TRUE(write("VEH#1", "a", std::nullopt).ok());
  open(options(size));
  EXPECT_EQ(write("VEH#1", "a", note(101)).code(), StatusCode::kTooLarge);
  EXPECT_TRUE(write("VEH#1", "a", note(100)).ok());
}

TEST_F(CollectionLimitTest, RecordsOfAFullCollectionAreRefusedAndCounted) {
  stream("VEH#1", "a", note(500), 1);
  stream("VEH#1", "b", note(500), 2);
  stream("VEH#2", "a", note(500), 3);
  stream("VEH#1", "a", note(100), 4);
  stream("VEH#1", "b", note(100), 5);
  EXPECT_EQ(items("VEH#1").size(), 2u);
  EXPECT_EQ(items("VEH#2").size(), 1u);
  EXPECT_EQ(store_->stats().rows_refused, 1u);
  EXPECT_EQ(store_->stats().rows_over_limit, 1u);
}

TEST_F(CollectionLimitTest, ATableWithoutALocalIndexHasNoLimit) {
  model::TableSchema other = test::telemetry_schema({test::depot_index()});
  other.name = "other";
  StoreOptions with = options();
  with.item_collection_limits["other"] = 1;
  open(std::move(with));
  table_ = store_->create_table(other).value();
  EXPECT_TRUE(write("VEH#1", "a", note(5'000)).ok());
  EXPECT_EQ(size_, 0u) << "nothing is measured";
}

TEST_F(CollectionLimitTest, AnAcknowledgedWriteIsThereAfterARestartWithALowerLimit) {
  ASSERT_TRUE(write("VEH#1", "a", note(500)).ok());
  ASSERT_TRUE(write("VEH#1", "b", Item{{"note", number(1)}}).ok());
  open(options(1));
  EXPECT_EQ(items("VEH#1").size(), 2u);
}

/// Random writes, and records that unite with them, beside their sum by the rules; checkpoints and restarts in between.
TEST_F(CollectionLimitTest, TheSizeIsTheSumOfTheRules) {
  std::mt19937 random(7);
  const auto pick = [&](unsigned below) { return static_cast<unsigned>(random() % below); };
  open(options(1 << 20));
  for (int round = 0; round < 600; ++round) {
    const std::string vehicle = "VEH#" + std::to_string(pick(4));
    std::optional<Item> item;
    if (pick(4) != 0) {
      item.emplace();
      if (pick(2) == 0) item->emplace("speedKph", pick(5) == 0 ? text("fast") : number(pick(1'000'000)));
      if (pick(2) == 0) item->emplace("note", pick(5) == 0 ? text("") : text(std::string(pick(300), 'x')));
      if (pick(2) == 0) item->emplace("fuelPct", number(pick(100)));
    }
    const std::string sort_key = pick(8) == 0 ? "META" : "TS#" + std::to_string(pick(40));
    if (sort_key == "META" && item) item->emplace("depotCode", text("DEP-" + std::to_string(pick(1000))));
    if (pick(3) == 0) {
      const std::int64_t ahead_ms = 4'000'000'000'000 + round * std::int64_t{1'000};
      stream(vehicle, "TS#" + std::to_string(pick(40)), {{"fuelPct", number(pick(100))}}, pick(9), ahead_ms,
             model::kRowUnites);
    }
    size_ = 0;
    ASSERT_TRUE(write(vehicle, sort_key, item).ok());
    ASSERT_EQ(size_, measured(vehicle)) << "round " << round;
    if (round % 100 == 50) checkpoint();
    if (round % 150 == 149) open(options(1 << 20));
  }
}

}  // namespace
}  // namespace drover::store

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "drover/store/item.h"
#include "drover/store/store.h"
#include "tests/support/rows.h"
#include "tests/support/tables.h"

// A global index that is added to a table in use has, in the end, what one that was there from the start would have.
namespace drover::store {
namespace {

using model::Item;
using model::SourceId;
using model::StatusCode;
using model::Version;
using test::number;
using test::text;

constexpr std::int64_t kDrainMs = 60'000;
constexpr std::int64_t kNowMs = 1'000'000'000;

StoreOptions options(std::uint64_t memory_budget_bytes = std::uint64_t{1} << 30) {
  StoreOptions options;
  options.workers = 2;
  options.shards_per_table = 3;
  options.memory_budget_bytes = memory_budget_bytes;
  options.clock = [] { return kNowMs; };
  return options;
}

model::IndexSchema by_driver() {
  return {"driver",
          {{"driver", model::KeyType::kString}, model::KeyAttribute{"speedKph", model::KeyType::kNumber}},
          false,
          model::ProjectionType::kAll,
          {}};
}

/// Whether the item has a place in by_driver().
bool has_driver(const Item& item) {
  const auto driver = item.find("driver");
  const auto speed = item.find("speedKph");
  return driver != item.end() && driver->second.type == model::AttributeType::kString && speed != item.end() &&
         speed->second.type == model::AttributeType::kNumber;
}

/// By vehicle and time.
using Items = std::map<std::pair<std::string, std::string>, Item>;

class IndexFillingTest : public testing::Test {
 protected:
  ~IndexFillingTest() override {
    table_.reset();
    store_.reset();
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }

  void open_in_memory() {
    store_ = Store::open(options());
    table_ = store_->create_table(test::telemetry_schema({test::depot_index()})).value();
  }

  /// Again, as after a kill.
  void open_durable(std::uint64_t memory_budget_bytes = std::uint64_t{1} << 30) {
    if (directory_.empty()) {
      std::string pattern = (std::filesystem::temp_directory_path() / "drover-filling-XXXXXX").string();
      directory_ = mkdtemp(pattern.data());
    }
    table_.reset();
    store_.reset();
    store_ = std::move(Store::open(directory_ + "/store", options(memory_budget_bytes)).value());
    table_ = store_->find_table("telemetry");
    if (table_ == nullptr) table_ = store_->create_table(test::telemetry_schema({test::depot_index()})).value();
  }

  void checkpoint() {
    auto cut = store_->cut(kDrainMs);
    ASSERT_TRUE(cut.ok()) << cut.status().message();
    ASSERT_TRUE((*cut)->write({}).ok());
  }

  Item random_item() {
    Item item{{"n", number(static_cast<std::int64_t>(random_() % 1'000))}};
    if (random_() % 8 != 0) item.emplace("driver", text("D-" + std::to_string(random_() % 20)));
    if (random_() % 8 != 0) item.emplace("speedKph", number(static_cast<std::int64_t>(random_() % 100)));
    if (random_() % 30 == 0) item.insert_or_assign("driver", number(7));  // no key of the index
    return item;
  }
  std::string random_vehicle() { return "VEH#" + std::to_string(random_() % 50); }
  std::string random_time(unsigned below) { return "TS#" + std::to_string(1'000'000 + random_() % below); }

  /// Rows of the stream.
  void stream(int rows, unsigned times) {
    test::BatchBuilder batch(store_->names());
    for (int i = 0; i < rows; ++i) {
      const bool remove = random_() % 10 == 0;
      ++offset_;
      batch.add(random_vehicle(), random_time(times), remove ? Item{} : random_item(),
                Version::of(kNowMs - 1'000'000 + static_cast<std::int64_t>(offset_), SourceId{1}, offset_),
                remove ? model::kRowTombstone : 0);
    }
    ASSERT_TRUE(test::feed(*table_, batch.take()));
  }
  void write(unsigned times) {
    Item item = random_item();
    if (item.contains("driver") && item.at("driver").type == model::AttributeType::kNumber) item.erase("driver");
    if (random_() % 3 == 0) {
      ASSERT_TRUE(test::remove(*table_, random_vehicle(), random_time(times)).ok());
    } else {
      ASSERT_TRUE(
          test::put(*table_, random_vehicle(), random_time(times), test::encode_attributes(item, store_->names()))
              .ok());
    }
  }

  void wait_for(std::string_view index) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kDrainMs);
    while (table_->is_filling(index) && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_FALSE(table_->is_filling(index));
    ASSERT_TRUE(store_->drain(kDrainMs));
  }

  Items items(std::string_view index) {
    const model::TableSchema& schema = table_->schema();
    ItemReader reader(schema, index.empty() ? nullptr : schema.find_index(index), store_->names());
    Items found;
    const model::Status status = table_->scan(index, 0, model::kSegments, std::nullopt, [&](const StoredItem& stored) {
      Item item = reader.to_item(stored);
      const std::pair key(item.at("vehicleId").bytes, item.at("recordedAt").bytes);
      EXPECT_TRUE(found.emplace(key, std::move(item)).second) << "twice: " << key.first << ' ' << key.second;
      return true;
    });
    EXPECT_TRUE(status.ok()) << status.message();
    return found;
  }

  void expect_complete() {
    Items expected = items("");
    std::erase_if(expected, [](const auto& item) { return !has_driver(item.second); });
    const Items found = items("driver");
    EXPECT_FALSE(expected.empty());
    EXPECT_EQ(found.size(), expected.size());
    EXPECT_TRUE(found == expected);
  }

  /// Keeps the writer of a vehicle's shard until the function that it returns is called.
  std::function<void()> hold_writer(const std::string& vehicle) {
    auto release = std::make_shared<std::promise<void>>();
    auto begun = std::make_shared<std::promise<void>>();
    auto done = std::make_shared<std::promise<void>>();
    ItemWrite write;
    write.partition_key = vehicle;
    write.sort_key = "META";
    write.decide = [=, held = std::make_shared<std::future<void>>(release->get_future())](auto) {
      begun->set_value();
      held->wait();
      return ItemWrite::Decision{};
    };
    write.done = [done](const model::Status&) { done->set_value(); };
    EXPECT_TRUE(table_->write(std::move(write)).ok());
    begun->get_future().wait();
    return [release, done] {
      release->set_value();
      done->get_future().wait();
    };
  }

  std::string directory_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<Table> table_;
  std::mt19937 random_{11};
  std::uint64_t offset_ = 0;
};

TEST_F(IndexFillingTest, AnIndexThatIsAddedHasWhatWasThere) {
  open_in_memory();
  stream(8'000, 3'000);
  ASSERT_TRUE(store_->create_index("telemetry", by_driver()).ok());
  EXPECT_NE(table_->schema().find_index("driver"), nullptr);
  wait_for("driver");
  expect_complete();
}

TEST_F(IndexFillingTest, WritesMeanwhileAreInItOnceAndAsTheyAreLast) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    random_.seed(seed);
    open_in_memory();
    stream(8'000, 300);
    ASSERT_TRUE(store_->drain(kDrainMs));
    const auto release = hold_writer("VEH#1");  // the others fill meanwhile
    ASSERT_TRUE(store_->create_index("telemetry", by_driver()).ok());
    for (int i = 0; i < 4; ++i) stream(200, 300);
    release();
    for (int i = 0; i < 8; ++i) {
      stream(200, 300);
      for (int j = 0; j < 5; ++j) write(300);
    }
    wait_for("driver");
    expect_complete();
    for (int j = 0; j < 20; ++j) write(300);
    expect_complete();
    table_.reset();
  }
}

TEST_F(IndexFillingTest, AnIndexThatIsFilledAnswersNothing) {
  open_in_memory();
  stream(1'000, 100);
  const auto release = hold_writer("VEH#1");
  ASSERT_TRUE(store_->create_index("telemetry", by_driver()).ok());
  EXPECT_TRUE(table_->is_filling("driver"));
  const auto see = [](const StoredItem&) { return true; };
  EXPECT_EQ(table_->read("driver", "D-1", {}, true, see).code(), StatusCode::kUnavailable);
  EXPECT_EQ(table_->scan("driver", 0, model::kSegments, std::nullopt, see).code(), StatusCode::kUnavailable);
  EXPECT_TRUE(table_->read("depot", "DEP-1", {}, true, see).ok()) << "others answer";
  release();
  wait_for("driver");
  expect_complete();
}

TEST_F(IndexFillingTest, AnIndexMayGoWhileItIsFilledAndComeAgain) {
  open_in_memory();
  stream(5'000, 1'000);
  const auto release = hold_writer("VEH#1");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(store_->create_index("telemetry", by_driver()).ok());
    ASSERT_TRUE(store_->delete_index("telemetry", "driver").ok());
  }
  EXPECT_EQ(table_->schema().find_index("driver"), nullptr);
  EXPECT_EQ(table_->read("driver", "D-1", {}, true, [](const StoredItem&) { return true; }).code(),
            StatusCode::kNotFound);
  ASSERT_TRUE(store_->create_index("telemetry", by_driver()).ok());
  stream(1'000, 1'000);
  release();
  wait_for("driver");
  expect_complete();
}

TEST_F(IndexFillingTest, WhatIsWrongIsRefused) {
  open_in_memory();
  EXPECT_EQ(store_->create_index("nothing", by_driver()).code(), StatusCode::kNotFound);
  EXPECT_EQ(store_->create_index("telemetry", test::depot_index()).code(), StatusCode::kExists);
  model::IndexSchema wrong = by_driver();
  wrong.key.partition_key = {"recordedAt", model::KeyType::kNumber};  // a string in the table
  EXPECT_EQ(store_->create_index("telemetry", wrong).code(), StatusCode::kInvalid);
  EXPECT_EQ(store_->delete_index("nothing", "depot").code(), StatusCode::kNotFound);
  EXPECT_EQ(store_->delete_index("telemetry", "driver").code(), StatusCode::kNotFound);
  EXPECT_EQ(table_->schema().indexes.size(), 1u);
}

TEST_F(IndexFillingTest, WritesOfATableThatLosesAnIndexAreAcknowledged) {
  open_in_memory();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(store_->create_index("telemetry", by_driver()).ok());
    stream(2'000, 1'000);
    std::thread writer([&] {
      for (int j = 0; j < 50; ++j) {
        EXPECT_TRUE(
            test::put(*table_, "VEH#" + std::to_string(j), "META",
                      test::encode_attributes({{"driver", text("D-1")}, {"speedKph", number(j)}}, store_->names()))
                .ok());
      }
    });
    ASSERT_TRUE(store_->delete_index("telemetry", "driver").ok());
    writer.join();
  }
  EXPECT_TRUE(store_->drain(kDrainMs));
}

TEST_F(IndexFillingTest, ATableMayGoWhileAnIndexIsFilled) {
  open_in_memory();
  stream(8'000, 1'000);
  ASSERT_TRUE(store_->create_index("telemetry", by_driver()).ok());
  ASSERT_TRUE(store_->delete_table("telemetry").ok());
  EXPECT_TRUE(store_->drain(kDrainMs));
}

TEST_F(IndexFillingTest, ItGoesOnAfterARestart) {
  open_durable();
  stream(8'000, 3'000);
  ASSERT_TRUE(store_->drain(kDrainMs));
  checkpoint();
  for (int round = 0; round < 4; ++round) {
    SCOPED_TRACE(round);
    ASSERT_TRUE(store_->create_index("telemetry", by_driver()).ok());
    for (int i = 0; i < 5; ++i) write(3'000);
    if (round % 2 == 1) checkpoint();  // of a part of it, most likely
    for (int i = 0; i < 5; ++i) write(3'000);
    open_durable(round < 2 ? std::uint64_t{1} << 30 : std::uint64_t{1} << 20);
    ASSERT_NE(table_->schema().find_index("driver"), nullptr);
    for (int i = 0; i < 5; ++i) write(3'000);
    wait_for("driver");
    expect_complete();
    ASSERT_TRUE(store_->delete_index("telemetry", "driver").ok());
  }
}

TEST_F(IndexFillingTest, OnceACutHasItAStartServesItAtOnce) {
  open_durable();
  stream(5'000, 1'000);
  ASSERT_TRUE(store_->create_index("telemetry", by_driver()).ok());
  wait_for("driver");
  open_durable();
  wait_for("driver");
  EXPECT_EQ(items("").size(), 0u) << "the stream was in no cut";
  stream(5'000, 1'000);
  ASSERT_TRUE(store_->drain(kDrainMs));
  checkpoint();
  open_durable();
  EXPECT_FALSE(table_->is_filling("driver"));
  expect_complete();
}

TEST_F(IndexFillingTest, AnIndexThatWasDeletedIsGoneAfterARestart) {
  open_durable();
  stream(5'000, 1'000);
  ASSERT_TRUE(store_->create_index("telemetry", by_driver()).ok());
  wait_for("driver");
  checkpoint();
  ASSERT_TRUE(store_->delete_index("telemetry", "depot").ok());
  open_durable();
  EXPECT_EQ(table_->schema().find_index("depot"), nullptr);
  EXPECT_FALSE(table_->is_filling("driver"));
  expect_complete();
  ASSERT_TRUE(store_->delete_index("telemetry", "driver").ok());
  ASSERT_TRUE(store_->create_index("telemetry", by_driver()).ok());
  wait_for("driver");
  expect_complete();
}

}  // namespace
}  // namespace drover::store

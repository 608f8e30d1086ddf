#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
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

namespace drover::store {
namespace {

using model::Item;
using model::SourceId;
using model::Version;
using test::number;
using test::text;

constexpr std::int64_t kTimeoutMs = 60'000;
constexpr int kRounds = 6;
constexpr unsigned kVehicles = 30;
constexpr unsigned kTimes = 100;

model::IndexSchema by_driver() {
  return {"driver", {{"driver", model::KeyType::kString}, std::nullopt}, false, model::ProjectionType::kAll, {}};
}

std::string vehicle_of(unsigned n) {
  return "VEH#" + std::to_string(n % kVehicles);
}
std::string time_of(unsigned n) {
  return "TS#" + std::to_string(1'000 + n % kTimes);
}
Item item_of(unsigned n) {
  Item item{{"n", number(n)}};
  if (n % 5 != 0) item.emplace("driver", text("D-" + std::to_string(n % 7)));
  return item;
}

using Items = std::map<std::pair<std::string, std::string>, Item>;

Items items_of(const Table& table, const model::AttributeNames& names, std::string_view index) {
  const model::TableSchema& schema = table.schema();
  ItemReader reader(schema, index.empty() ? nullptr : schema.find_index(index), names);
  Items items;
  const model::Status status = table.scan(index, 0, model::kSegments, std::nullopt, [&](const StoredItem& stored) {
    Item item = reader.to_item(stored);
    const std::pair key(item.at("vehicleId").bytes, item.at("recordedAt").bytes);
    EXPECT_TRUE(items.emplace(key, std::move(item)).second);
    return true;
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return items;
}

// Goal: a race between the shards of a table, which go over to an index one by one and fill it, and the stream, API
// writes, readers of the index and its removal; an entry that is lost, left behind, or there twice.
// Method: a feeder, a writer that moves and deletes, and a reader run throughout; meanwhile an index comes and, when it
// can be read, goes, again and again. The last one stays, and is compared with the table once all is still.
TEST(IndexStress, AnIndexThatComesAndGoesUnderLoadEndsComplete) {
  StoreOptions options;
  options.workers = 3;
  options.shards_per_table = 4;
  const auto store = Store::open(options);
  const auto table = store->create_table(test::telemetry_schema({test::depot_index()})).value();
  std::atomic<bool> stop{false};

  std::thread feeder([&] {
    std::mt19937 random(1);
    for (std::uint64_t offset = 1; !stop.load();) {
      test::BatchBuilder batch(store->names());
      for (int i = 0; i < 100; ++i, ++offset) {
        const auto n = static_cast<unsigned>(random());
        batch.add(vehicle_of(n), time_of(n / kVehicles), item_of(n / 7),
                  Version::of(static_cast<std::int64_t>(offset), SourceId{1}, offset));
      }
      EXPECT_TRUE(test::feed(*table, batch.take()));
    }
  });
  std::thread writer([&] {
    std::mt19937 random(2);
    while (!stop.load()) {
      const auto n = static_cast<unsigned>(random());
      const model::Status status = n % 3 == 0 ? test::remove(*table, vehicle_of(n), time_of(n / kVehicles))
                                              : test::put(*table, vehicle_of(n), time_of(n / kVehicles),
                                                          test::encode_attributes(item_of(n / 7), store->names()));
      EXPECT_TRUE(status.ok()) << status.message();
    }
  });
  std::thread reader([&] {
    while (!stop.load()) {
      std::uint64_t found = 0;
      // Whether it is there or not, filled or not.
      (void)table->read("driver", "D-1", {}, true, [&](const StoredItem&) { return ++found, true; });
      (void)table->scan("driver", 0, model::kSegments, std::nullopt, [&](const StoredItem&) { return ++found < 100; });
      (void)store->stats();
    }
  });

  const auto wait_until_filled = [&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kTimeoutMs);
    while (table->is_filling("driver") && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_FALSE(table->is_filling("driver"));
  };
  for (int round = 0; round < kRounds; ++round) {
    EXPECT_TRUE(store->create_index("telemetry", by_driver()).ok());
    if (round % 3 != 0) wait_until_filled();
    EXPECT_TRUE(store->delete_index("telemetry", "driver").ok());
  }
  EXPECT_TRUE(store->create_index("telemetry", by_driver()).ok());
  wait_until_filled();
  stop.store(true);
  for (std::thread* thread : {&feeder, &writer, &reader}) thread->join();
  ASSERT_TRUE(store->drain(kTimeoutMs));
  Items expected = items_of(*table, store->names(), "");
  std::erase_if(expected, [](const auto& item) { return !item.second.contains("driver"); });
  EXPECT_TRUE(items_of(*table, store->names(), "driver") == expected);
}

// Goal: a checkpoint that is still at an index that goes, or that says too early that one has everything; what a start
// makes of it.
// Method: API writes and checkpoints, one after the other, run throughout while an index comes and goes; then the store
// is opened again as after a kill, and the index that stayed is compared with the table.
TEST(IndexStress, CheckpointsMeetIndexesThatComeAndGo) {
  std::string directory = (std::filesystem::temp_directory_path() / "drover-index-XXXXXX").string();
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  StoreOptions options;
  options.workers = 3;
  options.shards_per_table = 4;
  auto store = Store::open(directory + "/store", options).value();
  auto table = store->create_table(test::telemetry_schema({test::depot_index()})).value();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    std::mt19937 random(2);
    while (!stop.load()) {
      const auto n = static_cast<unsigned>(random());
      EXPECT_TRUE(test::put(*table, vehicle_of(n), time_of(n / kVehicles),
                            test::encode_attributes(item_of(n / 7), store->names()))
                      .ok());
    }
  });
  std::thread checkpointer([&] {
    while (!stop.load()) {
      const auto cut = store->cut(kTimeoutMs);
      EXPECT_TRUE(cut.ok() && (*cut)->write({}).ok());
    }
  });
  for (int round = 0; round < kRounds * 4; ++round) {
    EXPECT_TRUE(store->create_index("telemetry", by_driver()).ok());
    while (round % 3 != 0 && table->is_filling("driver")) std::this_thread::yield();
    EXPECT_TRUE(store->delete_index("telemetry", "driver").ok());
  }
  EXPECT_TRUE(store->create_index("telemetry", by_driver()).ok());
  stop.store(true);
  writer.join();
  checkpointer.join();
  table.reset();
  store.reset();

  store = Store::open(directory + "/store", options).value();
  table = store->find_table("telemetry");
  while (table->is_filling("driver")) std::this_thread::yield();
  Items expected = items_of(*table, store->names(), "");
  std::erase_if(expected, [](const auto& item) { return !item.second.contains("driver"); });
  EXPECT_FALSE(expected.empty());
  EXPECT_TRUE(items_of(*table, store->names(), "driver") == expected);
  table.reset();
  store.reset();
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace drover::store

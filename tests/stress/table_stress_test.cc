#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "drover/model/key.h"
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

constexpr std::int64_t kDrainMs = 60'000;
constexpr int kFeeders = 2;
constexpr int kVehiclesPerFeeder = 4;
constexpr int kVehicles = kFeeders * kVehiclesPerFeeder;
constexpr int kBatches = 60;
constexpr int kRowsPerBatch = 60;
constexpr int kReadings = kBatches * kRowsPerBatch / kVehiclesPerFeeder;  // of one vehicle
constexpr int kDepots = 3;

std::string vehicle_of(int n) {
  return "VEH#" + std::to_string(n);
}
std::string depot_of(int vehicle) {
  return "DEP-" + std::to_string(vehicle % kDepots);
}
std::string time_of(int n) {
  return "TS#" + std::to_string(1'000'000 + n);
}

/// Attributes that tell whether they belong together.
Item reading(int n) {
  return {
      {"n", number(n)}, {"thrice", number(3 * n)}, {"note", text(std::string(static_cast<std::size_t>(n % 50), 'x'))}};
}

model::Bytes count_attributes(std::int64_t count, model::AttributeNames& names) {
  return test::encode_attributes({{"count", number(count)}, {"thrice", number(3 * count)}}, names);
}

std::int64_t integer(const Item& item, const std::string& name) {
  return static_cast<std::int64_t>(item.at(name).number.coefficient()) *
         (item.at(name).number.exponent() == 0
              ? 1
              : std::int64_t(
                    std::stoll("1" + std::string(static_cast<std::size_t>(item.at(name).number.exponent()), '0'))));
}

class TableStress : public testing::Test {
 protected:
  TableStress()
      : store_(Store::open({.workers = 2, .shards_per_table = 3, .inbox_batches = 2})),
        table_(store_->create_table(test::telemetry_schema({test::depot_index()})).value()) {}

  model::AttributeNames& names() { return store_->names(); }

  void put_meta() {
    test::BatchBuilder batch(names());
    for (int vehicle = 0; vehicle < kVehicles; ++vehicle) {
      batch.add(vehicle_of(vehicle), "META", {{"depotCode", text(depot_of(vehicle))}}, Version::of(1, SourceId{1}, 0));
    }
    ASSERT_TRUE(test::feed(*table_, batch.take()));
    ASSERT_TRUE(store_->drain(kDrainMs));
  }

  /// Feeds the readings of this feeder's vehicles, each vehicle's in order of time.
  void feed_readings(int feeder) {
    std::vector<int> next(kVehiclesPerFeeder);
    for (int b = 0; b < kBatches; ++b) {
      test::BatchBuilder batch(names());
      for (int row = 0; row < kRowsPerBatch; ++row) {
        const int mine = row % kVehiclesPerFeeder;
        const int n = next[static_cast<std::size_t>(mine)]++;
        batch.add(
            vehicle_of(feeder * kVehiclesPerFeeder + mine), time_of(n), reading(n),
            Version::of(2 + n, SourceId{static_cast<std::uint16_t>(1 + feeder)}, static_cast<std::uint64_t>(row)));
      }
      ASSERT_TRUE(test::feed(*table_, batch.take()));
    }
  }

  std::unique_ptr<Store> store_;
  std::shared_ptr<Table> table_;
};

void check_reading(const Item& item, int vehicle) {
  const std::int64_t n = integer(item, "n");
  ASSERT_EQ(item.at("recordedAt").bytes, time_of(static_cast<int>(n)));
  ASSERT_EQ(integer(item, "thrice"), 3 * n);
  ASSERT_EQ(item.at("note").bytes.size(), static_cast<std::size_t>(n % 50));
  ASSERT_EQ(item.at("depotCode").bytes, depot_of(vehicle));
}

/// One reader's looks; remembers what it has seen, so that nothing may vanish again.
class Reader {
 public:
  Reader(const Table& table, const model::AttributeNames& names, std::uint32_t seed)
      : table_(table), names_(names), random_(seed) {}

  void look() {
    const int vehicle = std::uniform_int_distribution<int>(0, kVehicles - 1)(random_);
    switch (std::uniform_int_distribution<int>(0, 9)(random_)) {
      case 0:
        return look_at_collection(vehicle);
      case 1:
        return look_at_depot(vehicle % kDepots);
      case 2:
        return scan();
      default:
        return look_at_newest(vehicle);
    }
  }

 private:
  /// META, then every reading from the first to the last that was applied: one view has no gap.
  void look_at_collection(int vehicle) {
    const std::vector<Item> items = test::read_items(table_, names_, "", vehicle_of(vehicle));
    ASSERT_EQ(items.at(0).at("recordedAt").bytes, "META");
    for (std::size_t i = 1; i < items.size(); ++i) {
      ASSERT_EQ(items[i].at("recordedAt").bytes, time_of(static_cast<int>(i) - 1));
      check_reading(items[i], vehicle);
    }
    grow(readings_[static_cast<std::size_t>(vehicle)], static_cast<int>(items.size()) - 1);
  }

  void look_at_newest(int vehicle) {
    ItemReader reader(table_.schema(), nullptr, names_);
    std::vector<Item> items;
    const KeyRange readings{KeyRange::Bound{"TS#"}, std::nullopt};
    ASSERT_TRUE(table_
                    .read("", vehicle_of(vehicle), readings, false,
                          [&](const StoredItem& item) {
                            items.push_back(reader.to_item(item));
                            return items.size() < 10;
                          })
                    .ok());
    for (std::size_t i = 0; i < items.size(); ++i) {
      check_reading(items[i], vehicle);
      ASSERT_EQ(integer(items[i], "n"), integer(items[0], "n") - static_cast<std::int64_t>(i));
    }
    if (!items.empty())
      grow(readings_[static_cast<std::size_t>(vehicle)], static_cast<int>(integer(items[0], "n")) + 1);
  }

  void look_at_depot(int depot) {
    const std::vector<Item> items = test::read_items(table_, names_, "depot", "DEP-" + std::to_string(depot));
    for (std::size_t i = 0; i < items.size(); ++i) {
      const int vehicle = std::stoi(items[i].at("vehicleId").bytes.substr(4));
      if (items[i].contains("n")) {
        check_reading(items[i], vehicle);
      }
      ASSERT_EQ(vehicle % kDepots, depot);
      if (i == 0) continue;
      const auto key = [&](const Item& item) {
        return std::tie(item.at("recordedAt").bytes, item.at("vehicleId").bytes);
      };
      ASSERT_LT(key(items[i - 1]), key(items[i]));
    }
    grow(entries_[static_cast<std::size_t>(depot)], static_cast<int>(items.size()));
  }

  void scan() {
    int items = 0;
    std::tuple<model::KeyHash, std::string, std::string> last;
    ASSERT_TRUE(table_
                    .scan("", 0, model::kSegments, std::nullopt,
                          [&](const StoredItem& item) {
                            std::tuple<model::KeyHash, std::string, std::string> at(
                                model::hash_key(item.partition_key), item.partition_key, item.row.sort_key());
                            EXPECT_LT(last, at);
                            last = std::move(at);
                            ++items;
                            return true;
                          })
                    .ok());
    grow(scanned_, items);
  }

  static void grow(int& before, int now) {
    ASSERT_GE(now, before);
    before = now;
  }

  const Table& table_;
  const model::AttributeNames& names_;
  std::mt19937 random_;
  std::vector<int> readings_ = std::vector<int>(kVehicles);
  std::vector<int> entries_ = std::vector<int>(kDepots);
  int scanned_ = 0;
};

// Goal: readers see whole items, in order, without gaps, and never fewer than before, in the table and in its index,
// while
//       several threads feed it; and no API write's update is lost among them.
// Method: feeders submit each vehicle's readings in order, through inboxes of two batches; writers increment shared
// counters
//         by what their decision sees; readers check every answer. At the end everything fed must be there once.
TEST_F(TableStress, ReadersSeeConsistentCollectionsWhileFeedersAndWritersWork) {
  constexpr int kWriters = 2;
  constexpr int kCounters = 3;
  constexpr int kIncrements = 400;
  put_meta();
  std::atomic<bool> done{false};
  std::vector<std::thread> working;
  std::vector<std::thread> reading;
  for (int feeder = 0; feeder < kFeeders; ++feeder) working.emplace_back([this, feeder] { feed_readings(feeder); });
  for (int writer = 0; writer < kWriters; ++writer) {
    working.emplace_back([this] {
      for (int i = 0; i < kIncrements; ++i) {
        const std::string counter = "COUNTER#" + std::to_string(i % kCounters);
        ASSERT_TRUE(test::write_and_wait(*table_, counter, "count", [this](std::optional<std::string_view> present) {
                      const std::int64_t count =
                          present ? integer(test::decode_attributes(*present, names()), "count") : 0;
                      return ItemWrite::Decision{ItemWrite::Action::kPut, count_attributes(count + 1, names())};
                    }).ok());
      }
    });
  }
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    reading.emplace_back([&, seed] {
      Reader reader(*table_, names(), seed);
      while (!done.load() && !HasFatalFailure()) reader.look();
      for (int i = 0; i < 20; ++i) reader.look();
    });
  }
  for (std::thread& thread : working) thread.join();
  EXPECT_TRUE(store_->drain(kDrainMs));
  done.store(true);
  for (std::thread& thread : reading) thread.join();

  for (int vehicle = 0; vehicle < kVehicles; ++vehicle) {
    EXPECT_EQ(test::read_items(*table_, names(), "", vehicle_of(vehicle)).size(),
              static_cast<std::size_t>(kReadings) + 1);
  }
  std::size_t entries = 0;
  for (int depot = 0; depot < kDepots; ++depot) {
    entries += test::read_items(*table_, names(), "depot", "DEP-" + std::to_string(depot)).size();
  }
  EXPECT_EQ(entries, static_cast<std::size_t>(kVehicles * (kReadings + 1)));
  std::int64_t increments = 0;
  for (int counter = 0; counter < kCounters; ++counter) {
    const std::vector<Item> items = test::read_items(*table_, names(), "", "COUNTER#" + std::to_string(counter));
    ASSERT_EQ(items.size(), 1u);
    increments += integer(items[0], "count");
    EXPECT_EQ(integer(items[0], "thrice"), 3 * integer(items[0], "count"));
  }
  EXPECT_EQ(increments, kWriters * kIncrements);
  const StoreStats stats = store_->stats();
  EXPECT_EQ(stats.rows_stored, static_cast<std::uint64_t>(kVehicles * (kReadings + 1)));
  EXPECT_EQ(stats.rows_repeated + stats.rows_conflicting + stats.rows_late + stats.rows_refused, 0u);
}

// Goal: an index entry that moves is never missing for good, never left behind, and the base never waits for ever.
// Method: API writers move a few items between depots while feeders load the same index shards through inboxes of two
//         batches. After each acknowledged move its writer looks at the index itself. At the end the index must be what
//         follows from the table.
TEST_F(TableStress, MovingIndexEntriesEndWhereTheirItemsSay) {
  constexpr int kWriters = 2;
  constexpr int kMoves = 250;
  put_meta();
  std::vector<std::thread> working;
  for (int feeder = 0; feeder < kFeeders; ++feeder) working.emplace_back([this, feeder] { feed_readings(feeder); });
  for (int writer = 0; writer < kWriters; ++writer) {
    working.emplace_back([this, writer] {
      const std::string key = "MOVING#" + std::to_string(writer);
      for (int i = 0; i < kMoves; ++i) {
        const std::string depot = key + "@" + std::to_string(i % 7);
        ASSERT_TRUE(
            test::put(*table_, key, "TS#1", test::encode_attributes({{"depotCode", text(depot)}}, names())).ok());
        ASSERT_EQ(test::read_items(*table_, names(), "depot", depot).size(), 1u);
        const std::string left = key + "@" + std::to_string((i + 6) % 7);
        ASSERT_TRUE(test::read_items(*table_, names(), "depot", left).empty());
      }
    });
  }
  for (std::thread& thread : working) thread.join();
  ASSERT_TRUE(store_->drain(kDrainMs));
  EXPECT_EQ(table_->size("depot").items, table_->size("").items);
  EXPECT_EQ(table_->size("").items, static_cast<std::uint64_t>(kVehicles * (kReadings + 1) + kWriters));
}

// Goal: a table may be deleted at any moment, whoever uses it.
// Method: tables are made and deleted while feeders, writers and readers use whatever table there is; each accepted
// write
//         must be acknowledged once, and the store must come to rest.
TEST_F(TableStress, TablesMayBeDeletedUnderLoad) {
  constexpr int kTables = 25;
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> acknowledged{0};
  const auto user = [&](const std::function<void(const std::shared_ptr<Table>&, int)>& use) {
    return [&, use] {
      for (int i = 0; !done.load(); ++i) {
        if (const std::shared_ptr<Table> table = store_->find_table("telemetry")) {
          use(table, i);
        } else {
          std::this_thread::yield();
        }
      }
    };
  };
  std::vector<std::thread> users;
  users.emplace_back(user([&](const std::shared_ptr<Table>& table, int i) {
    test::BatchBuilder batch(names());
    for (int n = 0; n < 40; ++n) {
      batch.add(vehicle_of(n % kVehicles), time_of(40 * i + n), {{"depotCode", text(depot_of(n))}},
                Version::of(i, SourceId{1}, 0));
    }
    test::feed(*table, batch.take());
  }));
  users.emplace_back(user([&](const std::shared_ptr<Table>& table, int i) {
    const Item attributes{{"depotCode", text(depot_of(i))}};
    ItemWrite write{vehicle_of(i % kVehicles), time_of(i),
                    [encoded = test::encode_attributes(attributes, names())](auto) {
                      return ItemWrite::Decision{ItemWrite::Action::kPut, encoded};
                    },
                    [&](model::Status) { ++acknowledged; }};
    if (table->write(std::move(write)).ok()) {
      ++accepted;
    }
  }));
  users.emplace_back(user([&](const std::shared_ptr<Table>& table, int i) {
    test::read_items(*table, names(), i % 2 == 0 ? "depot" : "", i % 2 == 0 ? depot_of(i) : vehicle_of(i % kVehicles));
    store_->stats();
  }));
  std::vector<std::shared_ptr<Table>> deleted;  // held, so that nothing is tidied up only by their end
  for (int n = 0; n < kTables; ++n) {
    deleted.push_back(table_);
    ASSERT_TRUE(store_->delete_table("telemetry").ok());
    table_ = store_->create_table(test::telemetry_schema({test::depot_index()})).value();
    const std::uint64_t before = accepted.load();
    while (accepted.load() < before + 50) std::this_thread::yield();
  }
  done.store(true);
  for (std::thread& thread : users) thread.join();
  EXPECT_TRUE(store_->drain(kDrainMs));
  deleted.clear();
  table_.reset();
  store_.reset();
  EXPECT_EQ(accepted, acknowledged);
}

}  // namespace
}  // namespace drover::store

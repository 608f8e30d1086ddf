#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "drover/store/store.h"
#include "tests/support/rows.h"
#include "tests/support/seeds.h"
#include "tests/support/tables.h"
#include "tests/support/temporary_directory.h"

// A store that is closed without a word and opened again, beside one in memory that never was.
namespace drover::store {
namespace {

using model::Item;
using model::SourceId;
using model::SourcePosition;
using model::StatusCode;
using model::Version;
using Directory = test::TemporaryDirectory;
using test::number;
using test::text;

constexpr std::int64_t kTimeoutMs = 20'000;
constexpr std::int64_t kFirstLogTimeMs = 1'000'000;

std::atomic<std::int64_t> clock_ms{kFirstLogTimeMs};

/// `memory_budget_bytes`: small enough, and everything that has settled is encoded, and left to the disk.
StoreOptions options(std::uint64_t memory_budget_bytes = std::uint64_t{1} << 30) {
  return {.workers = 2, .shards_per_table = 3, .memory_budget_bytes = memory_budget_bytes, .clock = [] {
            return clock_ms.load();
          }};
}

struct Record {
  std::uint16_t source = 1;
  std::string vehicle;
  std::string sort_key;
  Item attributes;
  std::uint8_t flags = 0;
};

struct StoredRow {
  std::string partition_key;
  std::string sort_key;
  Item attributes;
  friend bool operator==(const StoredRow&, const StoredRow&) = default;
};
void PrintTo(const StoredRow& row, std::ostream* out) {
  *out << row.partition_key << " / " << row.sort_key << " (" << row.attributes.size() << " attributes)";
}

/// Everything in the table or in one index, in its order.
std::vector<StoredRow> rows_of(Store& store, std::string_view index) {
  std::vector<StoredRow> rows;
  const auto table = store.find_table("telemetry");
  const model::Status status = table->scan(index, 0, model::kSegments, std::nullopt, [&](const StoredItem& item) {
    rows.push_back({std::string(item.partition_key), std::string(item.row.sort_key()),
                    test::decode_attributes(item.row.attributes(), store.names())});
    return true;
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return rows;
}

/// One source's records, and a store that is fed with them.
class Fed {
 public:
  explicit Fed(std::unique_ptr<Store> store) : store_(std::move(store)) {
    if (store_->find_table("telemetry") == nullptr) {
      EXPECT_TRUE(store_->create_table(test::telemetry_schema({test::depot_index()})).ok());
    }
  }

  Store& store() { return *store_; }

  void feed(const std::vector<Record>& records, std::size_t begin, std::size_t end) {
    test::BatchBuilder builder(store_->names());
    bool any = false;
    for (std::size_t i = begin; i < end; ++i) {
      const Record& record = records[i];
      const auto position = positions_.find(record.source);
      if (position != positions_.end() && static_cast<std::int64_t>(i) < position->second) continue;
      builder.add(record.vehicle, record.sort_key, record.attributes,
                  Version::of(kFirstLogTimeMs + static_cast<std::int64_t>(i), SourceId{record.source}, i),
                  record.flags);
      any = true;
    }
    if (any) {
      EXPECT_TRUE(test::feed(*store_->find_table("telemetry"), builder.take()));
    }
    EXPECT_TRUE(store_->drain(kTimeoutMs));
  }

  /// Offsets are the records' places in the list, which all sources share.
  void skip_to(const std::vector<SourcePosition>& positions) {
    for (const SourcePosition& position : positions) positions_[position.source.value] = position.next_offset;
  }

 private:
  std::unique_ptr<Store> store_;
  std::map<std::uint16_t, std::int64_t> positions_;
};

std::vector<SourcePosition> positions_at(std::size_t next) {
  const auto offset = static_cast<std::int64_t>(next);
  return {{"telemetry", 0, SourceId{1}, offset, kFirstLogTimeMs + offset},
          {"telemetry", 1, SourceId{2}, offset, kFirstLogTimeMs + offset}};
}

std::unique_ptr<Store> open(const Directory& directory, const StoreOptions& with = options()) {
  auto store = Store::open(directory.path(), with);
  EXPECT_TRUE(store.ok()) << store.status().message();
  return std::move(store).value();
}

void cut(Store& store, std::size_t next) {
  auto cut = store.cut(kTimeoutMs);
  ASSERT_TRUE(cut.ok()) << cut.status().message();
  const model::Status status = (*cut)->write(positions_at(next));
  ASSERT_TRUE(status.ok()) << status.message();
}

class DurableStoreRandom : public testing::TestWithParam<std::uint32_t> {};

TEST_P(DurableStoreRandom, EndsAsOneInMemoryWhateverItsCutsAndDeaths) {
  std::mt19937 random(GetParam());
  const auto below = [&random](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  const Directory directory;
  const std::uint32_t vehicles = 1 + below(below(2) == 0 ? 3 : 30);
  const StoreOptions with = below(2) == 0 ? options() : options(below(2) * 200'000);
  // Of none, one or both of the sources; what unites has more keys that come again.
  const std::uint32_t uniting = below(2) == 0 ? 0 : 1 + below(2);
  Fed expected(Store::open(options()));
  auto actual = std::make_unique<Fed>(open(directory, with));
  std::vector<Record> records;
  std::int64_t newest = 0;
  for (int step = 0; step < 120; ++step) {
    ++clock_ms;
    const std::uint32_t what = below(100);
    if (what < 55) {
      const std::size_t begin = records.size();
      for (std::uint32_t n = below(400); n > 0; --n) {
        Record record{static_cast<std::uint16_t>(1 + below(2)), "VEH#" + std::to_string(below(vehicles)), {}, {}, 0};
        if (below(40) == 0) {
          record.sort_key = "META";
          record.attributes = {{"depotCode", text("DEP-" + std::to_string(below(3)))}, {"model", text("Actros")}};
        } else {
          const std::int64_t time = below(10) == 0 ? below(static_cast<std::uint32_t>(newest + 1)) : ++newest;
          record.sort_key = "TS#" + std::to_string(1'000'000 + time);
          record.attributes = {{"speedKph", number(below(3) == 0 ? 7 : below(100))}};
          if (below(4) == 0) record.attributes.emplace("note", text(std::string(below(60), 'x')));
          if (record.source <= uniting) {
            record.flags = model::kRowUnites;
            record.sort_key = "TS#" + std::to_string(1'000'000 + newest - below(9));
            if (below(3) == 0) record.attributes.erase("speedKph");
            if (below(9) == 0) record.attributes.emplace("depotCode", text("DEP-" + std::to_string(below(3))));
          }
        }
        records.push_back(std::move(record));
      }
      expected.feed(records, begin, records.size());
      actual->feed(records, begin, records.size());
    } else if (what < 75) {
      const std::string vehicle = "VEH#" + std::to_string(below(vehicles));
      const std::string key = "TS#" + std::to_string(1'000'000 + below(static_cast<std::uint32_t>(newest + 1)));
      const bool remove = below(3) == 0;
      const std::int64_t value = below(100);
      for (Fed* fed : {&expected, actual.get()}) {
        const auto table = fed->store().find_table("telemetry");
        const model::Status status =
            remove ? test::remove(*table, vehicle, key)
                   : test::put(*table, vehicle, key,
                               test::encode_attributes({{"written", number(value)}}, fed->store().names()));
        ASSERT_TRUE(status.ok()) << status.message();
      }
    } else if (what < 78) {
      const std::string vehicle = "VEH#" + std::to_string(below(vehicles));
      for (Fed* fed : {&expected, actual.get()}) {
        ASSERT_TRUE(test::erase(*fed->store().find_table("telemetry"), vehicle).ok());
      }
    } else if (what < 88) {
      cut(actual->store(), records.size());
    } else {
      actual.reset();
      actual = std::make_unique<Fed>(open(directory, with));
      EXPECT_TRUE(actual->store().recovery().damaged.empty());
      actual->skip_to(actual->store().recovery().positions);
      actual->feed(records, 0, records.size());
      ASSERT_EQ(rows_of(actual->store(), ""), rows_of(expected.store(), ""));
      ASSERT_EQ(rows_of(actual->store(), "depot"), rows_of(expected.store(), "depot"));
      ASSERT_EQ(actual->store().find_table("telemetry")->size("").items,
                expected.store().find_table("telemetry")->size("").items);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, DurableStoreRandom, test::seeds(16));

/// Readings of one vehicle, ever later.
std::vector<Record> readings(int count) {
  std::vector<Record> records;
  for (int n = 0; n < count; ++n) {
    records.push_back({1, "VEH#1", "TS#" + std::to_string(10'000'000 + n), {{"speedKph", number(n % 90)}}, 0});
  }
  return records;
}

TEST(DurableStore, LeavesOldReadingsToTheDiskAndAnswersFromThere) {
  const Directory directory;
  const std::vector<Record> records = readings(20'000);
  Fed fed(open(directory, options(0)));
  for (std::size_t begin = 0; begin < records.size(); begin += 5'000) {
    fed.feed(records, begin, begin + 5'000);
    cut(fed.store(), begin + 5'000);
  }
  for (int settling = 0; settling < 3; ++settling) {
    fed.feed(readings(20'001 + settling), 20'000 + static_cast<std::size_t>(settling),
             20'001 + static_cast<std::size_t>(settling));
    cut(fed.store(), 20'001 + static_cast<std::size_t>(settling));
  }
  EXPECT_LT(fed.store().stats().memory_bytes, 100'000u);  // of 1.2 MB of rows
  const auto rows = rows_of(fed.store(), "");
  ASSERT_EQ(rows.size(), 20'003u);
  for (std::size_t n = 0; n < rows.size(); ++n) ASSERT_EQ(rows[n].sort_key, "TS#" + std::to_string(10'000'000 + n));

  // A late reading and an overwrite land among what is on disk.
  ASSERT_TRUE(test::put(*fed.store().find_table("telemetry"), "VEH#1", "TS#10000007x",
                        test::encode_attributes({{"speedKph", number(1)}}, fed.store().names()))
                  .ok());
  ASSERT_TRUE(test::put(*fed.store().find_table("telemetry"), "VEH#1", "TS#10000009",
                        test::encode_attributes({{"speedKph", number(-1)}}, fed.store().names()))
                  .ok());
  const auto changed = rows_of(fed.store(), "");
  ASSERT_EQ(changed.size(), 20'004u);
  EXPECT_EQ(changed[8].sort_key, "TS#10000007x");
  EXPECT_EQ(changed[10].attributes.at("speedKph"), number(-1));
}

// Goal: late rows that a cut finds gathered, and not merged yet, are there after a restart, hide what they hid, and
// count
//       as they did; the rows that come then meet them.
TEST(DurableStore, LateRowsOutliveARestart) {
  const Directory directory;
  std::vector<Record> records = readings(600);
  for (int n = 0; n < 10; ++n) {
    records.push_back({1, "VEH#1", "TS#" + std::to_string(10'000'100 + 40 * n) + "x", {{"speedKph", number(-n)}}});
    records.push_back({1, "VEH#1", "TS#" + std::to_string(10'000'101 + 40 * n), {{"note", text("corrected")}}});
  }
  records.push_back({1, "VEH#1", "META", {{"depotCode", text("DEP-1")}}});
  std::vector<StoredRow> rows;
  Table::Size size;
  {
    Fed fed(open(directory, options(0)));
    fed.feed(records, 0, records.size());
    ASSERT_TRUE(test::remove(*fed.store().find_table("telemetry"), "VEH#1", "TS#10000007").ok());
    cut(fed.store(), records.size());
    rows = rows_of(fed.store(), "");
    size = fed.store().find_table("telemetry")->size("");
    ASSERT_EQ(rows.size(), 610u);
    ASSERT_EQ(size.items, 610u);
  }
  Fed fed(open(directory, options(0)));
  EXPECT_TRUE(fed.store().recovery().damaged.empty());
  EXPECT_EQ(rows_of(fed.store(), ""), rows);
  EXPECT_EQ(fed.store().find_table("telemetry")->size("").items, size.items);
  EXPECT_EQ(fed.store().find_table("telemetry")->size("").bytes, size.bytes);

  // So many more that those are merged; and some of the same again.
  fed.skip_to(positions_at(records.size()));
  const std::size_t begin = records.size();
  for (int n = 0; n < 100; ++n) {
    records.push_back({1, "VEH#1", "TS#" + std::to_string(10'000'100 + 4 * n) + "x", {{"speedKph", number(n)}}});
  }
  fed.feed(records, begin, records.size());
  EXPECT_EQ(rows_of(fed.store(), "").size(), 700u);
  EXPECT_EQ(fed.store().find_table("telemetry")->size("").items, 700u);
}

TEST(DurableStore, KeepsAnAcknowledgedWriteWithoutACut) {
  const Directory directory;
  {
    Fed fed(open(directory));
    ASSERT_TRUE(test::put(*fed.store().find_table("telemetry"), "VEH#1", "META",
                          test::encode_attributes({{"depotCode", text("DEP-1")}}, fed.store().names()))
                    .ok());
  }
  Fed fed(open(directory));
  EXPECT_EQ(fed.store().recovery().writes, 1u);
  const auto rows = rows_of(fed.store(), "");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].attributes.at("depotCode"), text("DEP-1"));
}

TEST(DurableStore, StampsWhatComesAfterTheRestartFromTheMetaInFrontOfIt) {
  const Directory directory;
  std::vector<Record> records{{1, "VEH#1", "META", {{"depotCode", text("DEP-1")}}},
                              {1, "VEH#1", "TS#1", {{"speedKph", number(1)}}},
                              {1, "VEH#1", "TS#2", {{"speedKph", number(2)}}}};
  {
    Fed fed(open(directory));
    fed.feed(records, 0, 2);
    cut(fed.store(), 2);
  }
  Fed fed(open(directory));
  fed.feed(records, 2, 3);
  const auto rows = rows_of(fed.store(), "depot");
  EXPECT_EQ(rows.size(), 3u);  // META among them: its sort key is its recordedAt
}

TEST(DurableStore, KnowsTheNamesThatATableBroughtAfterASecondRestart) {
  const Directory directory;
  { Fed fed(open(directory)); }  // the table is on the disk, the name that it inherits is not yet
  const auto attributes = [](Store& store) {
    return test::encode_attributes({{"zone", text("N")}, {"depotCode", text("DEP-1")}}, store.names());
  };
  {
    Fed fed(open(directory));
    ASSERT_TRUE(test::put(*fed.store().find_table("telemetry"), "VEH#1", "META", attributes(fed.store())).ok());
  }
  {
    Fed fed(open(directory));
    ASSERT_TRUE(test::put(*fed.store().find_table("telemetry"), "VEH#2", "META", attributes(fed.store())).ok());
    cut(fed.store(), 0);
  }
  Fed fed(open(directory));
  const auto rows = rows_of(fed.store(), "");
  ASSERT_EQ(rows.size(), 2u);
  for (const StoredRow& row : rows) {
    EXPECT_EQ(row.attributes, (Item{{"zone", text("N")}, {"depotCode", text("DEP-1")}}));
  }
}

TEST(DurableStore, MakesIndexesAnewAtEachStartUntilACutContainsThem) {
  const Directory directory;
  std::vector<Record> records;
  for (int n = 0; n < 20'000; ++n) {  // more than fits into one batch of entries
    records.push_back({1,
                       "VEH#" + std::to_string(n % 3),
                       "TS#" + std::to_string(10'000'000 + n),
                       {{"depotCode", text("DEP-" + std::to_string(n % 2))}}});
  }
  std::vector<StoredRow> before;
  {
    Fed fed(open(directory));
    fed.feed(records, 0, records.size());
    before = rows_of(fed.store(), "depot");
    ASSERT_EQ(before.size(), records.size());
    cut(fed.store(), records.size());
    const auto table = fed.store().find_table("telemetry");
    ASSERT_TRUE(test::remove(*table, "VEH#0", "TS#10000000").ok());  // behind the cut, in the log
  }
  std::erase_if(before, [](const StoredRow& row) { return row.sort_key.find("TS#10000000") != std::string::npos; });
  ASSERT_TRUE(Store::rebuild(directory.path(), {}).ok());
  for (int start = 0; start < 3; ++start) {
    const auto store = open(directory);
    const auto table = store->find_table("telemetry");
    for (int i = 0; i < 30'000 && table->is_filling("depot"); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_EQ(rows_of(*store, "depot"), before) << start;
    if (start == 1) cut(*store, records.size());
  }
}

/// How many items of a vehicle the table and the index have.
std::pair<std::size_t, std::size_t> items_of(Store& store, const std::string& vehicle) {
  std::pair<std::size_t, std::size_t> items;
  for (const StoredRow& row : rows_of(store, "")) items.first += row.partition_key == vehicle ? 1 : 0;
  for (const StoredRow& row : rows_of(store, "depot")) {
    items.second += row.sort_key.find(vehicle) != std::string::npos ? 1 : 0;
  }
  return items;
}

TEST(DurableStore, WhatWasErasedStaysAwayHoweverOftenItIsReadAgain) {
  const Directory directory;
  std::vector<Record> records;
  for (int n = 0; n < 20'000; ++n) {  // the erased one's are more than a turn removes
    records.push_back(
        {1, "VEH#" + std::to_string(n % 2), "TS#" + std::to_string(10'000'000 + n), {{"depotCode", text("DEP-1")}}});
  }
  using Items = std::pair<std::size_t, std::size_t>;
  const Items none{0, 0};
  const Items all{10'000, 10'000};
  {
    Fed fed(open(directory, options(0)));
    fed.feed(records, 0, 15'000);
    cut(fed.store(), 15'000);
    fed.feed(records, 15'000, records.size());
    ASSERT_EQ(items_of(fed.store(), "VEH#1"), all);
    const model::Status erased = test::erase(*fed.store().find_table("telemetry"), "VEH#1");
    ASSERT_TRUE(erased.ok()) << erased.message();
    EXPECT_EQ(items_of(fed.store(), "VEH#1"), none);
    EXPECT_EQ(items_of(fed.store(), "VEH#0"), all);
    fed.feed(records, 0, records.size());
    EXPECT_EQ(items_of(fed.store(), "VEH#1"), none);
  }
  for (int start = 0; start < 3; ++start) {  // from the log, then from a cut
    Fed fed(open(directory, options(0)));
    EXPECT_EQ(items_of(fed.store(), "VEH#1"), none) << start;
    fed.feed(records, 0, records.size());
    EXPECT_EQ(items_of(fed.store(), "VEH#1"), none) << start;
    EXPECT_EQ(items_of(fed.store(), "VEH#0"), all) << start;
    cut(fed.store(), records.size());
  }
  Fed fed(open(directory));
  records.push_back({1, "VEH#1", "TS#0", {{"depotCode", text("DEP-2")}}});  // comes later, whatever its own time
  fed.feed(records, 0, records.size());
  EXPECT_EQ(items_of(fed.store(), "VEH#1"), (Items{1, 1}));
}

TEST(DurableStore, AnApiWriteBehindAnErasureSurvivesAStart) {
  const Directory directory;
  const std::vector<Record> records = readings(10);
  clock_ms = kFirstLogTimeMs;  // behind the vehicle's
  {
    Fed fed(open(directory));
    fed.feed(records, 0, records.size());
    ASSERT_TRUE(test::erase(*fed.store().find_table("telemetry"), "VEH#1").ok());
    ASSERT_TRUE(test::put(*fed.store().find_table("telemetry"), "VEH#1", "META",
                          test::encode_attributes({{"plate", text("LA21 LLT")}}, fed.store().names()))
                    .ok());
  }
  Fed fed(open(directory));
  fed.feed(records, 0, records.size());
  const auto rows = rows_of(fed.store(), "");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].sort_key, "META");
}

TEST(DurableStore, RefusesADirectoryThatIsOpenElsewhere) {
  const Directory directory;
  const auto first = open(directory);
  const auto second = Store::open(directory.path(), options());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find("another Drover has it open"), std::string::npos)
      << second.status().message();
}

TEST(DurableStore, MakesNoCutWhileTheLastOneIsNotWritten) {
  const Directory directory;
  const auto store = open(directory);
  auto first = store->cut(kTimeoutMs);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(store->cut(kTimeoutMs).status().code(), StatusCode::kInvalid);
  ASSERT_TRUE((*first)->write({}).ok());
  EXPECT_TRUE(store->cut(kTimeoutMs).ok());
}

/// Changes a byte in the middle of each file of the directory that ends so; how many.
int damage(const Directory& directory, const std::string& extension) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    if (entry.path().extension() != extension || entry.file_size() == 0) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    const auto middle = static_cast<std::streamoff>(entry.file_size() / 2);
    file.seekg(middle);
    const char byte = static_cast<char>(file.get() ^ 0x55);
    file.seekp(middle);
    file.put(byte);
    ++files;
  }
  return files;
}

TEST(DurableStore, NamesADamagedBlockAndServesTheRest) {
  const Directory directory;
  const std::vector<Record> records = readings(30'000);
  {
    Fed fed(open(directory));
    fed.feed(records, 0, records.size());
    cut(fed.store(), records.size());
  }
  { const auto flushed = open(directory); }  // what is in RocksDB's log is in files of its own from here on
  ASSERT_GT(damage(directory, ".blob"), 0);
  Fed fed(open(directory));
  ASSERT_FALSE(fed.store().recovery().damaged.empty());
  EXPECT_NE(fed.store().recovery().damaged[0].find("VEH#1"), std::string::npos) << fed.store().recovery().damaged[0];
  const auto rows = rows_of(fed.store(), "");
  EXPECT_GT(rows.size(), 28'000u);
  EXPECT_LT(rows.size(), 30'000u);
  EXPECT_EQ(rows.front().sort_key, records.front().sort_key);
  EXPECT_EQ(rows.back().sort_key, records.back().sort_key);
}

/// While it lives, no file of the process grows beyond a size, as on a full device.
class FullDevice {
 public:
  FullDevice() {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit none = before_;
    none.rlim_cur = 1;
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDevice() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST(DurableStore, GoesOnWhenAFullDeviceHasRoomAgain) {
  const Directory directory;
  const std::vector<Record> records = readings(3'000);
  {
    Fed fed(open(directory));
    fed.feed(records, 0, 1'000);
    cut(fed.store(), 1'000);
    fed.feed(records, 1'000, 2'000);
    const auto table = fed.store().find_table("telemetry");
    auto second = fed.store().cut(kTimeoutMs);
    ASSERT_TRUE(second.ok());
    {
      const FullDevice full;
      EXPECT_EQ((*second)->write(positions_at(2'000)).code(), StatusCode::kUnavailable);
      EXPECT_EQ(test::put(*table, "VEH#2", "META", test::encode_attributes({}, fed.store().names())).code(),
                StatusCode::kUnavailable);
      EXPECT_EQ(fed.store().create_table(test::telemetry_schema()).status().code(), StatusCode::kExists);
      EXPECT_EQ(rows_of(fed.store(), "").size(), 2'001u);  // reads go on; the write may be there or not: it is
    }
    const model::Status again = (*second)->write(positions_at(2'000));
    ASSERT_TRUE(again.ok()) << again.message();
    // Writes are refused until the log's thread has found that it can write again.
    const auto put = [&] {
      return test::put(*table, "VEH#3", "META", test::encode_attributes({}, fed.store().names()));
    };
    for (int tries = 0; !put().ok(); ++tries) {
      ASSERT_LT(tries, 1'000);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    fed.feed(records, 2'000, 3'000);
  }
  Fed fed(open(directory));
  EXPECT_EQ(fed.store().recovery().positions[0].next_offset, 2'000);
  fed.skip_to(fed.store().recovery().positions);
  fed.feed(records, 0, records.size());
  const auto rows = rows_of(fed.store(), "");
  EXPECT_GE(rows.size(), 3'001u);
  EXPECT_LE(rows.size(), 3'002u);
}

TEST(DurableStore, ARepeatedDeleteIsAsDurableAsTheFirstOne) {
  const Directory directory;
  {
    Fed fed(open(directory));
    const auto table = fed.store().find_table("telemetry");
    ASSERT_TRUE(test::put(*table, "VEH#1", "META", test::encode_attributes({}, fed.store().names())).ok());
    cut(fed.store(), 0);
    {
      const FullDevice full;
      EXPECT_EQ(test::remove(*table, "VEH#1", "META").code(), StatusCode::kUnavailable);
    }
    for (int tries = 0; !test::remove(*table, "VEH#1", "META").ok(); ++tries) {
      ASSERT_LT(tries, 1'000);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  Fed fed(open(directory));
  EXPECT_TRUE(rows_of(fed.store(), "").empty());
}

TEST(DurableStore, ForgetsADeletedTable) {
  const Directory directory;
  {
    Fed fed(open(directory));
    fed.feed({{1, "VEH#1", "TS#1", {{"speedKph", number(1)}}}}, 0, 1);
    cut(fed.store(), 1);
    ASSERT_TRUE(fed.store().delete_table("telemetry").ok());
  }
  Fed fed(open(directory));  // makes it anew
  EXPECT_TRUE(rows_of(fed.store(), "").empty());
}

TEST(DurableStore, ForgetsATableThatIsDeletedBetweenTheCutAndItsWriting) {
  const Directory directory;
  {
    Fed fed(open(directory));
    fed.feed({{1, "VEH#1", "TS#1", {{"speedKph", number(1)}}}}, 0, 1);
    auto cut = fed.store().cut(kTimeoutMs);
    ASSERT_TRUE(cut.ok());
    ASSERT_TRUE(fed.store().delete_table("telemetry").ok());
    ASSERT_TRUE((*cut)->write(positions_at(1)).ok());
  }
  for (int again = 0; again < 2; ++again) {
    Fed fed(open(directory));
    EXPECT_TRUE(rows_of(fed.store(), "").empty());
    EXPECT_TRUE(fed.store().recovery().damaged.empty());
  }
}

}  // namespace
}  // namespace drover::store

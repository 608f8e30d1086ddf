#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "disk.h"
#include "drover/store/item.h"
#include "drover/store/store.h"
#include "open_on.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/rows.h"
#include "tests/support/seeds.h"
#include "tests/support/tables.h"

// A durable store whose device fails, fills up, reads wrong bytes or loses power.
namespace drover::store {
namespace {

using model::Item;
using model::SourceId;
using model::SourcePosition;
using model::StatusCode;
using test::Faults;
using test::number;
using test::text;

constexpr std::int64_t kTimeoutMs = 20'000;
constexpr std::int64_t kFirstLogTimeMs = 1'000'000;

/// No memory for what has settled: it is read from the disk.
constexpr std::uint64_t kNoMemory = 0;
constexpr std::uint64_t kMuchMemory = std::uint64_t{1} << 30;

StoreOptions options(std::uint64_t memory_budget_bytes) {
  return {.workers = 2, .shards_per_table = 3, .memory_budget_bytes = memory_budget_bytes, .clock = [] {
            return kFirstLogTimeMs;
          }};
}

struct Record {
  std::string vehicle;
  std::string sort_key;
  Item attributes;
};

void make_table(Store& store) {
  if (store.find_table("telemetry") != nullptr) return;
  const auto made = store.create_table(test::telemetry_schema({test::depot_index()}));
  ASSERT_TRUE(made.ok()) << made.status().message();
}

/// Feeds the records of [begin, end), whose offsets are their places in the list.
void feed(Store& store, const std::vector<Record>& records, std::size_t begin, std::size_t end) {
  test::BatchBuilder builder(store.names());
  for (std::size_t i = begin; i < end; ++i) {
    builder.add(records[i].vehicle, records[i].sort_key, records[i].attributes,
                model::Version::of(kFirstLogTimeMs + static_cast<std::int64_t>(i), SourceId{1}, i));
  }
  if (begin < end) {
    ASSERT_TRUE(test::feed(*store.find_table("telemetry"), builder.take()));
  }
  ASSERT_TRUE(store.drain(kTimeoutMs));
}

std::vector<SourcePosition> position_at(std::size_t next) {
  const auto offset = static_cast<std::int64_t>(next);
  return {{"telemetry", 0, SourceId{1}, offset, kFirstLogTimeMs + offset}};
}

void cut(Store& store, std::size_t next) {
  auto cut = store.cut(kTimeoutMs);
  ASSERT_TRUE(cut.ok()) << cut.status().message();
  const model::Status status = (*cut)->write(position_at(next));
  ASSERT_TRUE(status.ok()) << status.message();
}

model::Status put(Store& store, const std::string& vehicle, const std::string& sort_key, const std::string& value) {
  return test::put(*store.find_table("telemetry"), vehicle, sort_key,
                   test::encode_attributes({{"written", text(value)}}, store.names()));
}

/// Puts until that works again, by itself.
void put_when_writable(Store& store) {
  model::Status status = put(store, "VEH#0", "PROBE", "1");
  for (int tries = 0; !status.ok(); ++tries, status = put(store, "VEH#0", "PROBE", "1")) {
    ASSERT_EQ(status.code(), StatusCode::kUnavailable) << status.message();
    ASSERT_LT(tries, 1'000) << status.message();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

using Items = std::map<std::string, Item>;  ///< By vehicle and sort key.

/// What the table or an index holds. An item that is there twice fails the test.
Items items_of(Store& store, std::string_view index) {
  const auto table = store.find_table("telemetry");
  ItemReader reader(table->schema(), index.empty() ? nullptr : table->schema().find_index(index), store.names());
  Items items;
  const model::Status status = table->scan(index, 0, model::kSegments, std::nullopt, [&](const StoredItem& stored) {
    Item item = reader.to_item(stored);
    const std::string key = item.at("vehicleId").bytes + " " + item.at("recordedAt").bytes;
    EXPECT_TRUE(items.emplace(key, std::move(item)).second) << key << " is there twice";
    return true;
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return items;
}

bool is_written_by_api(const std::string& key) {
  return key.find(" API") != std::string::npos || key.find(" PROBE") != std::string::npos;
}

/// A directory on a device that fails when it is told to.
class Device {
 public:
  explicit Device(std::uint32_t seed)
      : files_(std::make_shared<test::FaultyFileSystem>(seed)), env_(rocksdb::NewCompositeEnv(files_)) {
    std::string pattern = (std::filesystem::temp_directory_path() / "drover-faults-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Device() { std::filesystem::remove_all(path_); }

  test::FaultyFileSystem& files() { return *files_; }
  std::string directory() const { return path_ + "/store"; }

  model::Result<std::unique_ptr<Store>> try_open(std::uint64_t memory_budget_bytes) {
    auto disk = Disk::open(directory(), env_.get());
    if (!disk.ok()) return disk.status();
    return open_on(std::move(disk).value(), options(memory_budget_bytes));
  }
  std::unique_ptr<Store> open(std::uint64_t memory_budget_bytes) {
    auto store = try_open(memory_budget_bytes);
    EXPECT_TRUE(store.ok()) << store.status().message();
    if (!store.ok()) return nullptr;
    return std::move(store).value();
  }

 private:
  std::string path_;
  std::shared_ptr<test::FaultyFileSystem> files_;
  std::unique_ptr<rocksdb::Env> env_;
};

/// A store on such a device, and what it must hold whatever happens to it.
class Survivor {
 public:
  explicit Survivor(std::uint32_t seed)
      : random_(seed), device_(seed), memory_budget_bytes_(below(2) == 0 ? kNoMemory : kMuchMemory) {
    store_ = device_.open(memory_budget_bytes_);
    make_table(*store_);
  }

  void step() {
    const std::uint32_t what = below(100);
    if (what < 30) {
      feed_more();
    } else if (what < 60) {
      write();
    } else if (what < 74) {
      make_cut();
    } else if (what < 84) {
      device_.files().set(some_faults());
    } else if (what < 88) {
      device_.files().mend();
    } else if (what < 92) {
      expect_stream(records_.size());
    } else {
      restart();
    }
  }

  void end() {
    device_.files().mend();
    put_when_writable(*store_);
    make_cut();
    EXPECT_EQ(positions_.size(), 1u) << "a cut failed on a device that is well";
    restart();
  }

 private:
  using Value = std::optional<std::string>;  ///< Nothing: removed.

  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }

  Faults some_faults() {
    Faults faults;
    const std::uint32_t what = below(4);
    if (what < 3) faults.room_bytes = below(2) == 0 ? below(200) : below(30'000);
    faults.no_space = what == 0;
    faults.changes_fail = what == 1;
    faults.syncs_fail = what >= 2;
    return faults;
  }

  void feed_more() {
    const std::size_t begin = records_.size();
    for (std::uint32_t n = below(300); n > 0; --n) {
      const std::string vehicle = "VEH#" + std::to_string(below(5));
      if (below(40) == 0) {
        records_.push_back({vehicle, "META", {{"depotCode", text("DEP-" + std::to_string(below(3)))}}});
      } else {
        const std::uint32_t time = below(10) == 0 ? below(newest_ + 1) : ++newest_;
        records_.push_back({vehicle, "TS#" + std::to_string(1'000'000 + time), {{"speedKph", number(below(100))}}});
      }
    }
    feed(*store_, records_, begin, records_.size());
  }

  void write() {
    const std::string vehicle = "VEH#" + std::to_string(below(5));
    const std::string sort_key = "API#" + std::to_string(below(6));
    const Value value = below(3) == 0 ? Value() : std::to_string(++written_);
    const model::Status status = value ? put(*store_, vehicle, sort_key, *value)
                                       : test::remove(*store_->find_table("telemetry"), vehicle, sort_key);
    std::set<Value>& values = writes_.try_emplace(vehicle + " " + sort_key, std::set<Value>{{}}).first->second;
    if (status.ok()) values.clear();
    values.insert(value);
    if (!status.ok()) {
      EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.message();
    }
  }

  void make_cut() {
    if (cut_ == nullptr) {
      auto cut = store_->cut(kTimeoutMs);
      ASSERT_TRUE(cut.ok()) << cut.status().message();
      cut_ = std::move(cut).value();
      cut_at_ = records_.size();
    }
    const model::Status status = cut_->write(position_at(cut_at_));
    if (status.ok()) {
      positions_.clear();
      cut_.reset();
    } else {
      EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.message();
    }
    positions_.insert(cut_at_);
  }

  void close(bool with_power) {
    if (!with_power) {
      device_.files().cut_power(device_.directory());
      device_.files().mend();
    }
    cut_.reset();
    store_.reset();
    if (!with_power) device_.files().power_on(device_.directory());
  }

  void restart() {
    close(below(3) == 0);
    for (std::uint32_t failing = below(3); failing > 0; --failing) {
      device_.files().set(some_faults());
      auto store = device_.try_open(memory_budget_bytes_);
      if (!store.ok()) {
        EXPECT_EQ(store.status().code(), StatusCode::kUnavailable) << store.status().message();
      } else {
        store_ = std::move(store).value();
      }
      close(below(2) == 0);
    }
    device_.files().mend();
    store_ = device_.open(memory_budget_bytes_);
    ASSERT_NE(store_, nullptr);
    const Recovery& recovery = store_->recovery();
    EXPECT_TRUE(recovery.damaged.empty()) << recovery.damaged[0];
    const std::size_t position =
        recovery.positions.empty() ? 0 : static_cast<std::size_t>(recovery.positions[0].next_offset);
    EXPECT_TRUE(positions_.contains(position)) << position;
    positions_ = {position};
    expect_stream(position);
    feed(*store_, records_, position, records_.size());
    expect_stream(records_.size());
  }

  /// The stream's items up to `position`, each API write, and an index in step.
  void expect_stream(std::size_t position) {
    const auto in_memory = Store::open(options(kMuchMemory));
    make_table(*in_memory);
    feed(*in_memory, records_, 0, position);
    const Items items = items_of(*store_, "");
    Items stream = items;
    std::erase_if(stream, [](const auto& item) { return is_written_by_api(item.first); });
    EXPECT_EQ(stream, items_of(*in_memory, "")) << "up to " << position;
    for (auto& [key, values] : writes_) {
      const auto found = items.find(key);
      const Value value = found == items.end() ? Value() : found->second.at("written").bytes;
      EXPECT_TRUE(values.contains(value)) << key << " is " << value.value_or("not there");
    }
    Items in_step = items;
    std::erase_if(in_step, [](const auto& item) { return !item.second.contains("depotCode"); });
    EXPECT_EQ(items_of(*store_, "depot"), in_step);
  }

  std::mt19937 random_;
  Device device_;
  const std::uint64_t memory_budget_bytes_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Cut> cut_;  ///< Not written yet.
  std::size_t cut_at_ = 0;
  std::vector<Record> records_;
  std::uint32_t newest_ = 0;
  std::int64_t written_ = 0;
  std::set<std::size_t> positions_{0};             ///< Where the next start may go on.
  std::map<std::string, std::set<Value>> writes_;  ///< What each may be: the last one acknowledged, or failed since.
};

class FaultsRandom : public testing::TestWithParam<std::uint32_t> {};

TEST_P(FaultsRandom, KeepsWhatWasAcknowledgedAndCut) {
  Survivor survivor(GetParam());
  for (int step = 0; step < 60 && !HasFailure(); ++step) survivor.step();
  if (!HasFailure()) survivor.end();
}

INSTANTIATE_TEST_SUITE_P(Seeds, FaultsRandom, test::seeds(4));

/// Readings of one vehicle, ever later.
std::vector<Record> readings(int count) {
  std::vector<Record> records;
  for (int n = 0; n < count; ++n) {
    records.push_back({"VEH#1", "TS#" + std::to_string(10'000'000 + n), {{"speedKph", number(n % 90)}}});
  }
  return records;
}

/// A store whose older readings are on disk only.
std::unique_ptr<Store> open_settled(Device& device, const std::vector<Record>& records) {
  auto store = device.open(kNoMemory);
  make_table(*store);
  const std::size_t settling = records.size() - 4;
  feed(*store, records, 0, settling);
  for (std::size_t end = settling; end <= records.size(); ++end) {
    feed(*store, records, end - 1, end);
    cut(*store, end);
  }
  return store;
}

class FailingDevice : public testing::TestWithParam<Faults> {};

TEST_P(FailingDevice, RefusesWritesAnswersReadsAndResumesByItself) {
  Device device(0);
  const std::vector<Record> records = readings(10'000);
  const auto store = open_settled(device, records);
  ASSERT_TRUE(put(*store, "VEH#2", "API#1", "1").ok());
  device.files().set(GetParam());
  for (int tries = 0; tries < 3; ++tries) {
    EXPECT_EQ(put(*store, "VEH#2", "API#1", "2").code(), StatusCode::kUnavailable);
    EXPECT_EQ(items_of(*store, "").size(), records.size() + 1);
  }
  model::TableSchema another = test::telemetry_schema();
  another.name = "another";
  EXPECT_EQ(store->create_table(another).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(items_of(*store, "").size(), records.size() + 1);
  device.files().mend();
  put_when_writable(*store);
  EXPECT_TRUE(store->create_table(another).ok());
  cut(*store, records.size());
}

std::string name_of(const testing::TestParamInfo<Faults>& fault) {
  const std::vector<std::string> names{"NoSpace", "ShortWrite", "FailingSync", "ReadOnly"};
  return names[fault.index];
}
INSTANTIATE_TEST_SUITE_P(Faults, FailingDevice,
                         testing::Values(Faults{.room_bytes = 0, .no_space = true}, Faults{.room_bytes = 10},
                                         Faults{.syncs_fail = true}, Faults{.room_bytes = 0, .changes_fail = true}),
                         name_of);

TEST(FailingReads, EndAVisitAndTheNextOneGoesOn) {
  Device device(0);
  const std::vector<Record> records = readings(10'000);
  { const auto store = open_settled(device, records); }
  const auto store = device.open(kNoMemory);  // what was in RocksDB's log is in files of its own from here on
  const auto table = store->find_table("telemetry");
  const auto visit = [&] { return table->read("", "VEH#1", {}, true, [](const StoredItem&) { return true; }); };
  for (const Faults& faults : {Faults{.reads_fail = true}, Faults{.flipped = ".blob", .flipped_at = 500}}) {
    device.files().set(faults);
    EXPECT_EQ(visit().code(), StatusCode::kUnavailable) << visit().message();
    ASSERT_TRUE(put(*store, "VEH#2", "API#1", "1").ok());
    device.files().mend();
    EXPECT_TRUE(visit().ok()) << visit().message();
  }
}

class FlippedByte : public testing::TestWithParam<std::uint32_t> {};

TEST_P(FlippedByte, OfATableFileIsNamedAndTheRestServed) {
  Device device(0);
  std::vector<Record> records;
  for (int n = 0; n < 4'000; ++n) {  // tails of many vehicles, each in a segment of its own
    records.push_back({"VEH#" + std::to_string(n % 1'000), "TS#" + std::to_string(n), {{"speedKph", number(n % 90)}}});
  }
  {
    auto store = device.open(kMuchMemory);
    make_table(*store);
    feed(*store, records, 0, records.size());
    cut(*store, records.size());
  }
  { const auto flushed = device.open(kMuchMemory); }
  std::filesystem::directory_entry tails;  // the largest
  std::uintmax_t size = 0;
  for (const auto& file : std::filesystem::directory_iterator(device.directory())) {
    if (file.path().extension() != ".sst" || file.file_size() < size) continue;
    size = file.file_size();
    tails = file;
  }
  device.files().set({.flipped = tails.path().filename().string(), .flipped_at = GetParam()});
  const auto store = device.open(kMuchMemory);
  const Recovery& recovery = store->recovery();
  ASSERT_FALSE(recovery.damaged.empty());
  EXPECT_NE(recovery.damaged[0].find("checksum"), std::string::npos) << recovery.damaged[0];
  const std::size_t items = items_of(*store, "").size();
  EXPECT_LT(items, records.size());
  EXPECT_GT(items, records.size() / 2);
}

INSTANTIATE_TEST_SUITE_P(At, FlippedByte, testing::Values(10u, 300u, 600u, 900u));

}  // namespace
}  // namespace drover::store

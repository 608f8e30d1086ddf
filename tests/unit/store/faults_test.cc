#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "disk.h"
#include "drover/store/item.h"
#include "drover/store/store.h"
#include "open_on.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/rows.h"
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

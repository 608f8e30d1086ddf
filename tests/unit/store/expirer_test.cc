#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "drover/model/key.h"
#include "drover/model/time.h"
#include "drover/store/store.h"
#include "tests/support/rows.h"
#include "tests/support/seeds.h"
#include "tests/support/tables.h"

// Items whose time has come, under a clock that the test turns.
namespace drover::store {
namespace {

using model::Item;
using model::SourceId;
using model::StatusCode;
using model::Version;
using test::number;
using test::text;

constexpr std::int64_t kTimeoutMs = 20'000;
constexpr std::int64_t kNow = 1'782'205'200;  // 2026-06-23T09:00:00Z
constexpr std::int64_t kHourMs = 3'600'000;
constexpr std::int64_t kYear = std::int64_t{365} * 24 * 3600;

std::atomic<std::int64_t> clock_ms{0};

StoreOptions options() {
  return {.workers = 2, .shards_per_table = 3, .clock = [] { return clock_ms.load(); }};
}

model::TableSchema timed_schema(bool indexed) {
  model::TableSchema schema = test::telemetry_schema();
  if (indexed) schema.indexes = {test::depot_index()};
  schema.time_sort_key = model::TimeSortKey{};
  return schema;
}

class ExpirerTest : public testing::Test {
 protected:
  ExpirerTest() {
    clock_ms = kNow * 1000;
    std::string pattern = (std::filesystem::temp_directory_path() / "drover-expirer-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }
  ~ExpirerTest() override {
    table_.reset();
    store_.reset();
    std::filesystem::remove_all(directory_);
  }

  void open(const model::TableSchema& schema) {
    table_.reset();
    store_ = Store::open(options());
    table_ = store_->create_table(schema).value();
  }
  /// On disk; again: what a restart finds.
  void open_on_disk(bool indexed = true, std::uint64_t memory_budget_bytes = std::uint64_t{1} << 30) {
    table_.reset();
    store_.reset();
    StoreOptions with = options();
    with.memory_budget_bytes = memory_budget_bytes;
    auto opened = Store::open(directory_ + "/store", with);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    store_ = std::move(opened).value();
    table_ = store_->find_table("telemetry");
    if (table_ == nullptr) table_ = store_->create_table(timed_schema(indexed)).value();
  }
  void cut() {
    auto cut = store_->cut(kTimeoutMs);
    ASSERT_TRUE(cut.ok()) << cut.status().message();
    ASSERT_TRUE((*cut)->write({}).ok());
  }

  void set_retain(std::int64_t retain_ms) {
    ASSERT_TRUE(store_
                    ->change_retention(table_->schema().name,
                                       [&](model::Retention& retention) {
                                         retention.retain_ms = retain_ms;
                                         return model::Status();
                                       })
                    .ok());
  }
  /// Readings of a vehicle, a minute apart, the last one now.
  void stream(const std::string& vehicle, std::int64_t count) {
    test::BatchBuilder batch(store_->names());
    for (std::int64_t i = count - 1; i >= 0; --i) {
      batch.add(vehicle, key_of(kNow - 60 * i), {{"depotCode", text("DEP-1")}, {"n", number(i)}},
                Version::of(kNow * 1000 - i, SourceId{1}, 0));
    }
    ASSERT_TRUE(test::feed(*table_, batch.take()));
    ASSERT_TRUE(store_->drain(kTimeoutMs));
  }
  static std::string key_of(std::int64_t second) { return model::time_key({}, model::TimeNs{second * 1'000'000'000}); }

  void set_ttl(const std::string& attribute) {
    ASSERT_TRUE(store_
                    ->change_retention(table_->schema().name,
                                       [&](model::Retention& retention) {
                                         retention.ttl_attribute = attribute;
                                         return model::Status();
                                       })
                    .ok());
  }

  void put(const std::string& vehicle, const std::string& sort_key, const Item& attributes) {
    ASSERT_TRUE(test::put(*table_, vehicle, sort_key, test::encode_attributes(attributes, store_->names())).ok());
  }

  /// Rounds until one finds nothing to do.
  void expire() {
    std::uint64_t before = 0;
    do {
      before = expired();
      while (!store_->expire_step()) {
      }
      ASSERT_TRUE(store_->drain(kTimeoutMs));
    } while (expired() != before);
  }
  std::uint64_t expired() const { return store_->stats().spaces.front().items_expired; }

  std::size_t items(std::string_view partition_key, std::string_view index = "") const {
    return test::read_items(*table_, store_->names(), index, partition_key).size();
  }

  std::string directory_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<Table> table_;
};

Item until(std::int64_t second) {
  return {{"until", number(second)}, {"depotCode", text("DEP-1")}};
}

TEST_F(ExpirerTest, AnItemWhoseSecondHasPassedGoesFromTheTableAndItsIndexes) {
  open(test::telemetry_schema({test::depot_index()}));
  set_ttl("until");
  put("VEH#1", "A", until(kNow - 1));
  put("VEH#1", "B", until(kNow));
  put("VEH#1", "C", until(kNow + 100));
  expire();
  EXPECT_EQ(items("VEH#1"), 2u);
  EXPECT_EQ(items("DEP-1", "depot"), 2u);
  clock_ms = (kNow + 101) * 1000;
  EXPECT_EQ(items("VEH#1"), 2u);  // till it is removed it is there, as in DynamoDB
  expire();
  EXPECT_EQ(items("VEH#1"), 0u);
  EXPECT_EQ(items("DEP-1", "depot"), 0u);
  EXPECT_EQ(expired(), 3u);
}

TEST_F(ExpirerTest, OnlyANumberOfTheLastFiveYearsExpiresAnItem) {
  open(test::telemetry_schema());
  set_ttl("until");
  put("VEH#1", "none", {});
  put("VEH#1", "text", {{"until", text(std::to_string(kNow - 1))}});
  put("VEH#1", "zero", until(0));
  put("VEH#1", "six years", until(kNow - 6 * kYear));
  put("VEH#1", "four years", until(kNow - 4 * kYear));
  put("VEH#1", "milliseconds", until((kNow - 1) * 1000));
  put("VEH#1", "fraction",
      {{"until", model::AttributeValue::of_number(model::Decimal::parse(std::to_string(kNow - 1) + ".5").value())}});
  expire();
  EXPECT_EQ(items("VEH#1"), 5u);
  EXPECT_EQ(expired(), 2u);
}

TEST_F(ExpirerTest, ASortKeyThatIsANumberCanBeTheAttribute) {
  model::TableSchema schema = test::telemetry_schema();
  schema.key.sort_key->type = model::KeyType::kNumber;
  schema.inherit = {};
  open(schema);
  set_ttl("recordedAt");
  put("VEH#1", test::number_key(model::Decimal(kNow - 1)), {});
  put("VEH#1", test::number_key(model::Decimal(kNow + 1)), {});
  expire();
  EXPECT_EQ(items("VEH#1"), 1u);
}

TEST_F(ExpirerTest, NothingGoesOnceItIsTurnedOff) {
  open(test::telemetry_schema());
  set_ttl("until");
  set_ttl("");
  put("VEH#1", "A", until(kNow - 1));
  expire();
  EXPECT_EQ(items("VEH#1"), 1u);
}

TEST_F(ExpirerTest, AStepIsBoundedAndARoundMeetsEveryItem) {
  open(test::telemetry_schema());
  set_ttl("until");
  constexpr std::uint64_t kItems = 50'000;
  test::BatchBuilder batch(store_->names());
  for (std::uint64_t i = 0; i < kItems; ++i) {
    const std::string vehicle = i % 2 == 0 ? "VEH#long" : "VEH#" + std::to_string(i);
    batch.add(vehicle, "K" + std::to_string(1'000'000 + i), until(i % 4 == 0 ? kNow - 1 : kNow + 1),
              Version::of(1, SourceId{1}, i));
  }
  ASSERT_TRUE(test::feed(*table_, batch.take()));
  ASSERT_TRUE(store_->drain(kTimeoutMs));
  EXPECT_FALSE(store_->expire_step());
  EXPECT_LT(expired(), kItems / 4);
  expire();
  EXPECT_EQ(expired(), kItems / 4);
  EXPECT_EQ(items("VEH#long"), kItems / 4);
}

TEST_F(ExpirerTest, AReplayDoesNotBringAnExpiredItemBack) {
  open(test::telemetry_schema());
  set_ttl("until");
  const auto stream = [&](const Item& attributes, std::int64_t log_time_ms) {
    test::BatchBuilder batch(store_->names());
    batch.add("VEH#1", "A", attributes, Version::of(log_time_ms, SourceId{1}, 0));
    ASSERT_TRUE(test::feed(*table_, batch.take()));
    ASSERT_TRUE(store_->drain(kTimeoutMs));
  };
  stream(until(kNow + 1000), 1);
  stream(until(kNow - 1), 2);
  expire();
  stream(until(kNow + 1000), 1);
  EXPECT_EQ(items("VEH#1"), 0u);
}

TEST_F(ExpirerTest, AnExpiredItemAndItsIndexEntriesStayGoneAfterARestart) {
  open_on_disk();
  set_ttl("until");
  put("VEH#1", "A", until(kNow - 1));
  put("VEH#1", "B", until(kNow + 100));
  cut();
  expire();
  open_on_disk();  // by the log
  EXPECT_EQ(table_->retention().ttl_attribute, "until");
  EXPECT_EQ(items("VEH#1"), 1u);
  EXPECT_EQ(items("DEP-1", "depot"), 1u);
  cut();
  open_on_disk();  // by the cut
  EXPECT_EQ(items("VEH#1"), 1u);
  EXPECT_EQ(items("DEP-1", "depot"), 1u);
}

TEST_F(ExpirerTest, AChangeThatIsRefusedChangesNothing) {
  open(test::telemetry_schema());
  set_ttl("until");
  const auto refuse = [](model::Retention& retention) {
    retention.ttl_attribute = "other";
    return model::invalid("no");
  };
  EXPECT_EQ(store_->change_retention("telemetry", refuse).code(), StatusCode::kInvalid);
  EXPECT_EQ(table_->retention().ttl_attribute, "until");
  EXPECT_EQ(store_->change_retention("nowhere", refuse).code(), StatusCode::kNotFound);
}

// ---- retain

TEST_F(ExpirerTest, OldReadingsGoAndWhatHasNoTimeInItsKeyStays) {
  for (const bool indexed : {false, true}) {
    open(timed_schema(indexed));
    set_retain(kHourMs);
    put("VEH#1", "META", {{"plate", text("LA21 LLT")}});
    put("VEH#1", "TS#", {});
    put("VEH#1", "TS#someday", {});
    put("VEH#2", key_of(kNow - 3601), {});
    stream("VEH#1", 1000);
    expire();
    EXPECT_EQ(items("VEH#1"), 61u + 3);
    EXPECT_EQ(items("VEH#2"), 0u);
    EXPECT_EQ(items("VEH#1"), table_->size("").items);
    if (indexed) {
      EXPECT_EQ(items("DEP-1", "depot"), 61u);
    }
    EXPECT_EQ(expired(), 940u);
    clock_ms += kHourMs / 2;
    expire();
    EXPECT_EQ(items("VEH#1"), 31u + 3);
    clock_ms = kNow * 1000;
  }
}

TEST_F(ExpirerTest, ALongHistoryLeavesAnIndexedTableInParts) {
  open(timed_schema(true));
  set_retain(kHourMs);
  stream("VEH#1", 20'000);
  expire();
  EXPECT_EQ(items("VEH#1"), 61u);
  EXPECT_EQ(items("DEP-1", "depot"), 61u);
  EXPECT_EQ(expired(), 20'000u - 61);
}

TEST_F(ExpirerTest, WhatATableDoesNotRetainStaysGoneAfterARestart) {
  for (const bool indexed : {false, true}) {
    open_on_disk(indexed);
    stream("VEH#1", 5'000);
    cut();
    cut();  // whose seals have been put in place by now
    set_retain(kHourMs);
    expire();
    const std::size_t left = items("VEH#1");
    EXPECT_LE(left, 61u);
    open_on_disk(indexed);  // from the cut, which holds it all
    EXPECT_EQ(table_->retention().retain_ms, kHourMs);
    EXPECT_EQ(items("VEH#1"), left);
    EXPECT_EQ(table_->size("").items, left);
    if (indexed) {
      EXPECT_EQ(items("DEP-1", "depot"), left);
    }
    cut();
    set_retain(0);
    open_on_disk(indexed);  // from a cut that does not
    EXPECT_EQ(items("VEH#1"), left);
    if (indexed) {
      EXPECT_EQ(items("DEP-1", "depot"), left);
    }
    ASSERT_TRUE(store_->delete_table("telemetry").ok());
  }
}

TEST_F(ExpirerTest, AColdBlockWithYoungReadingsStaysWholeUntilItIsOverdue) {
  open_on_disk(false);
  stream("VEH#1", 5'000);
  const auto bytes = [&] { return store_->stats().memory_bytes; };
  const std::uint64_t plain = bytes();
  cut();
  ASSERT_TRUE(store_->drain(kTimeoutMs));
  // What the seals replaced is freed in a turn in which nobody reads it any more.
  const auto take_a_turn = [&] {
    std::promise<void> done;
    ItemWrite nothing{"VEH#1", "META", [](auto) { return ItemWrite::Decision{}; }, [&](auto) { done.set_value(); }};
    EXPECT_TRUE(table_->write(std::move(nothing)).ok());
    done.get_future().wait();
  };
  for (int turn = 0; turn < 10'000 && bytes() >= plain / 2; ++turn) take_a_turn();
  ASSERT_LT(bytes(), plain / 2);  // sealed in blocks of 512 readings or so: eight hours and a half each
  set_retain(20 * kHourMs);
  expire();
  // A block that reaches beyond 20 hours stays as long as nothing in it is older than 22.
  EXPECT_GE(items("VEH#1"), 20u * 60 + 1);
  EXPECT_LE(items("VEH#1"), 22u * 60 + 1);
  EXPECT_EQ(items("VEH#1"), table_->size("").items);
}

// ---- Beside indexes that come and go, collections with a limit, and erasures

TEST_F(ExpirerTest, WhatGoesNoLongerCountsInACollectionWithALimit) {
  model::TableSchema schema = timed_schema(false);
  schema.indexes = {{"by-n",
                     {{"vehicleId", model::KeyType::kString}, model::KeyAttribute{"n", model::KeyType::kNumber}},
                     true,
                     model::ProjectionType::kAll,
                     {}}};
  store_ = std::move(Store::open(directory_ + "/store", options()).value());
  table_ = store_->create_table(schema).value();
  const auto size_bytes = [this] {
    std::promise<void> done;
    std::uint64_t size = 0;
    ItemWrite nothing{"VEH#1", "META", [](auto) { return ItemWrite::Decision{}; }, [&](auto) { done.set_value(); }};
    nothing.sized = [&](std::uint64_t bytes) { size = bytes; };
    EXPECT_TRUE(table_->write(std::move(nothing)).ok());
    done.get_future().wait();
    return size;
  };
  stream("VEH#1", 5'000);
  cut();
  ASSERT_TRUE(store_->drain(kTimeoutMs));  // sealed: whole cold blocks will go
  const std::uint64_t full = size_bytes();
  set_retain(kHourMs);
  expire();
  const std::uint64_t trimmed = size_bytes();
  EXPECT_EQ(items("VEH#1"), 61u);
  EXPECT_LT(trimmed, full / 50);
  EXPECT_GT(trimmed, full / 100);

  set_ttl("expiresAt");
  put("VEH#1", "ALERT", {{"expiresAt", number(kNow - 1)}});
  EXPECT_GT(size_bytes(), trimmed);
  expire();
  EXPECT_EQ(size_bytes(), trimmed);
  cut();
  open_on_disk();
  EXPECT_EQ(size_bytes(), trimmed) << "as a start measures it";
}

TEST_F(ExpirerTest, AnIndexThatIsFilledMeanwhileHasWhatIsRetained) {
  for (int seed = 0; seed < 4; ++seed) {
    open(timed_schema(false));
    stream("VEH#1", 20'000);
    stream("VEH#2", 3'000);
    set_retain(kHourMs);
    ASSERT_TRUE(store_->create_index("telemetry", test::depot_index()).ok());
    for (int i = 0; i < seed; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    expire();
    while (table_->is_filling("depot")) std::this_thread::yield();
    ASSERT_TRUE(store_->drain(kTimeoutMs));
    EXPECT_EQ(items("VEH#1"), 61u);
    EXPECT_EQ(items("DEP-1", "depot"), 2u * 61);
    EXPECT_EQ(table_->size("depot").items, 2u * 61);
  }
}

TEST_F(ExpirerTest, WhatWasErasedStaysAwayWhenTheCollectionIsTrimmed) {
  for (const bool indexed : {false, true}) {
    open_on_disk(indexed);
    const auto stream_behind = [&](std::int64_t version_ms, std::int64_t count, std::int64_t second) {
      test::BatchBuilder batch(store_->names());
      for (std::int64_t i = count - 1; i >= 0; --i) {
        batch.add("VEH#1", key_of(kNow - 60 * i - second), {{"depotCode", text("DEP-1")}},
                  Version::of(version_ms, SourceId{1}, static_cast<std::uint64_t>(count - i)));
      }
      ASSERT_TRUE(test::feed(*table_, batch.take()));
      ASSERT_TRUE(store_->drain(kTimeoutMs));
    };
    stream_behind(kNow * 1000, 100, 0);
    ASSERT_TRUE(test::erase(*table_, "VEH#1").ok());
    stream_behind(kNow * 1000 + 1, 5'000, 0);
    cut();
    ASSERT_TRUE(store_->drain(kTimeoutMs));  // the marker is in a cold block now
    set_retain(kHourMs);
    expire();
    const std::size_t left = items("VEH#1");
    EXPECT_GE(left, 61u);
    EXPECT_LE(left, 67u);
    stream_behind(kNow * 1000, 30, 30);
    EXPECT_EQ(items("VEH#1"), left);
    cut();
    open_on_disk(indexed);
    stream_behind(kNow * 1000, 30, 30);
    EXPECT_EQ(items("VEH#1"), left);
    ASSERT_TRUE(store_->delete_table("telemetry").ok());
  }
}

TEST_F(ExpirerTest, RetentionAndIndexesKeepEachOtherOnDisk) {
  open_on_disk(false);
  set_retain(kHourMs);
  set_ttl("expiresAt");
  const model::Retention wanted = table_->retention();
  ASSERT_TRUE(store_->create_index("telemetry", test::depot_index()).ok());
  open_on_disk();
  EXPECT_EQ(table_->retention(), wanted);
  set_ttl("");
  open_on_disk();
  EXPECT_NE(table_->schema().find_index("depot"), nullptr);
  table_.reset();
  store_.reset();
  ASSERT_TRUE(Store::rebuild(directory_ + "/store", {}).ok());
  open_on_disk();
  EXPECT_EQ(table_->retention().retain_ms, kHourMs);
  ASSERT_TRUE(store_->delete_index("telemetry", "depot").ok());
  open_on_disk();
  EXPECT_EQ(table_->retention().retain_ms, kHourMs);
  EXPECT_EQ(table_->schema().find_index("depot"), nullptr);
}

TEST_F(ExpirerTest, RetainNeedsATimeSortKey) {
  open(test::telemetry_schema());
  const auto retain = [](model::Retention& retention) {
    retention.retain_ms = kHourMs;
    return model::Status();
  };
  EXPECT_EQ(store_->change_retention("telemetry", retain).code(), StatusCode::kInvalid);
}

class ExpirerRandom : public ExpirerTest, public testing::WithParamInterface<std::uint32_t> {
 protected:
  struct Reading {
    std::string vehicle;
    std::int64_t second;
    std::uint64_t offset;
  };

  void feed(std::vector<Reading>::const_iterator begin, std::vector<Reading>::const_iterator end) {
    test::BatchBuilder batch(store_->names());
    for (; begin != end; ++begin) {
      if (begin->second * 1000 < clock_ms - kRetainMs) continue;  // refused where it is decoded
      batch.add(begin->vehicle, key_of(begin->second), {{"depotCode", text("DEP-1")}},
                Version::of(kNow * 1000, SourceId{1}, begin->offset));
    }
    ASSERT_TRUE(test::feed(*table_, batch.take()));
    ASSERT_TRUE(store_->drain(kTimeoutMs));
  }

  std::vector<std::string> keys(const std::string& partition_key, std::string_view index = "") const {
    std::vector<std::string> keys;
    for (const Item& item : test::read_items(*table_, store_->names(), index, partition_key)) {
      keys.push_back(item.at("recordedAt").bytes);
    }
    return keys;
  }

  static constexpr std::int64_t kRetainMs = 30 * kHourMs;
};

// Goal: between cuts, seals, evictions, trims and deaths no reading is lost too early, kept too long, or left in an
// index. Method: a few vehicles' readings, some late, and a clock that moves on; after each look of the expirer, what
// is there is compared with all that ever was. A death loses what came since the last cut, and all of it is fed again,
// as from Kafka.
TEST_P(ExpirerRandom, WhatIsRetainedIsThereAndWhatIsNotGoes) {
  std::mt19937 random(GetParam());
  const auto below = [&](std::int64_t bound) {
    return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random);
  };
  const bool indexed = GetParam() % 2 == 0;
  const std::uint64_t memory_budget_bytes = GetParam() % 3 == 0 ? 100'000 : std::uint64_t{1} << 30;
  const std::vector<std::string> vehicles{"VEH#1", "VEH#2", "VEH#3"};
  std::vector<Reading> readings;
  std::int64_t second = kNow;
  open_on_disk(indexed, memory_budget_bytes);
  set_retain(kRetainMs);
  for (const std::string& vehicle : vehicles) put(vehicle, "META", {});
  for (int step = 0; step < 25 && !HasFatalFailure(); ++step) {
    const std::int64_t kind = below(10);
    if (kind < 5) {
      const std::size_t begin = readings.size();
      for (const std::int64_t until = second + below(12 * 3600); second < until; second += 60) {
        for (const std::string& vehicle : vehicles) {
          const std::int64_t late = below(50) == 0 ? 1 + below(20 * 3600) : 0;
          if (below(4) != 0) readings.push_back({vehicle, second - late, readings.size()});
        }
      }
      clock_ms = second * 1000;
      feed(readings.begin() + static_cast<std::ptrdiff_t>(begin), readings.end());
    } else if (kind < 7) {
      cut();
    } else if (kind < 8) {
      open_on_disk(indexed, memory_budget_bytes);
      feed(readings.begin(), readings.end());
    }
    clock_ms += kRetainMs / 100;
    second += kRetainMs / 100 / 1000;
    expire();
    const std::string bound = key_of((clock_ms - kRetainMs) / 1000);
    const std::string overdue = key_of((clock_ms - kRetainMs - kRetainMs / 10 - 1) / 1000);
    std::size_t all = 0;
    for (const std::string& vehicle : vehicles) {
      std::set<std::string> retained;
      for (const Reading& reading : readings) {
        if (reading.vehicle == vehicle && key_of(reading.second) >= bound) retained.insert(key_of(reading.second));
      }
      const std::vector<std::string> there = keys(vehicle);
      const auto first = std::lower_bound(there.begin() + 1, there.end(), bound);
      ASSERT_EQ(there.front(), "META");
      ASSERT_EQ(std::vector<std::string>(first, there.end()),
                std::vector<std::string>(retained.begin(), retained.end()))
          << "step " << step;
      ASSERT_GE(there.size() > 1 ? there[1] : overdue, overdue) << "step " << step;
      all += there.size() - 1;
    }
    ASSERT_EQ(table_->size("").items, all + vehicles.size());
    if (indexed) {
      ASSERT_EQ(keys("DEP-1", "depot").size(), all) << "step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ExpirerRandom, test::seeds(6));

}  // namespace
}  // namespace drover::store

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "drover/store/store.h"
#include "tests/support/rows.h"
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
constexpr std::int64_t kYear = std::int64_t{365} * 24 * 3600;

std::atomic<std::int64_t> clock_ms{0};

StoreOptions options() {
  return {.workers = 2, .shards_per_table = 3, .clock = [] { return clock_ms.load(); }};
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
    store_ = Store::open(options());
    table_ = store_->create_table(schema).value();
  }
  /// On disk; again: what a restart finds.
  void open_on_disk() {
    table_.reset();
    store_.reset();
    auto opened = Store::open(directory_ + "/store", options());
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    store_ = std::move(opened).value();
    table_ = store_->find_table("telemetry");
    if (table_ == nullptr) table_ = store_->create_table(test::telemetry_schema({test::depot_index()})).value();
  }
  void cut() {
    auto cut = store_->cut(kTimeoutMs);
    ASSERT_TRUE(cut.ok()) << cut.status().message();
    ASSERT_TRUE((*cut)->write({}).ok());
  }

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

}  // namespace
}  // namespace drover::store

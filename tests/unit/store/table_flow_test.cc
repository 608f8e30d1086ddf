#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "drover/model/clock.h"
#include "drover/store/store.h"
#include "tests/support/rows.h"
#include "tests/support/tables.h"

// What flows through a table when a shard can't go on: its writer is held inside an API write's decision, an index
// shard's inside an acknowledgement, so that every queue behind it fills to its bound.
namespace drover::store {
namespace {

using model::SourceId;
using model::StatusCode;
using model::Version;
using test::number;
using test::text;

constexpr std::int64_t kDrainMs = 20'000;
constexpr std::size_t kInboxBatches = 2;
constexpr std::size_t kIndexInboxBatches = kInboxBatches * 96;  // kIndexInboxFactor, store/src/shard.h

/// Holds the one who passes until it is opened.
class Gate {
 public:
  void pass() {
    reached_.set_value();
    opened_.get_future().wait();
  }
  void wait_until_reached() { reached_.get_future().wait(); }
  void open() { opened_.set_value(); }

 private:
  std::promise<void> reached_;
  std::promise<void> opened_;
};

class TableFlow : public testing::Test {
 protected:
  void open(std::vector<model::IndexSchema> indexes = {}) {
    store_ = Store::open({.workers = 2, .shards_per_table = 1, .inbox_batches = kInboxBatches});
    table_ = store_->create_table(test::telemetry_schema(std::move(indexes))).value();
  }

  /// A batch of one reading, with its depot.
  partitioner::RoutedBatch batch(int n) {
    test::BatchBuilder builder(store_->names());
    builder.add("VEH#1", "TS#" + std::to_string(100'000 + n), {{"depotCode", text("DEP-A")}, {"n", number(n)}},
                Version::of(n, SourceId{1}, 0));
    return std::move(table_->route(builder.take()).front());
  }

  ItemWrite write(std::string sort_key, std::function<void(model::Status)> done) {
    return {"VEH#1", std::move(sort_key),
            [this](auto) {
              return ItemWrite::Decision{ItemWrite::Action::kPut,
                                         test::encode_attributes({{"depotCode", text("DEP-A")}}, store_->names())};
            },
            std::move(done)};
  }

  /// Lets the table's writer stop at `gate` before it takes anything that comes from now on.
  void hold_writer(Gate& gate) {
    ItemWrite held = write("HELD", [this](model::Status) { ++acknowledged_; });
    held.decide = [&gate](auto) {
      gate.pass();
      return ItemWrite::Decision{};
    };
    ASSERT_TRUE(table_->write(std::move(held)).ok());
    gate.wait_until_reached();
  }

  /// Lets the index's writer stop at `gate`, behind one entry.
  void hold_index_writer(Gate& gate) {
    ASSERT_TRUE(table_
                    ->write(write("HELD",
                                  [&](model::Status) {
                                    gate.pass();
                                    ++acknowledged_;
                                  }))
                    .ok());
    gate.wait_until_reached();
  }

  /// Offers a batch until it is taken or a deadline has passed.
  bool submit_in_time(partitioner::RoutedBatch&& batch) {
    const std::int64_t deadline_ns = model::steady_clock_ns() + kDrainMs * 1'000'000;
    while (!table_->submit(std::move(batch)).ok()) {
      if (model::steady_clock_ns() > deadline_ns) return false;
      std::this_thread::yield();
    }
    return true;
  }

  std::size_t items(std::string_view index, std::string_view key) {
    return test::read_items(*table_, store_->names(), index, key).size();
  }

  std::unique_ptr<Store> store_;
  std::shared_ptr<Table> table_;
  std::atomic<int> acknowledged_{0};
};

TEST_F(TableFlow, AFullInboxRefusesABatchWhichIsNotLost) {
  open();
  Gate gate;
  hold_writer(gate);
  for (std::size_t n = 0; n < kInboxBatches; ++n) ASSERT_TRUE(table_->submit(batch(static_cast<int>(n))).ok());
  partitioner::RoutedBatch refused = batch(50);
  EXPECT_EQ(table_->submit(std::move(refused)).code(), StatusCode::kFull);
  ASSERT_NE(refused.rows, nullptr);
  EXPECT_EQ(refused.selected.size(), 1u);
  EXPECT_FALSE(store_->idle());
  EXPECT_FALSE(store_->drain(1));
  EXPECT_EQ(store_->stats().spaces[0].shards[0].queue_depth, kInboxBatches);
  EXPECT_EQ(store_->stats().spaces[0].shards[0].queue_capacity, kInboxBatches);
  gate.open();
  ASSERT_TRUE(submit_in_time(std::move(refused)));
  ASSERT_TRUE(store_->drain(kDrainMs));
  EXPECT_TRUE(store_->idle());
  EXPECT_EQ(items("", "VEH#1"), kInboxBatches + 1);
}

TEST_F(TableFlow, AFullInboxLeavesApiWritesTheirShare) {
  open();
  Gate gate;
  hold_writer(gate);
  while (table_->submit(batch(1)).ok()) {
  }
  std::size_t accepted = 0;
  model::Status status;
  for (;; ++accepted) {
    status =
        table_->write(write("TS#1", [this](model::Status outcome) { acknowledged_ += outcome.ok() ? 1 : 1'000'000; }));
    if (!status.ok()) break;
  }
  EXPECT_EQ(status.code(), StatusCode::kFull);
  EXPECT_EQ(accepted, model::kShardInboxWritesMax);
  gate.open();
  ASSERT_TRUE(store_->drain(kDrainMs));
  table_.reset();
  store_.reset();  // ends the turns, and with them the last acknowledgement
  EXPECT_EQ(acknowledged_, static_cast<int>(accepted) + 1);
}

TEST_F(TableFlow, ABaseShardWaitsForAFullIndexAndGoesOn) {
  open({test::depot_index()});
  Gate gate;
  hold_index_writer(gate);
  // What fits: the index's inbox, the base's outbox (one turn's entries), the base's inbox.
  constexpr int kFits = kIndexInboxBatches + 1 + kInboxBatches;
  for (int n = 0; n < kFits; ++n) ASSERT_TRUE(submit_in_time(batch(n)));
  partitioner::RoutedBatch refused = batch(kFits);
  for (int i = 0; i < 1'000; ++i) ASSERT_EQ(table_->submit(std::move(refused)).code(), StatusCode::kFull);
  EXPECT_EQ(items("", "VEH#1"), kIndexInboxBatches + 2);
  EXPECT_EQ(items("depot", "DEP-A"), 1u);
  EXPECT_FALSE(store_->idle());
  gate.open();
  ASSERT_TRUE(submit_in_time(std::move(refused)));
  ASSERT_TRUE(store_->drain(kDrainMs));
  EXPECT_EQ(items("", "VEH#1"), static_cast<std::size_t>(kFits) + 2);
  EXPECT_EQ(items("depot", "DEP-A"), static_cast<std::size_t>(kFits) + 2);
}

TEST_F(TableFlow, AnIndexEntryShowsThoughItsShardNeverRests) {
  open({test::depot_index()});
  const auto bare = [&](int n) {  // has no place in the index
    test::BatchBuilder builder(store_->names());
    builder.add("VEH#1", "TS#" + std::to_string(200'000 + n), {{"n", number(n)}}, Version::of(n, SourceId{1}, 0));
    return std::move(table_->route(builder.take()).front());
  };
  ASSERT_TRUE(submit_in_time(bare(0)));
  ASSERT_TRUE(submit_in_time(batch(1)));
  const std::int64_t deadline_ns = model::steady_clock_ns() + kDrainMs * 1'000'000;
  for (int n = 1; items("depot", "DEP-A") == 0 && model::steady_clock_ns() < deadline_ns; ++n) {
    ASSERT_TRUE(submit_in_time(bare(n)));
  }
  EXPECT_EQ(items("depot", "DEP-A"), 1u);
}

// The removal that the first delete sent is not in the index yet, which the second one has nothing to add to.
TEST_F(TableFlow, ADeleteThatFindsItsItemGoneWaitsForTheIndexToo) {
  open({test::depot_index()});
  ASSERT_TRUE(submit_in_time(batch(1)));
  ASSERT_TRUE(store_->drain(kDrainMs));
  Gate gate;
  hold_index_writer(gate);
  const auto remove = [&](std::atomic<int>& done, std::atomic<bool>& found) {
    ItemWrite write{"VEH#1", "TS#100001",
                    [&found](std::optional<std::string_view> present) {
                      found = present.has_value();
                      return ItemWrite::Decision{ItemWrite::Action::kDelete, {}};
                    },
                    [&done](const model::Status& status) { done = status.ok() ? 1 : -1; }};
    ASSERT_TRUE(table_->write(std::move(write)).ok());
  };
  // Rows that have no place in the index: when the second one is there, what was in front of the first is through.
  std::uint64_t rows = 1;
  const auto pass_turns = [&] {
    for (int n = 0; n < 2; ++n) {
      test::BatchBuilder builder(store_->names());
      const std::string key = "TS#" + std::to_string(300'000 + ++rows);
      builder.add("VEH#1", key, {{"n", number(n)}}, Version::of(1, SourceId{1}, rows));
      ASSERT_TRUE(submit_in_time(std::move(table_->route(builder.take()).front())));
      while (store_->stats().rows_stored < rows) std::this_thread::yield();
    }
  };
  std::atomic<int> first{0};
  std::atomic<int> second{0};
  std::atomic<bool> found_by_first{false};
  std::atomic<bool> found_by_second{true};
  remove(first, found_by_first);
  while (!found_by_first) std::this_thread::yield();
  ASSERT_NO_FATAL_FAILURE(pass_turns());
  remove(second, found_by_second);
  while (found_by_second) std::this_thread::yield();
  ASSERT_NO_FATAL_FAILURE(pass_turns());
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 0);
  EXPECT_EQ(items("depot", "DEP-A"), 2u);
  gate.open();
  while (second == 0) std::this_thread::yield();
  EXPECT_EQ(second, 1);
  EXPECT_EQ(items("depot", "DEP-A"), 1u);
  ASSERT_TRUE(store_->drain(kDrainMs));
}

TEST_F(TableFlow, DeletingATableAcknowledgesEveryWaitingWriteOnce) {
  open();
  Gate gate;
  hold_writer(gate);
  while (table_->submit(batch(1)).ok()) {
  }
  constexpr int kWrites = 500;  // far more than one turn takes
  std::vector<std::atomic<int>> stopped(kWrites);
  std::vector<std::atomic<int>> applied(kWrites);
  for (int n = 0; n < kWrites; ++n) {
    const auto i = static_cast<std::size_t>(n);
    ASSERT_TRUE(table_
                    ->write(write("TS#1",
                                  [&, i](model::Status status) {
                                    ++(status.code() == StatusCode::kStopping ? stopped : applied)[i];
                                  }))
                    .ok());
  }
  ASSERT_TRUE(store_->delete_table("telemetry").ok());
  EXPECT_EQ(table_->submit(batch(2)).code(), StatusCode::kStopping);
  EXPECT_EQ(table_->write(write("TS#2", [](model::Status) { ADD_FAILURE(); })).code(), StatusCode::kStopping);
  gate.open();
  ASSERT_TRUE(store_->drain(kDrainMs));
  table_.reset();
  store_.reset();
  int stopped_total = 0;
  for (std::size_t i = 0; i < kWrites; ++i) {
    EXPECT_EQ(stopped[i] + applied[i], 1) << i;
    stopped_total += stopped[i];
  }
  EXPECT_GT(stopped_total, 0);
}

TEST_F(TableFlow, DeletingATableWhoseIndexIsFullLeavesTheStoreIdle) {
  open({test::depot_index()});
  Gate gate;
  hold_index_writer(gate);
  for (std::size_t n = 0; n < kIndexInboxBatches + 1 + kInboxBatches; ++n) {
    ASSERT_TRUE(submit_in_time(batch(static_cast<int>(n))));
  }
  ASSERT_TRUE(store_->delete_table("telemetry").ok());
  gate.open();
  EXPECT_TRUE(store_->drain(kDrainMs));
}

TEST_F(TableFlow, AWriteWhoseIndexEntriesAreDroppedIsNotAcknowledgedAsDone) {
  open({test::depot_index()});
  Gate gate;
  hold_index_writer(gate);
  std::promise<model::Status> outcome;
  ASSERT_TRUE(table_->write(write("TS#1", [&](model::Status status) { outcome.set_value(std::move(status)); })).ok());
  ASSERT_TRUE(store_->delete_table("telemetry").ok());
  gate.open();
  table_.reset();
  EXPECT_EQ(outcome.get_future().get().code(), StatusCode::kStopping);
}

TEST_F(TableFlow, ADeletedTableAnswersItsLastReaders) {
  open({test::depot_index()});
  ASSERT_TRUE(submit_in_time(batch(1)));
  ASSERT_TRUE(store_->drain(kDrainMs));
  ASSERT_TRUE(store_->delete_table("telemetry").ok());
  EXPECT_EQ(items("", "VEH#1"), 1u);
  EXPECT_EQ(items("depot", "DEP-A"), 1u);
}

TEST_F(TableFlow, ATableOfADeletedOnesNameBeginsEmpty) {
  open();
  ASSERT_TRUE(submit_in_time(batch(1)));
  ASSERT_TRUE(store_->drain(kDrainMs));
  ASSERT_TRUE(store_->delete_table("telemetry").ok());
  const std::shared_ptr<Table> again = store_->create_table(test::telemetry_schema()).value();
  EXPECT_TRUE(test::read_items(*again, store_->names(), "", "VEH#1").empty());
  EXPECT_EQ(again->size("").items, 0u);
}

TEST_F(TableFlow, AStoreMayGoWhileWorkWaits) {
  open({test::depot_index()});
  Gate gate;
  hold_index_writer(gate);
  for (std::size_t n = 0; n < kIndexInboxBatches + 1 + kInboxBatches; ++n) {
    ASSERT_TRUE(submit_in_time(batch(static_cast<int>(n))));
  }
  table_.reset();
  std::thread opener([&gate] { gate.open(); });
  store_.reset();
  opener.join();
  EXPECT_EQ(acknowledged_, 1);
}

}  // namespace
}  // namespace drover::store

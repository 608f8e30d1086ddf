#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "drover/store/store.h"
#include "tests/support/rows.h"
#include "tests/support/tables.h"

// Readers at full rate while rows come in, in order and late, are cut, sealed and left to the disk.
namespace drover::store {
namespace {

using model::SourceId;
using model::Version;
using test::number;
using test::text;

constexpr int kVehicles = 3;
constexpr int kBatches = 60;
constexpr int kRowsPerBatch = 900;
constexpr std::int64_t kTimeoutMs = 60'000;

std::string key_of(int n) {
  return "TS#" + std::to_string(10'000'000 + n);
}

/// Of what is read of a vehicle at one moment: in order, none twice, and nothing missing that was applied before.
void check_page(const Table& table, std::string_view index, const std::string& partition_key, bool ascending,
                std::size_t at_least) {
  std::string last;
  std::size_t rows = 0;
  const model::Status status = table.read(index, partition_key, {}, ascending, [&](const StoredItem& item) {
    const std::string key(item.row.sort_key());
    if (!last.empty()) {
      EXPECT_TRUE(ascending ? last < key : key < last) << last << " then " << key;
    }
    last = key;
    ++rows;
    return true;
  });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_GE(rows, at_least) << partition_key;
}

TEST(DurableStress, ReadersSeeEveryRowOnceInOrderWhileItIsCutSealedAndLeftToTheDisk) {
  std::string folder = (std::filesystem::temp_directory_path() / "drover-stress-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  {
    const auto store =
        Store::open(folder + "/store", {.workers = 2, .shards_per_table = 2, .memory_budget_bytes = 300'000}).value();
    const auto table = store->create_table(test::telemetry_schema({test::depot_index()})).value();
    std::atomic<bool> done{false};
    std::atomic<std::size_t> applied{0};  // rows of each vehicle

    std::thread feeder([&] {
      test::BatchBuilder builder(store->names());
      std::uint64_t offset = 0;
      for (int batch = 0; batch < kBatches; ++batch) {
        for (int vehicle = 0; vehicle < kVehicles; ++vehicle) {
          for (int n = 0; n < kRowsPerBatch; ++n) {
            // Every fifth one comes a batch late.
            const int place = batch * kRowsPerBatch + n - (n % 5 == 4 ? kRowsPerBatch : 0);
            if (place < 0) continue;
            ++offset;
            builder.add("VEH#" + std::to_string(vehicle), key_of(place),
                        {{"speedKph", number(n % 120)}, {"depotCode", text("DEP-1")}},
                        Version::of(static_cast<std::int64_t>(offset), SourceId{1}, offset));
          }
        }
        ASSERT_TRUE(test::feed(*table, builder.take()));
        ASSERT_TRUE(store->drain(kTimeoutMs));
        applied.store(static_cast<std::size_t>(batch) * kRowsPerBatch);
      }
      done = true;
    });
    std::thread checkpoints([&] {
      while (!done) {
        auto cut = store->cut(kTimeoutMs);
        ASSERT_TRUE(cut.ok()) << cut.status().message();
        const model::Status status = (*cut)->write({});
        ASSERT_TRUE(status.ok()) << status.message();
      }
    });
    std::vector<std::thread> readers;
    for (int reader = 0; reader < 2; ++reader) {
      readers.emplace_back([&, reader] {
        for (int n = 0; !done; ++n) {
          const std::size_t at_least = applied.load();
          const bool of_index = n % 3 == 2;
          check_page(*table, of_index ? "depot" : "", of_index ? "DEP-1" : "VEH#" + std::to_string(n % kVehicles),
                     reader == 0, at_least);
        }
      });
    }
    std::thread writer([&] {
      const model::Bytes attributes = test::encode_attributes({{"depotCode", text("DEP-2")}}, store->names());
      for (int n = 0; !done; ++n) {
        EXPECT_TRUE(test::put(*table, "VEH#API", key_of(n % 100), attributes).ok());
      }
    });
    feeder.join();
    checkpoints.join();
    writer.join();
    for (std::thread& reader : readers) reader.join();
    for (int vehicle = 0; vehicle < kVehicles; ++vehicle) {
      check_page(*table, "", "VEH#" + std::to_string(vehicle), true, applied.load());
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace drover::store

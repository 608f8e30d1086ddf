#include "entry_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "drover/model/key.h"
#include "tests/support/rows.h"

namespace drover::store {
namespace {

void add(model::RowBatch& batch, const std::string& partition_key, const std::string& row) {
  batch.rows.push_back({model::hash_key(partition_key), static_cast<std::uint32_t>(batch.bytes.size()),
                        static_cast<std::uint32_t>(partition_key.size()), static_cast<std::uint32_t>(row.size())});
  batch.bytes.insert(batch.bytes.end(), partition_key.begin(), partition_key.end());
  batch.bytes.insert(batch.bytes.end(), row.begin(), row.end());
}

/// Entries of a merge of these batches, in the order of arrival.
std::vector<Entry> entries_of(const std::vector<model::RowBatch>& batches) {
  std::vector<EntryOrder> orders;
  for (const model::RowBatch& batch : batches) orders.push_back(EntryOrder::of(batch));
  std::string_view prefix = orders.front().prefix;
  for (const EntryOrder& order : orders) prefix = prefix.substr(0, common_size(prefix, order.prefix));
  std::vector<Entry> entries;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    const HeadBehind head(orders[b].prefix, prefix.size());
    for (std::size_t i = 0; i < batches[b].rows.size(); ++i) {
      const model::RowBatch::Row& row = batches[b].rows[i];
      entries.push_back(
          {head(orders[b].marks[i].head), batches[b].row_bytes(row).data(), row.row_size, orders[b].marks[i].remove});
    }
  }
  return entries;
}

// Goal: entries are sorted as memcmp sorts their keys, equal ones in the order of arrival, whatever the keys look like.
// Method: keys of several kinds (times, short ones, zeros, long common beginnings, one from far away), in batches with
//         different beginnings, few and many; a stable sort by the whole key is the model.
TEST(EntrySorterTest, SortsAsKeysDoAndKeepsTheOrderOfEqualOnes) {
  std::mt19937 random(20'260'623);
  const auto below = [&](std::size_t n) { return random() % n; };
  for (int round = 0; round < 120; ++round) {
    const auto kind = below(5);
    std::vector<model::RowBatch> batches(1 + below(6));
    for (model::RowBatch& batch : batches) {
      const std::string beginning = kind == 3 ? std::string(below(60), 'p') : "";
      for (std::size_t n = 1 + below(round % 3 == 0 ? 1'000 : 40); n > 0; --n) {
        std::string key = beginning;
        if (kind == 0) {
          model::append_key_part(key, "TS#2026-06-23T0" + std::to_string(below(2)) + ":0" + std::to_string(below(9)) +
                                          ":00." + std::to_string(100 + below(900)) + "Z");
          model::append_key_part(key, "VEH#V-" + std::to_string(1'000 + below(20)));
        } else {
          for (std::size_t size = below(kind == 1 ? 6 : 60); size > 0; --size) {
            key.push_back(static_cast<char>(kind == 4 ? below(256) : below(3)));
          }
        }
        if (below(200) == 0) key = "META";
        add(batch, "DEP-LON-3", test::make_row(key, std::to_string(n)));
      }
    }
    const std::vector<Entry> entries = entries_of(batches);
    std::vector<std::uint32_t> expected(entries.size());
    for (std::uint32_t i = 0; i < expected.size(); ++i) expected[i] = i;
    std::stable_sort(expected.begin(), expected.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return entries[a].sort_key() < entries[b].sort_key(); });
    EntrySorter sorter;
    sorter.sort(entries);
    std::vector<std::uint32_t> sorted;
    for (const EntrySorter::Slot& slot : sorter.order()) sorted.push_back(slot.entry);
    ASSERT_EQ(sorted, expected) << "round " << round << ", kind " << kind;
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      if (entries[sorted[i]].sort_key() != entries[sorted[i - 1]].sort_key()) continue;
      ASSERT_EQ(sorter.order()[i].key, sorter.order()[i - 1].key);
    }
  }
}

TEST(EntryOrderTest, AGroupHasOnePartitionKey) {
  model::RowBatch batch;
  std::mt19937 random(7);
  std::vector<std::string> keys;
  for (int i = 0; i < 2'000; ++i) {
    keys.push_back("DEP-" + std::to_string(random() % 100));
    add(batch, keys.back(), test::make_row("TS#" + std::to_string(i), "x"));
  }
  const EntryOrder order = EntryOrder::of(batch);
  std::vector<std::string> key_of(order.groups);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::string& key = key_of[order.marks[i].group];
    if (key.empty()) key = keys[i];
    ASSERT_EQ(key, keys[i]);
  }
}

}  // namespace
}  // namespace drover::store

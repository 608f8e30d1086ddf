#include "entry_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
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

std::vector<std::uint32_t> all_rows(const model::RowBatch& batch) {
  std::vector<std::uint32_t> rows(batch.rows.size());
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
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
    std::vector<EntryOrder> orders;
    for (const model::RowBatch& batch : batches) orders.push_back(EntryOrder::of(batch, all_rows(batch)));
    std::string_view prefix = orders.front().prefix;
    for (const EntryOrder& order : orders) prefix = prefix.substr(0, common_size(prefix, order.prefix));
    std::vector<KeyHead> heads;
    std::vector<Entry> entries;
    HeadBits bits;
    for (std::uint32_t b = 0; b < batches.size(); ++b) {
      const HeadBehind head(orders[b].prefix, prefix.size());
      bits.see(head(orders[b].bits));
      for (std::uint32_t row = 0; row < batches[b].rows.size(); ++row) {
        heads.push_back(head(orders[b].marks[row].head));
        const EntryOrder::Mark& mark = orders[b].marks[row];
        entries.push_back({0, batches[b].bytes.data() + mark.begin, mark.row_size});
      }
    }
    const HeadPacker packer(bits);
    for (std::size_t i = 0; i < entries.size(); ++i) entries[i].key = packer(heads[i]);
    std::vector<Entry> expected = entries;
    std::stable_sort(expected.begin(), expected.end(),
                     [&](const Entry& a, const Entry& b) { return a.sort_key() < b.sort_key(); });
    EntrySorter sorter;
    sorter.sort(entries, packer.bits());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      ASSERT_EQ(entries[i].row, expected[i].row) << "round " << round << ", kind " << kind;
      if (i == 0 || entries[i].sort_key() != entries[i - 1].sort_key()) continue;
      ASSERT_EQ(entries[i].key, entries[i - 1].key);
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
  // Every other row.
  std::vector<std::uint32_t> selected;
  for (std::uint32_t row = 1; row < batch.rows.size(); row += 2) selected.push_back(row);
  const EntryOrder order = EntryOrder::of(batch, selected);
  std::vector<std::string> key_of;
  for (const std::uint32_t first : order.firsts) key_of.push_back(keys[first]);
  ASSERT_EQ(order.marks.size(), selected.size());
  for (std::size_t i = 0; i < selected.size(); ++i) {
    ASSERT_EQ(key_of[order.marks[i].group], keys[selected[i]]);
    ASSERT_EQ(std::string_view(batch.bytes.data() + order.marks[i].begin, order.marks[i].row_size),
              batch.row_bytes(batch.rows[selected[i]]));
  }
}

}  // namespace
}  // namespace drover::store

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "drover/model/names.h"
#include "drover/model/schema.h"
#include "table.h"

namespace drover::store {

/// Whether an item has expired by its table's TTL attribute, as DynamoDB has it: the attribute is a number of seconds
/// since 1970 that have passed, by five years at most (an item with an older one is taken for a mistake and stays).
class TtlRule {
 public:
  TtlRule(const model::TableSchema& schema, std::string attribute, const model::AttributeNames& names);

  /// All encoded as in a row.
  bool is_expired(std::string_view partition_key, std::string_view sort_key, std::string_view attributes,
                  std::int64_t now_ms) const;

 private:
  enum class From : std::uint8_t { kAttribute, kPartitionKey, kSortKey, kNowhere };

  std::string attribute_;
  const model::AttributeNames* names_;
  From from_ = From::kAttribute;
};

/// Walks over all tables and has what has expired removed, a bounded number of items at a time.
///
/// It reads as any reader does; what it finds expired it hands to the shard's writer as a conditional delete, which
/// looks again: so the indexes, the log and the versions follow by themselves, and a write in between is not lost.
/// What a table does not retain any more goes by collection, blocks at a time, and leaves no tombstones: replays of it
/// are refused where they are decoded.
/// Threads: one.
class Expirer {
 public:
  explicit Expirer(Shared& shared) : shared_(shared) {}

  /// See Store::expire_step(). `tables` in order of their names.
  bool step(const std::vector<std::shared_ptr<MemoryTable>>& tables);
  /// Has the tables trimmed to what they retain, all of it: at a start, ahead of readers.
  void trim(const std::vector<std::shared_ptr<MemoryTable>>& tables);

 private:
  void begin(const MemoryTable& table);
  /// To the table's end, unless something is used up on the way: false.
  bool walk(MemoryTable& table);
  bool walk(MemoryTable& table, const Collection& collection);
  bool is_passed(const Collection& collection) const;
  /// False: too many removals are in hand.
  bool remove(MemoryTable& table, std::string_view partition_key, std::string_view sort_key);
  bool trim(MemoryTable& table, const Collection& collection);
  /// A place for one more; null: there is none.
  std::function<void(model::Status)> take_place();

  Shared& shared_;
  std::uint32_t items_left_ = 0;  ///< Of this step.
  // Where the walk goes on: in which table, in which of its segments, and there at this collection or the first behind
  // it, at a sort key not below this one.
  std::string table_;
  std::uint32_t segment_ = 0;
  Table::ScanPosition from_;
  std::shared_ptr<const TtlRule> ttl_;  ///< Of that table; shared with its removals. Null: it has none.
  std::optional<Trim> trim_;            ///< What of its collections goes in this round.
  std::unordered_map<std::uint32_t, std::int64_t> next_trim_ms_;  ///< By table id: when it is looked through again.
  /// Removals that have no outcome yet. Shared with them. Relaxed: nothing follows from it.
  std::shared_ptr<std::atomic<std::uint32_t>> in_hand_ = std::make_shared<std::atomic<std::uint32_t>>(0);
};

}  // namespace drover::store

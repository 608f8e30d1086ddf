#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "disk_format.h"
#include "drover/model/sync.h"
#include "drover/store/store.h"
#include "shard.h"

namespace drover::store {

/// What has changed in the key space of a table or of one index between two cuts, by shard.
struct SpaceChanges {
  struct Part {
    Shard* shard;
    Changes::Interval interval;
  };
  SpaceId id;
  const Space* space;
  std::vector<Part> parts;
};

/// A table's collections and shards. See Table for the contract.
class MemoryTable final : public Table, public std::enable_shared_from_this<MemoryTable> {
 public:
  /// What a durable store keeps of a table beside its schema.
  struct Identity {
    std::uint32_t id = 0;
    std::int64_t created_ms = 0;
    model::Retention retention;  ///< As of the start.
  };
  static std::shared_ptr<MemoryTable> make(Shared& shared, const model::TableSchema& schema, Identity identity);

  const model::TableSchema& schema() const override { return schema_; }
  std::int64_t created_ms() const override { return identity_.created_ms; }
  model::Retention retention() const override {
    const model::LockGuard lock(retention_mutex_);
    return retention_;
  }
  std::vector<partitioner::RoutedBatch> route(std::shared_ptr<const model::RowBatch> rows) const override;
  model::Status submit(partitioner::RoutedBatch&& batch) override;
  model::Status write(ItemWrite&& write) override;
  model::Status read(std::string_view index, std::string_view partition_key, const KeyRange& range, bool ascending,
                     const Visit& visit) const override;
  model::Status scan(std::string_view index, std::uint32_t segment_begin, std::uint32_t segment_end,
                     const std::optional<ScanPosition>& after, const Visit& visit) const override;
  Size size(std::string_view index) const override;

  std::uint32_t id() const { return identity_.id; }
  void set_retention(model::Retention retention) {
    const model::LockGuard lock(retention_mutex_);
    retention_ = std::move(retention);
  }
  /// As write(), of a collection's old rows.
  model::Status trim(model::Bytes partition_key, const Trim& trim, std::function<void(model::Status)> done);
  TableCounters& counters() { return counters_; }
  void close();
  void add_stats(StoreStats& out) const;

  // Of a durable store.

  /// Has the index shards apply what gathers there.
  void flush_indexes();
  /// A hold has ended.
  void resume();
  /// Ends an interval between two cuts. Requires: no shard has work in hand.
  std::vector<SpaceChanges> begin_interval(std::uint32_t next);

  /// All key spaces, the table's own first.
  std::vector<const Space*> spaces() const;

  /// A shard and the part of a key space that it restores.
  struct Restorable {
    SpaceId id;
    partitioner::ShardMap::Range range;
    Shard* shard;
  };
  std::vector<Restorable> restorables();

 private:
  model::Status hand_over(Write&& write);
  MemoryTable(Shared& shared, const model::TableSchema& schema, Identity identity);

  /// What a read of the table or of one index needs.
  struct Readable {
    const Space* space = nullptr;
    const partitioner::CurrentShardMap* map = nullptr;
    const GlobalIndex* index = nullptr;  ///< Null: the table itself.
  };
  std::optional<Readable> readable(std::string_view name) const;
  void count_reads(const Readable& from, model::KeyHash hash, std::uint64_t items) const;

  Shared& shared_;
  const model::TableSchema schema_;
  const Identity identity_;
  Space space_;
  partitioner::CurrentShardMap map_;
  Stamps stamps_;
  TableCounters counters_;
  std::vector<std::unique_ptr<GlobalIndex>> indexes_;
  std::vector<std::unique_ptr<TableShard>> shards_;
  std::atomic<bool> closed_{false};
  mutable model::Mutex retention_mutex_;
  model::Retention retention_ GUARDED_BY(retention_mutex_);
};

}  // namespace drover::store

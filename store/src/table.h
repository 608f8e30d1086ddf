#pragma once

#include <atomic>
#include <functional>
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
  /// Of the space and its shards: the table or the index, which may be deleted meanwhile.
  std::shared_ptr<void> owner;
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
  /// The same of a global index.
  struct IndexIdentity {
    std::uint16_t number = 0;
    bool filled = true;  ///< Has all items of the table.
  };
  /// `indexes`: of the schema's global indexes, in its order.
  static std::shared_ptr<MemoryTable> make(Shared& shared, const model::TableSchema& schema, Identity identity,
                                           const std::vector<IndexIdentity>& indexes);

  const model::TableSchema& schema() const override {
    return *schema_.load(std::memory_order_acquire);  // pairs with set_indexes()
  }
  std::int64_t created_ms() const override { return identity_.created_ms; }
  model::Retention retention() const override {
    const model::LockGuard lock(retention_mutex_);
    return retention_;
  }
  bool is_filling(std::string_view index) const override;
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

  // One call at a time of these.

  /// Adds a global index, which is filled from here on. `interval`: of Changes. Requires: validate() has passed it.
  void add_index(const model::IndexSchema& schema, std::uint16_t number, std::uint32_t interval);
  /// Requires: there is a global index of that name.
  void remove_index(std::string_view name);
  /// Has what was left off at the stop go on.
  void fill_indexes();
  /// Present global indexes, in the schema's order.
  std::shared_ptr<const Indexes> indexes() const;

  void add_stats(StoreStats& out) const;

  // Of a durable store.

  /// Has the index shards apply what gathers there.
  void flush_indexes();
  /// A hold has ended.
  void resume();
  /// Ends an interval between two cuts. Requires: no shard has work in hand.
  std::vector<SpaceChanges> begin_interval(std::uint32_t next);

  /// All key spaces, the table's own first.
  std::vector<std::shared_ptr<const Space>> spaces();

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
    std::shared_ptr<GlobalIndex> const* index = nullptr;  ///< Null: the table itself.
  };
  /// kNotFound: no such index; kUnavailable: it is being filled. Valid as long as the caller's EpochDomain::Guard.
  model::Result<Readable> readable(std::string_view name) const;
  std::shared_ptr<GlobalIndex> make_index(const model::IndexSchema& schema, IndexIdentity identity);
  void connect(GlobalIndex& index);
  void set_indexes(std::unique_ptr<const model::TableSchema> schema, const std::shared_ptr<const Indexes>& indexes,
                   const std::shared_ptr<Filling>& filling);
  void count_reads(const Readable& from, model::KeyHash hash, std::uint64_t items) const;

  Shared& shared_;
  /// The present one is the last; the others may still be looked at. One call of set_indexes() at a time.
  std::vector<std::unique_ptr<const model::TableSchema>> schemas_;
  std::atomic<const model::TableSchema*> schema_;
  const Identity identity_;
  Space space_;
  partitioner::CurrentShardMap map_;
  Stamps stamps_;
  TableCounters counters_;
  mutable model::Mutex indexes_mutex_;
  std::shared_ptr<const Indexes> indexes_ GUARDED_BY(indexes_mutex_);
  /// The same for reads, which take no lock: valid inside a Guard, since the table's shards retire what they knew.
  std::atomic<const Indexes*> readable_indexes_{nullptr};
  std::vector<std::unique_ptr<TableShard>> shards_;
  std::atomic<bool> closed_{false};
  mutable model::Mutex retention_mutex_;
  model::Retention retention_ GUARDED_BY(retention_mutex_);
};

}  // namespace drover::store

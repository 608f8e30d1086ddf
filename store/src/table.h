#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "drover/store/store.h"
#include "shard.h"

namespace drover::store {

/// A table in memory. See Table for the contract.
class MemoryTable final : public Table, public std::enable_shared_from_this<MemoryTable> {
 public:
  static std::shared_ptr<MemoryTable> make(Shared& shared, const model::TableSchema& schema);

  const model::TableSchema& schema() const override { return schema_; }
  std::int64_t created_ms() const override { return created_ms_; }
  std::vector<partitioner::RoutedBatch> route(std::shared_ptr<const model::RowBatch> rows) const override;
  model::Status submit(partitioner::RoutedBatch&& batch) override;
  model::Status write(ItemWrite&& write) override;
  model::Status read(std::string_view index, std::string_view partition_key, const KeyRange& range, bool ascending,
                     const Visit& visit) const override;
  model::Status scan(std::string_view index, std::uint32_t segment_begin, std::uint32_t segment_end,
                     const std::optional<ScanPosition>& after, const Visit& visit) const override;
  Size size(std::string_view index) const override;

  void close();
  void add_stats(StoreStats& out) const;

 private:
  MemoryTable(Shared& shared, const model::TableSchema& schema);

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
  const std::int64_t created_ms_;
  Space space_;
  partitioner::CurrentShardMap map_;
  Stamps stamps_;
  TableCounters counters_;
  std::vector<std::unique_ptr<GlobalIndex>> indexes_;
  std::vector<std::unique_ptr<TableShard>> shards_;
  std::atomic<bool> closed_{false};
};

}  // namespace drover::store

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "drover/model/batch.h"
#include "drover/partitioner/shard_map.h"

namespace drover::partitioner {

/// The part of a batch that belongs to one shard: the shared rows, and which of them, in their order of arrival.
struct RoutedBatch {
  std::shared_ptr<const model::RowBatch> rows;  ///< Shared with the other shards' parts of the same batch.
  std::vector<std::uint32_t> selected;          ///< Indexes into rows->rows; never empty.
  ShardId shard;
  std::uint64_t map_version = 0;
};

/// Splits a batch by shard, keeping the order within each. Pure.
std::vector<RoutedBatch> route(const std::shared_ptr<const model::RowBatch>& rows, const ShardMap& map);

}  // namespace drover::partitioner

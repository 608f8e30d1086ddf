#include "drover/partitioner/router.h"

#include <algorithm>

namespace drover::partitioner {

// A counting sort: one pass counts the rows of each shard, so that every part has its size at once; a second one deals
// out the row numbers.
std::vector<RoutedBatch> route(const std::shared_ptr<const model::RowBatch>& rows, const ShardMap& map) {
  std::vector<std::uint32_t> counts(map.shards());
  for (const model::RowBatch::Row& row : rows->rows) ++counts[map.owner(row.hash).value];

  std::vector<RoutedBatch> parts;
  parts.reserve(map.shards() - static_cast<std::size_t>(std::count(counts.begin(), counts.end(), 0)));
  std::vector<std::uint32_t*> next(map.shards());
  for (std::uint16_t shard = 0; shard < map.shards(); ++shard) {
    if (counts[shard] == 0) continue;
    parts.push_back({rows, std::vector<std::uint32_t>(counts[shard]), ShardId{shard}, map.version()});
    next[shard] = parts.back().selected.data();
  }
  const auto size = static_cast<std::uint32_t>(rows->rows.size());
  for (std::uint32_t i = 0; i < size; ++i) *next[map.owner(rows->rows[i].hash).value]++ = i;
  return parts;
}

}  // namespace drover::partitioner

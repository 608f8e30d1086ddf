#include "drover/partitioner/shard_map.h"

#include <algorithm>

#include "drover/model/check.h"

namespace drover::partitioner {

ShardMap ShardMap::uniform(std::uint16_t shards) {
  DROVER_CHECK(shards >= 1 && shards <= model::kSegments, "a map has 1 to kSegments shards");
  ShardMap map;
  map.shards_ = shards;
  for (std::uint32_t segment = 0; segment < model::kSegments; ++segment) {
    map.owner_[segment] = ShardId{static_cast<std::uint16_t>(segment * shards / model::kSegments)};
  }
  return map;
}

ShardMap::Range ShardMap::range(ShardId shard) const {
  const auto [first, last] = std::equal_range(owner_.begin(), owner_.end(), shard);
  return {static_cast<std::uint32_t>(first - owner_.begin()), static_cast<std::uint32_t>(last - owner_.begin())};
}

CurrentShardMap::CurrentShardMap(const ShardMap& first) {
  maps_.push_back(std::make_unique<const ShardMap>(first));
  current_.store(maps_.back().get(), std::memory_order_release);  // pairs with current()
}

void CurrentShardMap::publish(ShardMap next) {
  next.version_ = maps_.back()->version() + 1;
  maps_.push_back(std::make_unique<const ShardMap>(next));
  current_.store(maps_.back().get(), std::memory_order_release);  // pairs with current()
}

}  // namespace drover::partitioner

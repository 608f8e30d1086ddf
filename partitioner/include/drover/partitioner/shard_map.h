#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <memory>
#include <vector>

#include "drover/model/key.h"
#include "drover/model/limits.h"

namespace drover::partitioner {

/// Number of a shard within its table or index, from 0, dense.
struct ShardId {
  std::uint16_t value = 0;
  friend auto operator<=>(const ShardId&, const ShardId&) = default;
};

/// Which shard owns which part of one table's (or one index's) hashed key space. Immutable.
///
/// The key space is kSegments segments of equal width; a shard owns a run of them. Moving a boundary changes segment
/// owners and nothing else, so what was not split stays where it is.
class ShardMap {
 public:
  /// `shards` runs of equal length. Requires: 1 <= shards <= kSegments.
  static ShardMap uniform(std::uint16_t shards);

  std::uint64_t version() const { return version_; }
  std::uint16_t shards() const { return shards_; }
  ShardId owner(model::KeyHash hash) const { return owner_[model::segment_of(hash)]; }
  ShardId owner_of_segment(std::uint32_t segment) const { return owner_[segment]; }

  /// First segment of a shard and one past its last one.
  struct Range {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  Range range(ShardId shard) const;

 private:
  friend class CurrentShardMap;  // numbers the versions

  std::uint64_t version_ = 1;
  std::uint16_t shards_ = 0;
  std::array<ShardId, model::kSegments> owner_{};
};

/// The present map behind one atomic pointer: routers and readers take it without a lock.
///
/// A published map lives as long as this object, so a router may keep one for as long as its batch takes. (Maps are
/// 32 KiB and change rarely; once they change with the heat, old ones are to be retired as the store retires blocks.)
/// Threads: current() from any; publish() from one at a time.
class CurrentShardMap {
 public:
  explicit CurrentShardMap(const ShardMap& first);
  const ShardMap& current() const { return *current_.load(std::memory_order_acquire); }  // pairs with publish()
  /// Makes `next` the current map, with the version behind the last one's.
  void publish(ShardMap next);

 private:
  std::vector<std::unique_ptr<const ShardMap>> maps_;  // owner thread only
  std::atomic<const ShardMap*> current_;
};

}  // namespace drover::partitioner

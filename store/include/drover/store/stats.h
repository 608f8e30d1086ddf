#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "drover/partitioner/heat.h"

namespace drover::store {

/// Upper bounds of the size classes that collections are counted in; a last class takes everything above.
inline constexpr std::array<std::uint64_t, 8> kCollectionItemsBounds{1,      10,      100,       1'000,
                                                                     10'000, 100'000, 1'000'000, 10'000'000};
inline constexpr std::array<std::uint64_t, 8> kCollectionBytesBounds{
    1'024, 16'384, 131'072, 1'048'576, 16'777'216, 134'217'728, 1'073'741'824, 10'737'418'240};

struct ShardStats {
  std::uint16_t shard = 0;
  std::uint32_t segment_begin = 0;
  std::uint32_t segment_end = 0;
  partitioner::ShardHeat heat;
  std::uint64_t queue_depth = 0;  ///< Stream batches waiting.
  std::uint64_t queue_capacity = 0;
  std::uint64_t collections = 0;
  std::uint64_t items = 0;
  std::uint64_t bytes = 0;                    ///< Of rows as stored.
  std::vector<partitioner::HotKey> hot_keys;  ///< Encoded partition keys.
  std::uint64_t hot_key_samples = 0;
};

/// A table, or one of its global indexes.
struct SpaceStats {
  std::string table;
  std::string index;  ///< Empty for the table itself.
  std::vector<ShardStats> shards;
  std::uint64_t items_expired = 0;  ///< Of a table: removed since their time had come.
  std::array<std::uint64_t, kCollectionItemsBounds.size() + 1> collections_by_items{};
  std::array<std::uint64_t, kCollectionBytesBounds.size() + 1> collections_by_bytes{};
  std::uint64_t largest_collection_items = 0;
  std::uint64_t largest_collection_bytes = 0;
  std::string largest_collection_key;  ///< Encoded partition key; for people, never a metric's label.
};

/// What a durable store's checkpoints did. Kept by whoever makes them.
struct CheckpointStats {
  bool durable = false;  ///< False: in memory only; the rest says nothing.
  std::uint64_t written = 0;
  std::uint64_t failed = 0;      ///< Attempts to write.
  std::int64_t last_ms = 0;      ///< When the last one was durable, ms since 1970; 0: none since the start.
  std::int64_t last_cut_ms = 0;  ///< When its cut was made: what was there then is durable.
  std::uint64_t last_bytes = 0;
  std::int64_t last_hold_ns = 0;      ///< How long ingest was held for its cut.
  std::int64_t last_duration_ns = 0;  ///< From the hold to the device.
  std::uint64_t bytes = 0;            ///< Of all.
  std::int64_t hold_ns_sum = 0;
  std::uint64_t free_bytes = 0;  ///< On the device.
  std::uint64_t total_bytes = 0;
  bool room_is_low = false;  ///< Less than a tenth of the device is free.
  std::string error;         ///< Why nothing can be written now, and ingest waits; empty: all is well.
};

struct StoreStats {
  // Every stream row (of tables, not of their indexes) is counted in one of these five …
  std::uint64_t rows_stored = 0;       ///< Stored under a key that had no item before.
  std::uint64_t rows_repeated = 0;     ///< Exact repeats: nothing changed.
  std::uint64_t rows_conflicting = 0;  ///< Same key, other content (or a deletion): the higher version kept.
  std::uint64_t rows_refused = 0;     ///< Would pass 400 KB or their collection's limit, or can't be a key of an index.
  std::uint64_t rows_unreadable = 0;  ///< Left out, also of indexes, since what stands at their key can't be read.
  // … and some of the stored ones, or of the refused ones, here, too.
  std::uint64_t rows_late = 0;        ///< Stored in front of a collection's newest item.
  std::uint64_t rows_over_limit = 0;  ///< Refused, since their collection is as large as a local index allows.
  std::vector<SpaceStats> spaces;
  std::uint64_t memory_bytes = 0;  ///< Of blocks, rows and encoded ones, of all stores of the process.
};

}  // namespace drover::store

#pragma once

#include <cstddef>
#include <cstdint>

/// Every bound that more than one folder leans on, with its unit in its name.
namespace drover::model {

// DynamoDB's own (Developer Guide, "Quotas and limits").
inline constexpr std::size_t kPartitionKeySizeBytesMax = 2048;
inline constexpr std::size_t kSortKeySizeBytesMax = 1024;
inline constexpr std::size_t kItemSizeBytesMax = std::size_t{400} * 1024;
inline constexpr std::uint64_t kItemCollectionSizeBytesMax = std::uint64_t{10} << 30;  ///< With a local index.
inline constexpr std::size_t kItemDepthMax = 32;
inline constexpr std::size_t kAttributeNameSizeBytesMax = std::size_t{64} * 1024 - 1;
inline constexpr std::size_t kKeyAttributeNameSizeBytesMax = 255;
inline constexpr std::size_t kPageSizeBytesMax = std::size_t{1024} * 1024;
inline constexpr std::size_t kNumberDigitsMax = 38;

inline constexpr std::int64_t kGlobalIndexesMax = 20;

// Drover's.
/// Hash segments of a table's (or index's) key space; a shard owns whole segments.
inline constexpr std::uint32_t kSegmentBits = 14;
inline constexpr std::uint32_t kSegments = 1u << kSegmentBits;
/// Attribute names that get a short id in stored rows; further names are stored as text.
inline constexpr std::size_t kInternedNamesMax = std::size_t{16} * 1024;
/// Stream batches that wait in one shard's inbox.
inline constexpr std::size_t kShardInboxBatchesMax = 8;
/// API writes that wait in one shard's inbox; beyond it a ThrottlingException.
inline constexpr std::size_t kShardInboxWritesMax = 1024;
/// Records of one Kafka partition that travel as one batch.
inline constexpr std::size_t kBatchRecordsMax = 8192;

}  // namespace drover::model

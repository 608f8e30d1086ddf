#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "block.h"
#include "drover/model/bytes.h"
#include "drover/model/status.h"
#include "epoch.h"

namespace drover::store {

class Disk;

/// Rows as one value on disk: varint(how many are tombstones) columns (columns.h).
void encode_block(std::span<const model::RowView> rows, model::Bytes& out);

/// A block of the rows. kInvalid: the value is damaged.
model::Result<std::shared_ptr<Block>> decode_block(std::string_view encoded);

/// A run of rows in a history that has not changed for a while, encoded: in memory, or, once it is durable, only on
/// disk. Immutable but for where it is.
///
/// Threads: decode() from any inside an EpochDomain::Guard; evict() from one.
class ColdBlock {
 public:
  /// Where a block stands on disk, or will stand: everything of its key in front of the first row's sort key.
  struct Place {
    const Disk& disk;
    const model::Bytes& collection_key;
  };
  /// Of rows in order. Requires: at least one.
  static std::unique_ptr<ColdBlock> of_rows(const Place& place, std::span<const model::RowView> rows,
                                            std::uint32_t born);
  /// Of a value that encode_block() wrote. Null: it is damaged.
  static std::unique_ptr<ColdBlock> of_value(const Place& place, std::string_view first_key, model::Bytes encoded);
  ~ColdBlock();
  ColdBlock(const ColdBlock&) = delete;
  ColdBlock& operator=(const ColdBlock&) = delete;

  std::string_view first_key() const { return std::string_view(key_).substr(first_key_begin_); }
  std::string_view last_key() const { return last_key_; }
  std::uint32_t born() const { return born_; }
  std::uint32_t rows() const { return rows_; }
  std::uint32_t tombstones() const { return tombstones_; }
  std::uint64_t row_bytes() const { return row_bytes_; }

  /// The rows. kUnavailable: the disk can't be read; kInvalid: what stands there is damaged, or another block by now.
  /// May wait for the disk.
  model::Result<std::shared_ptr<Block>> decode() const;
  /// The same for a writer, who would lose a row: waits while the disk can't be read, for a minute.
  model::Result<std::shared_ptr<Block>> decode_patiently() const;

  /// The encoded value; null if it is on disk only.
  const model::Bytes* in_memory() const { return encoded_.load(std::memory_order_acquire); }  // pairs with evict()
  /// Leaves the value on disk alone. Requires: it is durable, and nobody else knows the block yet.
  void forget();
  /// Leaves the value on disk alone, unless it was read since the last call. Requires: it is durable. Returns the bytes
  /// that this sets free.
  std::size_t evict(RetireList& retired);

 private:
  ColdBlock(const Place& place, std::string_view first_key, std::string_view last_key, model::Bytes encoded);

  const Disk& disk_;
  const model::Bytes key_;
  const std::size_t first_key_begin_;
  const model::Bytes last_key_;
  std::uint32_t born_ = 0;
  std::uint32_t rows_ = 0;
  std::uint32_t tombstones_ = 0;
  std::uint64_t row_bytes_ = 0;
  std::atomic<const model::Bytes*> encoded_{nullptr};
  mutable std::atomic<bool> read_{false};  ///< Since the last evict(). Relaxed: a hint.
};

/// Bytes of all cold blocks' values in memory, of all stores of the process. A statistic: relaxed.
std::uint64_t cold_bytes_in_memory();

}  // namespace drover::store

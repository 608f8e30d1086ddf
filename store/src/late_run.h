#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "block.h"
#include "drover/model/row.h"

namespace drover::store {

// Late rows, gathered in front of a merge
//
// Layout.  A block of rows in order of arrival, and beside each its place: where it goes in among those in front of it,
//          or which of them it replaces. Places, as rows, never change once counted.
// Writer.  (W1) writes the place, (W2) appends the row, which publishes the count (block.h).
// Reader.  (R1) loads the count, (R2) puts so many places in order, one after the other: no key is compared.
// Why it is right.  As in block.h: W1 happens before R2 for all that R1 counted.

/// Rows of a late run in sort-key order, each key once.
class LateRows {
 public:
  static constexpr std::uint32_t kMax = 32;

  /// Where a key's row stands, or would come to stand.
  struct Place {
    std::uint8_t at = 0;
    bool taken = false;
  };

  LateRows() = default;
  explicit LateRows(const Block* block) : block_(block) {}

  std::uint32_t size() const { return size_; }
  model::RowView row(std::uint32_t i) const { return block_->row(order_[i]); }

  /// The faster, the nearer it is to the row that was taken last.
  Place find(std::string_view key) const {
    const KeyPlace place = place_near(key, last_taken_, size_, [this](std::uint32_t i) { return row(i).sort_key(); });
    return {static_cast<std::uint8_t>(place.at), place.found};
  }

  /// Takes row `arrival` of the block to its place.
  void take(std::uint32_t arrival, Place place) {
    if (!place.taken) {
      std::copy_backward(order_.begin() + place.at, order_.begin() + size_, order_.begin() + size_ + 1);
      ++size_;
    }
    order_[place.at] = static_cast<std::uint8_t>(arrival);
    last_taken_ = place.at;
  }

 private:
  const Block* block_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t last_taken_ = 0;
  std::array<std::uint8_t, kMax> order_{};
};

/// Where in a history or tail a key's row stands, or would come to stand. Null: not known.
struct MainPlace {
  const Block* block = nullptr;
  std::uint32_t at = 0;
};

/// Threads: one writer; count() and rows_at() from any thread.
class LateRun {
 public:
  /// By how much a collection is larger for its late rows. Rows that they hide count as gone.
  struct Growth {
    std::int32_t items = 0;
    std::int32_t bytes = 0;
  };

  explicit LateRun(std::uint32_t capacity) : block_(Block::make(capacity, 0)), rows_(block_) {}
  /// The same rows with more room.
  LateRun(const LateRun& from, std::uint32_t capacity) : LateRun(capacity) {
    const std::uint32_t count = from.block_->writer_count();
    places_ = from.places_;
    block_->append_rows(*from.block_, 0, count);
    for (std::uint32_t i = 0; i < count; ++i) rows_.take(i, places_[i]);
    growth = from.growth;
    near = from.near;
  }
  ~LateRun() { Block::destroy(block_); }
  LateRun(const LateRun&) = delete;
  LateRun& operator=(const LateRun&) = delete;

  std::uint32_t count() const { return block_->count(); }  // R1
  /// Requires: a count() that the caller has read.
  LateRows rows_at(std::uint32_t count) const {  // R2
    LateRows rows(block_);
    for (std::uint32_t i = 0; i < count; ++i) rows.take(i, places_[i]);
    return rows;
  }
  /// Whether one of the first `count` rows lies in [begin, end).
  bool may_hold(std::string_view begin, std::string_view end, std::uint32_t count) const {
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::string_view key = block_->row(i).sort_key();
      if (begin <= key && key < end) return true;
    }
    return false;
  }

  // Writer only from here on.
  const LateRows& rows() const { return rows_; }
  std::size_t used() const { return block_->used(); }
  bool is_full() const { return block_->writer_count() == LateRows::kMax; }
  bool fits(std::size_t row_size) const { return !is_full() && block_->fits(row_size); }
  /// Requires: fits(), and `place` is what rows() finds.
  void put(LateRows::Place place, std::string_view row, std::string_view more = {}) {
    const std::uint32_t n = block_->writer_count();
    places_[n] = place;         // W1
    block_->append(row, more);  // W2
    rows_.take(n, place);
  }

 private:
  Block* const block_;
  std::array<LateRows::Place, LateRows::kMax> places_{};
  LateRows rows_;  ///< Writer only.

 public:
  // Writer only.
  Growth growth;
  MainPlace near;  ///< Of the last row that was put: the next one's is likely not far.
};

}  // namespace drover::store

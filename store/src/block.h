#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "drover/model/check.h"
#include "drover/model/row.h"

namespace drover::store {

// Publishing a row to readers that take no lock
//
// Layout.  A block is one allocation: a header, then where each row begins (16 bits each) from the front, rows from the
//          back. So a writer touches the header's cache lines and the one in front of the last row. Rows [0, count) are
//          complete and never change; everything from there on belongs to the writer alone. A row that begins beyond
//          16 bits can't be: a block is larger than that only for one large row, which begins at its front.
// Writer.  (W1) copies the row and its begin with plain stores, (W2) count.store(n + 1, release).
// Reader.  (R1) n = count.load(acquire), (R2) reads rows [0, n).
// Why it is right.  If R1 reads the value of W2 or a later one, W1 happens before R2; a reader that reads an older
//          count sees fewer rows, never half a row.
// Growth.  A full block is never enlarged in place: its successor is published (collection.h) and the old one retired.

/// Where a key stands among others, or would come to stand.
struct KeyPlace {
  std::uint32_t at = 0;
  bool found = false;
};

/// The place of `key` among `count` ascending ones, `key_at(i)` each: the faster the nearer it is to `hint`.
template <typename KeyAt>
KeyPlace place_near(std::string_view key, std::uint32_t hint, std::uint32_t count, KeyAt&& key_at) {
  std::uint32_t begin = 0;
  KeyPlace end{count, false};
  // Whether the key is behind it; if not it is at `i` or in front.
  const auto is_behind = [&](std::uint32_t i) {
    const int order = key_at(i).compare(key);
    if (order < 0) {
      begin = i + 1;
    } else {
      end = {i, order == 0};
    }
    return order < 0;
  };
  if (hint < count && is_behind(hint)) {
    for (std::uint32_t step = 1; step <= count - begin && is_behind(begin + step - 1); step *= 2) {
    }
  } else {
    for (std::uint32_t step = 1; end.at > 0 && !is_behind(end.at - std::min(end.at, step)); step *= 2) {
    }
  }
  while (begin < end.at && !end.found) is_behind(begin + (end.at - begin) / 2);
  return end;
}

/// Rows of one collection in sort-key order, contiguous.
class Block {
 public:
  /// `capacity`: room for rows and where they begin, in bytes. `born`: see born().
  static Block* make(std::uint32_t capacity, std::uint32_t born) {
    void* memory = std::malloc(sizeof(Block) + capacity);
    if (memory == nullptr) throw std::bad_alloc();
    bytes_in_memory.fetch_add(sizeof(Block) + capacity, std::memory_order_relaxed);
    return new (memory) Block(capacity, born);
  }
  static void destroy(Block* block) {
    bytes_in_memory.fetch_sub(sizeof(Block) + block->capacity_, std::memory_order_relaxed);
    std::free(block);
  }
  /// Of all blocks of the process. A statistic: relaxed.
  static std::uint64_t all_bytes() { return bytes_in_memory.load(std::memory_order_relaxed); }

  static std::uint32_t room_for(std::size_t row_size) { return static_cast<std::uint32_t>(row_size + sizeof(Begin)); }

  std::uint32_t count() const { return count_.load(std::memory_order_acquire); }  // R1

  /// Requires: i < a count() that the caller has read.
  std::string_view row_bytes(std::uint32_t i) const {
    const std::uint32_t begin = begin_of(i);
    return {data() + begin, end_of(i) - begin};
  }
  model::RowView row(std::uint32_t i) const { return model::RowView(row_bytes(i)); }

  /// First row, of the first `count`, whose sort key is not below `key`.
  std::uint32_t lower_bound(std::string_view key, std::uint32_t count) const {
    std::uint32_t begin = 0;
    while (begin < count) {
      const std::uint32_t middle = begin + (count - begin) / 2;
      if (row(middle).sort_key() < key) {
        begin = middle + 1;
      } else {
        count = middle;
      }
    }
    return begin;
  }
  /// The same, and whether it is `key`: the faster the nearer it is to `hint`.
  KeyPlace place_near(std::string_view key, std::uint32_t hint, std::uint32_t count) const {
    return store::place_near(key, hint, count, [this](std::uint32_t i) { return row(i).sort_key(); });
  }

  /// The interval between two cuts in which the block came to stand in its collection's history (changes.h).
  std::uint32_t born() const { return born_; }

  // Writer only.
  /// Requires: the block is not in a published history yet.
  void set_born(std::uint32_t born) { born_ = born; }
  std::uint32_t writer_count() const { return count_.load(std::memory_order_relaxed); }  // own stores only
  /// What rows and their begins take of the capacity.
  std::size_t used() const { return capacity_ - top_ + sizeof(Begin) * writer_count(); }
  bool fits(std::size_t row_size) const { return sizeof(Begin) * (writer_count() + 1) + row_size <= top_; }
  /// How many of another block's rows [begin, end) there is room for.
  std::uint32_t fitting(const Block& from, std::uint32_t begin, std::uint32_t end) const {
    const std::size_t n = writer_count();
    std::uint32_t count = 0;
    while (begin + count < end &&
           sizeof(Begin) * (n + count + 1) + from.end_of(begin) - from.begin_of(begin + count) <= top_) {
      ++count;
    }
    return count;
  }

  /// Appends a row, with `more` attributes behind its own; returns where it begins. Requires: room, and the sort key is
  /// above the last one.
  const char* append(std::string_view row, std::string_view more = {}) {
    const std::uint32_t n = writer_count();
    top_ -= static_cast<std::uint32_t>(row.size() + more.size());
    char* const to = data() + top_;
    std::memcpy(to, row.data(), row.size());
    if (!more.empty()) std::memcpy(to + row.size(), more.data(), more.size());
    set_begin(n, top_);
    count_.store(n + 1, std::memory_order_release);  // W2
    return to;
  }

  /// Appends rows [begin, end) of another block in one copy. Requires: room, and order.
  void append_rows(const Block& from, std::uint32_t begin, std::uint32_t end) {
    if (begin == end) return;
    const std::uint32_t from_begin = from.begin_of(end - 1);
    const std::uint32_t size = from.end_of(begin) - from_begin;
    top_ -= size;
    std::memcpy(data() + top_, from.data() + from_begin, size);
    const std::uint32_t n = writer_count();
    for (std::uint32_t i = begin; i < end; ++i) set_begin(n + i - begin, from.begin_of(i) - from_begin + top_);
    count_.store(n + end - begin, std::memory_order_release);  // W2
  }

 private:
  using Begin = std::uint16_t;

  Block(std::uint32_t capacity, std::uint32_t born) : capacity_(capacity), top_(capacity), born_(born) {}

  char* data() { return reinterpret_cast<char*>(this) + sizeof(Block); }
  const char* data() const { return reinterpret_cast<const char*>(this) + sizeof(Block); }
  std::uint32_t begin_of(std::uint32_t i) const {
    Begin begin;
    std::memcpy(&begin, data() + sizeof begin * i, sizeof begin);
    return begin;
  }
  std::uint32_t end_of(std::uint32_t i) const { return i == 0 ? capacity_ : begin_of(i - 1); }
  void set_begin(std::uint32_t i, std::uint32_t value) {
    const auto begin = static_cast<Begin>(value);
    std::memcpy(data() + sizeof begin * i, &begin, sizeof begin);
  }

  static inline std::atomic<std::uint64_t> bytes_in_memory{0};

  const std::uint32_t capacity_;
  std::uint32_t top_;  // writer only: where the last row begins
  std::uint32_t born_;
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace drover::store

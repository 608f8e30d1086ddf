#pragma once

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
// Layout.  A block is one allocation: a header, rows from the front of its data, their ends (32 bits each) from the
//          back. Rows [0, count) are complete and never change; everything from there on belongs to the writer alone.
// Writer.  (W1) copies the row and its end with plain stores, (W2) count.store(n + 1, release).
// Reader.  (R1) n = count.load(acquire), (R2) reads rows [0, n).
// Why it is right.  If R1 reads the value of W2 or a later one, W1 happens before R2; a reader that reads an older
//          count sees fewer rows, never half a row.
// Growth.  A full block is never enlarged in place: its successor is published (collection.h) and the old one retired.

/// Rows of one collection in sort-key order, contiguous.
class Block {
 public:
  /// Room for rows and their ends, in bytes.
  static Block* make(std::uint32_t capacity) {
    void* memory = std::malloc(sizeof(Block) + capacity);
    if (memory == nullptr) throw std::bad_alloc();
    return new (memory) Block(capacity);
  }
  static void destroy(Block* block) { std::free(block); }

  static std::uint32_t room_for(std::size_t row_size) {
    return static_cast<std::uint32_t>(row_size + sizeof(std::uint32_t));
  }

  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t count() const { return count_.load(std::memory_order_acquire); }  // R1

  /// Requires: i < a count() that the caller has read.
  model::RowView row(std::uint32_t i) const {
    const std::uint32_t begin = i == 0 ? 0 : end_of(i - 1);
    return model::RowView({data() + begin, end_of(i) - begin});
  }
  std::string_view row_bytes(std::uint32_t i) const {
    const std::uint32_t begin = i == 0 ? 0 : end_of(i - 1);
    return {data() + begin, end_of(i) - begin};
  }

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

  // Writer only.
  std::uint32_t used() const { return used_; }
  std::uint32_t writer_count() const { return count_.load(std::memory_order_relaxed); }  // own stores only
  bool fits(std::size_t row_size) const {
    return used_ + row_size + sizeof(std::uint32_t) * (writer_count() + 1) <= capacity_;
  }
  const char* write_position() const { return data() + used_; }
  const char* next_end() const { return data() + capacity_ - sizeof(std::uint32_t) * (writer_count() + 1); }

  /// Appends a row. Requires: fits(), and the sort key is above the last one.
  void append(std::string_view row) {
    const std::uint32_t n = writer_count();
    std::memcpy(data() + used_, row.data(), row.size());
    used_ += static_cast<std::uint32_t>(row.size());
    set_end(n, used_);
    count_.store(n + 1, std::memory_order_release);  // W2
  }

  /// Appends rows [begin, end) of another block in one copy. Requires: room, and order.
  void append_rows(const Block& from, std::uint32_t begin, std::uint32_t end) {
    if (begin == end) return;
    const std::uint32_t from_begin = begin == 0 ? 0 : from.end_of(begin - 1);
    const std::uint32_t size = from.end_of(end - 1) - from_begin;
    std::memcpy(data() + used_, from.data() + from_begin, size);
    const std::uint32_t n = writer_count();
    for (std::uint32_t i = begin; i < end; ++i) set_end(n + i - begin, from.end_of(i) - from_begin + used_);
    used_ += size;
    count_.store(n + end - begin, std::memory_order_release);  // W2
  }

 private:
  explicit Block(std::uint32_t capacity) : capacity_(capacity) {}

  char* data() { return reinterpret_cast<char*>(this) + sizeof(Block); }
  const char* data() const { return reinterpret_cast<const char*>(this) + sizeof(Block); }
  std::uint32_t end_of(std::uint32_t i) const {
    std::uint32_t end;
    std::memcpy(&end, data() + capacity_ - sizeof end * (i + 1), sizeof end);
    return end;
  }
  void set_end(std::uint32_t i, std::uint32_t end) {
    std::memcpy(data() + capacity_ - sizeof end * (i + 1), &end, sizeof end);
  }

  const std::uint32_t capacity_;
  std::uint32_t used_ = 0;  // writer only
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace drover::store

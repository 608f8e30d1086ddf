#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace drover::ingest {

/// Bytes without a first value.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t capacity)
      : bytes_(std::make_unique_for_overwrite<char[]>(capacity)), capacity_(capacity) {}
  Buffer(Buffer&& other) noexcept : bytes_(std::move(other.bytes_)), capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    bytes_ = std::move(other.bytes_);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  char* data() const { return bytes_.get(); }
  std::size_t capacity() const { return capacity_; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
};

/// Keeps a few buffers between their uses. Threads: one.
class BufferPool {
 public:
  static constexpr std::size_t kBuffersMax = 4;
  static constexpr std::size_t kKeptSizeBytesMax = std::size_t{16} * 1024 * 1024;  ///< Of one; larger ones are freed.

  Buffer take(std::size_t capacity_min) {
    for (auto kept = kept_.rbegin(); kept != kept_.rend(); ++kept) {  // the last one is the warmest
      if (kept->capacity() < capacity_min) continue;
      Buffer buffer = std::move(*kept);
      kept_.erase(std::next(kept).base());
      return buffer;
    }
    return Buffer(capacity_min);
  }
  void give(Buffer&& buffer) {
    if (buffer.capacity() == 0 || buffer.capacity() > kKeptSizeBytesMax) return;
    if (kept_.size() == kBuffersMax) kept_.erase(kept_.begin());
    kept_.push_back(std::move(buffer));
  }

 private:
  std::vector<Buffer> kept_;
};

}  // namespace drover::ingest

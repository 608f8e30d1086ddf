#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "drover/model/bytes.h"

/// Columns of 64-bit integers as few bytes: what every column of a block on disk comes down to (columns.h).
///
/// A column is what is left of its values once they have been predicted (from those in front, or from another column),
/// packed in one of four ways. All arithmetic wraps, so every 64-bit value comes back exactly; signed values go in as
/// their two's complement. ARCHITECTURE.md has the grammar.
namespace drover::store {

/// Bytes behind a column that its decoder may read (and ignores).
inline constexpr std::size_t kInputPaddingBytes = 16;

/// Bytes from disk, read from the front. Every take_… says whether it was there, and moves on only then.
class Input {
 public:
  /// Requires: kInputPaddingBytes readable bytes behind `bytes`.
  explicit Input(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  std::size_t size() const { return static_cast<std::size_t>(end_ - at_); }
  bool begins_with(std::uint8_t byte) const { return at_ != end_ && static_cast<std::uint8_t>(*at_) == byte; }
  bool take_byte(std::uint8_t& byte) {
    if (at_ == end_) return false;
    byte = static_cast<std::uint8_t>(*at_++);
    return true;
  }
  bool take_bytes(std::uint64_t size, std::string_view& bytes) {
    if (size > this->size()) return false;
    bytes = {at_, static_cast<std::size_t>(size)};
    at_ += size;
    return true;
  }
  bool take_varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool take_signed(std::uint64_t& value) {
    if (!take_varint(value)) return false;
    value = static_cast<std::uint64_t>(model::unzigzag(value));
    return true;
  }

 private:
  const char* at_;
  const char* end_;
};

/// Appends a column of values.size() integers. `reference`, if not empty, is another column of the same size that the
/// decoder will have too, and that the values may follow.
void append_integers(std::span<const std::uint64_t> values, std::span<const std::uint64_t> reference,
                     model::Bytes& out);

/// Takes a column, if it is one that has the same value everywhere, whatever its size.
bool take_constant(Input& in, std::uint64_t& value);

/// Reads values.size() integers; false: these bytes are no such column. The reference must be the one of encoding.
bool take_integers(Input& in, std::span<std::uint64_t> values, std::span<const std::uint64_t> reference);

}  // namespace drover::store

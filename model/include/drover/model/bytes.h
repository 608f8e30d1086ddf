#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The few primitives of every encoding in Drover: little-endian base-128 varints, zigzag, raw bytes.
namespace drover::model {

using Bytes = std::string;  ///< An owned byte string (not text unless said so).

/// Leaves what resize() adds unwritten: for buffers that are filled right away.
template <typename T>
struct UninitializedAllocator : std::allocator<T> {
  template <typename U>
  struct rebind {
    using other = UninitializedAllocator<U>;
  };
  template <typename U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <typename U, typename... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
  }
};
using ByteBuffer = std::vector<char, UninitializedAllocator<char>>;

inline constexpr std::size_t kVarintSizeBytesMax = 10;

/// Writes `value` at `out` (kVarintSizeBytesMax bytes of room needed) and returns the position behind it.
inline char* put_varint(char* out, std::uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<char>(value);
  return out;
}
inline void append_varint(Bytes& out, std::uint64_t value) {
  char buffer[kVarintSizeBytesMax];
  out.append(buffer, put_varint(buffer, value));
}

namespace detail {
/// The rest of a varint of more than one byte, `first` being its first.
inline const char* get_long_varint(const char* in, std::uint64_t first, std::uint64_t& value) {
  std::uint64_t result = first & 0x7f;
  for (unsigned shift = 7;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*in++);
    result |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  value = result;
  return in;
}
}  // namespace detail

/// Reads a varint that put_varint() wrote. Requires: the input is our own (it is not checked against an end).
[[gnu::always_inline]] inline const char* get_varint(const char* in, std::uint64_t& value) {
  const auto byte = static_cast<unsigned char>(*in++);
  if (byte >= 0x80) return detail::get_long_varint(in, byte, value);
  value = byte;
  return in;
}

inline std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
inline std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

}  // namespace drover::model

#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace drover::ingest {

static_assert(std::endian::native == std::endian::little);

template <std::integral T>
T byte_swapped(T value) {
  if constexpr (sizeof(T) == 8) return static_cast<T>(__builtin_bswap64(static_cast<std::uint64_t>(value)));
  if constexpr (sizeof(T) == 4) return static_cast<T>(__builtin_bswap32(static_cast<std::uint32_t>(value)));
  if constexpr (sizeof(T) == 2) return static_cast<T>(__builtin_bswap16(static_cast<std::uint16_t>(value)));
  return value;
}

/// A number as Kafka writes it. Requires: sizeof(T) bytes at `at`.
template <std::integral T>
T big_endian(const char* at) {
  T value = 0;
  std::memcpy(&value, at, sizeof value);
  return byte_swapped(value);
}

}  // namespace drover::ingest

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

/// Numbers of fixed width as text, two digits at a time.
namespace drover::model {

inline constexpr auto kTwoDigits = [] {
  std::array<char, 200> digits{};
  for (std::size_t i = 0; i < 100; ++i) {
    digits[2 * i] = static_cast<char>('0' + i / 10);
    digits[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return digits;
}();

/// Writes `value` and returns the position behind it. Requires: it is below 100.
inline char* put_two_digits(char* out, std::uint32_t value) {
  std::memcpy(out, &kTwoDigits[std::size_t{2} * value], 2);
  return out + 2;
}

}  // namespace drover::model

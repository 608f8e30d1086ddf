#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "drover/model/bytes.h"
#include "drover/model/value_view.h"

/// Eight bytes at a time in one register: reading JSON scalars in place, and small copies without a call.
///
/// A word's lowest byte is the first of the text. Nothing here reads or writes outside of what it is given.
namespace drover::ingest {

static_assert(std::endian::native == std::endian::little, "words are loaded as text stands in memory");

inline constexpr std::uint64_t kOnes = 0x0101010101010101;
inline constexpr std::uint64_t kHighBits = 0x8080808080808080;

template <typename Word>
inline Word load(const char* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}
template <typename Word>
inline void store(char* to, Word word) {
  std::memcpy(to, &word, sizeof word);
}

inline std::size_t first_byte(std::uint64_t marks) {
  return static_cast<std::size_t>(std::countr_zero(marks)) / 8;
}

/// Copies `size` bytes; for the few bytes of a key or a name, where a call of memcpy costs more than the copying.
inline char* put_bytes(char* to, const char* from, std::size_t size) {
  if (size >= 16) {
    struct Block {
      std::uint64_t words[2];
    };
    for (std::size_t i = 0; i + 16 <= size; i += 16) store(to + i, load<Block>(from + i));
    store(to + size - 16, load<Block>(from + size - 16));
  } else if (size >= 8) {
    const auto last = load<std::uint64_t>(from + size - 8);
    store(to, load<std::uint64_t>(from));
    store(to + size - 8, last);
  } else if (size >= 4) {
    const auto last = load<std::uint32_t>(from + size - 4);
    store(to, load<std::uint32_t>(from));
    store(to + size - 4, last);
  } else {
    for (std::size_t i = 0; i < size; ++i) to[i] = from[i];
  }
  return to + size;
}
inline char* put_bytes(char* to, std::string_view bytes) {
  return put_bytes(to, bytes.data(), bytes.size());
}

inline bool equal_bytes(const char* a, const char* b, std::size_t size) {
  if (size >= 8) {
    std::uint64_t difference = load<std::uint64_t>(a + size - 8) ^ load<std::uint64_t>(b + size - 8);
    for (std::size_t i = 0; i + 8 < size; i += 8) {
      difference |= load<std::uint64_t>(a + i) ^ load<std::uint64_t>(b + i);
    }
    return difference == 0;
  }
  if (size >= 4) {
    return load<std::uint32_t>(a) == load<std::uint32_t>(b) &&
           load<std::uint32_t>(a + size - 4) == load<std::uint32_t>(b + size - 4);
  }
  for (std::size_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

/// As put_varint(), without a branch for the sizes that readings have.
inline char* put_small_varint(char* to, std::uint64_t value) {
  if (value >= std::uint64_t{1} << 28) return model::put_varint(to, value);
  const auto size = static_cast<unsigned>(std::bit_width(value | 1) + 6) / 7;
  const auto low = static_cast<std::uint32_t>(value);
  std::uint32_t spread = (low & 0x7f) | (low & 0x3f80) << 1 | (low & 0x1fc000) << 2 | (low & 0xfe00000) << 3;
  spread |= 0x00808080u & ((1u << (8 * (size - 1))) - 1);
  store(to, spread);
  return to + size;
}

/// The closing quote of a JSON string whose text begins at `at`; nullptr if anything but plain ASCII comes before it.
inline const char* find_closing_quote(const char* at, const char* end) {
  for (; end - at >= 8; at += 8) {
    const auto word = load<std::uint64_t>(at);
    const auto zero_bytes = [](std::uint64_t x) { return (x - kOnes) & ~x & kHighBits; };
    // Each mask's lowest mark is exact: borrows only reach bytes above it.
    const std::uint64_t marks = zero_bytes(word ^ (kOnes * '"')) | zero_bytes(word ^ (kOnes * '\\')) |
                                ((word - kOnes * 0x20) & ~word & kHighBits) | (word & kHighBits);
    if (marks == 0) continue;
    at += first_byte(marks);
    return *at == '"' ? at : nullptr;
  }
  for (; at != end; ++at) {
    if (*at == '"') return at;
    if (*at == '\\' || static_cast<signed char>(*at) < 0x20) return nullptr;  // from 0x80 on they are negative
  }
  return nullptr;
}

/// A decimal of at most 18 digits as it was written: (negative ? -1 : 1) * digits / 10^fraction_digits.
struct SmallDecimal {
  std::uint64_t digits = 0;
  unsigned fraction_digits = 0;
  bool negative = false;

  std::int64_t coefficient() const {
    return negative ? -static_cast<std::int64_t>(digits) : static_cast<std::int64_t>(digits);
  }
  std::int32_t exponent() const { return -static_cast<std::int32_t>(fraction_digits); }
};

/// take_small_decimal() for numbers longer than a word.
inline const char* take_long_decimal(const char* at, const char* end, SmallDecimal& number) {
  number = {};
  if (*at == '-') {
    number.negative = true;
    ++at;
  }
  const auto take_digits = [&](const char* from) {
    for (; from != end && *from >= '0' && *from <= '9' && number.digits < 100'000'000'000'000'000; ++from) {
      number.digits = 10 * number.digits + static_cast<unsigned>(*from - '0');
    }
    return from;
  };
  const char* const point = take_digits(at);
  if (point == at || point == end || (*at == '0' && point - at > 1)) return nullptr;
  if (*point != '.') return point;
  const char* const behind = take_digits(point + 1);
  number.fraction_digits = static_cast<unsigned>(behind - point - 1);
  return number.fraction_digits == 0 || behind - at > 19 ? nullptr : behind;
}

/// Reads a JSON number at `at`, which is in [begin, end); `end - begin` is at least 8. Returns the position behind, or
/// nullptr if it is anything but a plain decimal of a few digits. What stands behind is the caller's to check: a digit,
/// a point or an exponent there means that the number goes on.
inline const char* take_small_decimal(const char* at, const char* end, SmallDecimal& number) {
  // The last bytes of the record come from a word that begins earlier; zero bytes stand for what is behind the end.
  const std::ptrdiff_t room = end - at;
  std::uint64_t word = room >= 8 ? load<std::uint64_t>(at) : load<std::uint64_t>(end - 8) >> (8 * (8 - room));
  const unsigned sign = (word & 0xff) == '-' ? 1 : 0;
  word >>= 8 * sign;
  const std::uint64_t digits = word ^ (kOnes * '0');  // 0 to 9 where a digit stands
  std::uint64_t others = (((digits & ~kHighBits) + kOnes * 0x76) | digits) & kHighBits;
  if (others == 0) return take_long_decimal(at, end, number);
  const std::size_t whole = first_byte(others);
  const bool leading_zero = (digits & 0xff) == 0 && whole > 1;
  if (whole == 0 || leading_zero) return nullptr;
  std::uint64_t joined = digits;
  std::size_t size = whole;
  std::size_t fraction = 0;
  if ((word >> (8 * whole) & 0xff) == '.') {
    others &= others - 1;
    if (others == 0) return take_long_decimal(at, end, number);
    size = first_byte(others);
    fraction = size - whole - 1;
    if (fraction == 0 && sign + size < 8) return nullptr;
    const std::uint64_t before_point = (std::uint64_t{1} << (8 * whole)) - 1;
    joined = (digits & before_point) | (digits >> 8 & ~before_point);
  }
  if (sign + size == 8) return take_long_decimal(at, end, number);  // the shift has cut what follows
  // The digits go to the top of the word, zeros in front of them; then neighbours are joined, thrice.
  joined <<= 8 * (8 - (whole + fraction));
  joined = (joined * 2561) >> 8 & 0x00ff00ff00ff00ff;
  joined = (joined * 6553601) >> 16 & 0x0000ffff0000ffff;
  joined = joined * 42949672960001 >> 32;
  number = {joined, static_cast<unsigned>(fraction), sign != 0};
  return at + sign + size;
}

/// An encoded number (value_view.h); room: 21 bytes.
inline char* put_decimal(char* to, const SmallDecimal& number) {
  if (number.digits % 10 == 0) return model::put_number_value(to, number.coefficient(), number.exponent());
  *to++ = static_cast<char>(model::ValueTag::kNumber);
  *to++ = static_cast<char>(model::zigzag(number.exponent()));
  return put_small_varint(to, 2 * number.digits - (number.negative ? 1 : 0));
}

}  // namespace drover::ingest

#include "drover/model/decimal.h"

#include <algorithm>
#include <array>

#include "drover/model/limits.h"

namespace drover::model {
namespace {

using Coefficient = unsigned __int128;

// Exponent of the leading digit, as in 9.99e125.
constexpr std::int64_t kLeadingExponentMax = 125;
constexpr std::int64_t kLeadingExponentMin = -130;
constexpr std::int64_t kDigitsMax = kNumberDigitsMax;

constexpr auto kPowersOfTen = [] {
  std::array<Coefficient, kNumberDigitsMax + 1> powers{1};
  for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 10;
  return powers;
}();

Coefficient power_of_ten(std::int64_t exponent) {
  return kPowersOfTen[static_cast<std::size_t>(exponent)];
}

/// 1 for zero; up to 39, which is what 128 bits hold.
std::int64_t count_digits(Coefficient value) {
  // The smallest power that is larger; kept short for the usual small number.
  const auto first = kPowersOfTen.begin() + 1;
  return std::upper_bound(first, value < 1'000'000'000 ? first + 9 : kPowersOfTen.end(), value) - kPowersOfTen.begin();
}

Status not_a_number(std::string_view text) {
  std::string message = "The parameter cannot be converted to a numeric value";
  if (!text.empty()) message.append(": ").append(text);
  return invalid(std::move(message));
}

Status too_many_digits() {
  return invalid("Attempting to store more than 38 significant digits in a Number");
}

Status check_range(std::int64_t leading_exponent) {
  if (leading_exponent > kLeadingExponentMax) {
    return invalid("Number overflow. Attempting to store a number with magnitude larger than supported range");
  }
  if (leading_exponent < kLeadingExponentMin) {
    return invalid("Number underflow. Attempting to store a number with magnitude smaller than supported range");
  }
  return {};
}

/// Moves trailing zeros of a coefficient, which is not zero, into the exponent.
template <typename Unsigned>
void strip_zeros(Unsigned& coefficient, std::int64_t& exponent) {
  while (coefficient % 10 == 0) {
    coefficient /= 10;
    ++exponent;
  }
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Digits as they are read, without leading and trailing zeros. Counts on past 38 digits but stops adding them up.
struct SignificantDigits {
  Coefficient coefficient = 0;
  std::int64_t count = 0;
  std::int64_t trailing_zeros = 0;

  void add(char c) {
    const auto digit = static_cast<unsigned>(c - '0');
    if (digit == 0) {
      if (count > 0) ++trailing_zeros;
      return;
    }
    count += trailing_zeros + 1;
    if (count <= kDigitsMax) coefficient = coefficient * power_of_ten(trailing_zeros + 1) + digit;
    trailing_zeros = 0;
  }
};

/// Reads an exponent's sign and digits up to `end`; far beyond any range it stops growing. False: not an exponent.
bool read_exponent(const char* at, const char* end, std::int64_t& exponent) {
  constexpr std::int64_t kSaturated = 1'000'000'000'000;
  const bool negative = at != end && *at == '-';
  if (at != end && (*at == '-' || *at == '+')) ++at;
  if (at == end) return false;
  for (; at != end; ++at) {
    if (!is_digit(*at)) return false;
    if (exponent < kSaturated) exponent = exponent * 10 + (*at - '0');
  }
  if (negative) exponent = -exponent;
  return true;
}

/// Writes the digits right-aligned in front of `end` and returns where they begin.
char* put_digits_before(char* end, Coefficient value) {
  while (value > UINT64_MAX) {
    constexpr std::uint64_t kChunk = 10'000'000'000'000'000'000u;
    auto low = static_cast<std::uint64_t>(value % kChunk);
    value /= kChunk;
    for (int i = 0; i < 19; ++i, low /= 10) *--end = static_cast<char>('0' + low % 10);
  }
  auto rest = static_cast<std::uint64_t>(value);
  do {
    *--end = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  return end;
}

}  // namespace

Decimal::Decimal(std::int64_t value) : negative_(value < 0) {
  if (value == 0) return;
  auto magnitude = static_cast<std::uint64_t>(value);
  if (negative_) magnitude = -magnitude;
  std::int64_t exponent = 0;
  strip_zeros(magnitude, exponent);
  coefficient_ = magnitude;
  exponent_ = static_cast<std::int32_t>(exponent);
}

Result<Decimal> Decimal::parse(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const bool negative = at != end && *at == '-';
  if (at != end && (*at == '-' || *at == '+')) ++at;

  SignificantDigits digits;
  const char* const whole = at;
  for (; at != end && is_digit(*at); ++at) digits.add(*at);
  std::int64_t read = at - whole;
  std::int64_t fraction = 0;
  if (at != end && *at == '.') {
    const char* const begin = ++at;
    for (; at != end && is_digit(*at); ++at) digits.add(*at);
    fraction = at - begin;
    read += fraction;
  }
  std::int64_t exponent = 0;
  if (read == 0) return not_a_number(text);
  if (at != end && ((*at | 0x20) != 'e' || !read_exponent(at + 1, end, exponent))) return not_a_number(text);

  Decimal result;
  if (digits.count == 0) return result;
  exponent += digits.trailing_zeros - fraction;
  if (Status range = check_range(exponent + digits.count - 1); !range.ok()) return range;
  if (digits.count > kDigitsMax) return too_many_digits();
  result.coefficient_ = digits.coefficient;
  result.exponent_ = static_cast<std::int32_t>(exponent);
  result.negative_ = negative;
  return result;
}

Result<Decimal> Decimal::of(bool negative, unsigned __int128 coefficient, std::int64_t exponent) {
  Decimal result;
  if (coefficient == 0) return result;
  if (coefficient > UINT64_MAX) {
    strip_zeros(coefficient, exponent);
  } else {
    auto small = static_cast<std::uint64_t>(coefficient);
    strip_zeros(small, exponent);
    coefficient = small;
  }
  const std::int64_t digits = count_digits(coefficient);
  if (Status range = check_range(exponent + digits - 1); !range.ok()) return range;
  if (digits > kDigitsMax) return too_many_digits();
  result.coefficient_ = coefficient;
  result.exponent_ = static_cast<std::int32_t>(exponent);
  result.negative_ = negative;
  return result;
}

std::size_t Decimal::digits() const {
  return static_cast<std::size_t>(count_digits(coefficient_));
}

std::string Decimal::text() const {
  std::string out;
  append_text(out);
  return out;
}

void Decimal::append_text(std::string& out) const {
  char buffer[kNumberDigitsMax];
  char* const end = buffer + sizeof buffer;
  char* const begin = put_digits_before(end, coefficient_);
  const auto digits = static_cast<std::size_t>(end - begin);
  if (negative_) out.push_back('-');
  if (exponent_ >= 0) {
    out.append(begin, digits).append(static_cast<std::size_t>(exponent_), '0');
    return;
  }
  const auto fraction = static_cast<std::size_t>(-exponent_);
  if (digits > fraction) {
    out.append(begin, digits - fraction).append(1, '.').append(end - fraction, fraction);
  } else {
    out.append("0.").append(fraction - digits, '0').append(begin, digits);
  }
}

Result<Decimal> Decimal::add(const Decimal& a, const Decimal& b) {
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  const Decimal& high = a.exponent_ >= b.exponent_ ? a : b;
  const Decimal& low = a.exponent_ >= b.exponent_ ? b : a;

  // Brought to the lower exponent, the sum ends in `low`'s last digit, which is not zero: it can't get shorter at that
  // end. So once the aligned number passes 128 bits (3.4e38), no sum or difference with 38 digits is left.
  const std::int64_t shift = high.exponent_ - low.exponent_;
  Coefficient aligned = 0;
  if (shift > kDigitsMax || __builtin_mul_overflow(high.coefficient_, power_of_ten(shift), &aligned)) {
    return too_many_digits();
  }
  if (high.negative_ != low.negative_) {
    return aligned >= low.coefficient_ ? of(high.negative_, aligned - low.coefficient_, low.exponent_)
                                       : of(low.negative_, low.coefficient_ - aligned, low.exponent_);
  }
  Coefficient sum = 0;
  if (__builtin_add_overflow(aligned, low.coefficient_, &sum)) return too_many_digits();
  return of(high.negative_, sum, low.exponent_);
}

Result<Decimal> Decimal::subtract(const Decimal& a, const Decimal& b) {
  Decimal negated = b;
  negated.negative_ = !b.negative_ && !b.is_zero();
  return add(a, negated);
}

std::strong_ordering operator<=>(const Decimal& a, const Decimal& b) {
  const auto sign = [](const Decimal& d) { return d.is_zero() ? 0 : d.negative_ ? -1 : 1; };
  if (sign(a) != sign(b)) return sign(a) <=> sign(b);
  if (a.is_zero()) return std::strong_ordering::equal;
  const Decimal& larger_if_positive = a.negative_ ? b : a;
  const Decimal& other = a.negative_ ? a : b;
  const std::int64_t digits = count_digits(larger_if_positive.coefficient_);
  const std::int64_t other_digits = count_digits(other.coefficient_);
  const auto by_leading = digits + larger_if_positive.exponent_ <=> other_digits + other.exponent_;
  if (std::is_neq(by_leading)) return by_leading;
  // The same leading exponent: brought to the same number of digits, the coefficients decide.
  const std::int64_t width = std::max(digits, other_digits);
  return larger_if_positive.coefficient_ * power_of_ten(width - digits) <=>
         other.coefficient_ * power_of_ten(width - other_digits);
}

// Order-preserving form of a number
//
//     number   = 0x01 ~leading ~pairs   negative: the complement turns the order round
//              | 0x02                   zero
//              | 0x03 leading pairs     positive
//     leading  = exponent of the first digit + 130, one byte (that is DynamoDB's range exactly)
//     pairs    = { 2 * pair + 1 } 2 * pair     digits from the left, two a byte, an odd last one with a 0 behind it
//
// The low bit says whether more pairs follow: of two numbers that agree so far the shorter one is smaller, and no form
// is a prefix of another.
namespace {

enum : unsigned char { kOrderedNegative = 1, kOrderedZero = 2, kOrderedPositive = 3 };

}  // namespace

void Decimal::append_ordered(Bytes& out) const {
  if (is_zero()) {
    out.push_back(static_cast<char>(kOrderedZero));
    return;
  }
  char buffer[kNumberDigitsMax + 1];
  char* const end = buffer + kNumberDigitsMax;
  *end = '0';
  const char* const begin = put_digits_before(end, coefficient_);
  const auto flip = static_cast<unsigned char>(negative_ ? 0xff : 0);
  const auto put = [&](std::int64_t byte) { out.push_back(static_cast<char>(byte ^ flip)); };
  out.push_back(static_cast<char>(negative_ ? kOrderedNegative : kOrderedPositive));
  put(exponent_ + (end - begin) - 1 - kLeadingExponentMin);
  for (const char* at = begin; at < end; at += 2) {
    const int pair = (at[0] - '0') * 10 + (at[1] - '0');
    put(2 * pair + (at + 2 < end ? 1 : 0));
  }
}

Decimal Decimal::decode_ordered(std::string_view& in) {
  const auto* at = reinterpret_cast<const unsigned char*>(in.data());
  const auto* const begin = at;
  Decimal result;
  const unsigned char sign = *at++;
  if (sign != kOrderedZero) {
    result.negative_ = sign == kOrderedNegative;
    const unsigned flip = result.negative_ ? 0xff : 0;
    std::int64_t exponent = static_cast<std::int64_t>(*at++ ^ flip) + kLeadingExponentMin + 1;
    // The last pair is added by digits, so that 38 of them never need 40 places.
    unsigned byte = *at++ ^ flip;
    for (; (byte & 1) != 0; byte = *at++ ^ flip, exponent -= 2) {
      result.coefficient_ = result.coefficient_ * 100 + byte / 2;
    }
    const unsigned pair = byte / 2;
    const bool odd = pair % 10 == 0;
    result.coefficient_ = odd ? result.coefficient_ * 10 + pair / 10 : result.coefficient_ * 100 + pair;
    result.exponent_ = static_cast<std::int32_t>(exponent - (odd ? 1 : 2));
  }
  in.remove_prefix(static_cast<std::size_t>(at - begin));
  return result;
}

}  // namespace drover::model

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "drover/model/bytes.h"
#include "drover/model/status.h"

namespace drover::model {

/// DynamoDB's number: an exact decimal of at most 38 significant digits, magnitude 1e-130 to 9.99…e125, or zero.
///
/// Value = (negative ? -1 : 1) * coefficient * 10^exponent. Always canonical: the coefficient has no trailing zero, and
/// zero is {false, 0, 0}; so equal numbers, however they were written, have equal fields and equal encodings.
/// Never rounds: what does not fit is an error. Source of the rules: DynamoDB Developer Guide, "Data types: Number".
class Decimal {
 public:
  Decimal() = default;
  explicit Decimal(std::int64_t value);

  /// Reads the text of a number: optional sign, digits, optional fraction, optional exponent, nothing else. Fails with
  /// kInvalid and DynamoDB's own words ("Attempting to store more than 38 significant digits in a Number", "Number
  /// overflow. Attempting to store a number with magnitude larger than supported range", "Number underflow. …", "The
  /// parameter cannot be converted to a numeric value: …"). The cost does not depend on the exponent's size.
  static Result<Decimal> parse(std::string_view text);

  /// Makes a canonical number of an unscaled value, as parse() would of its text; the same errors.
  static Result<Decimal> of(bool negative, unsigned __int128 coefficient, std::int64_t exponent);

  /// DynamoDB's canonical text: no exponent, no trailing zero, "0.5", "-7"; 1e125 is 126 digits.
  std::string text() const;
  void append_text(std::string& out) const;

  bool negative() const { return negative_; }
  unsigned __int128 coefficient() const { return coefficient_; }
  std::int32_t exponent() const { return exponent_; }
  bool is_zero() const { return coefficient_ == 0; }
  std::size_t digits() const;  ///< Significant ones, 1 to 38; 1 for zero.

  /// Exact sum and difference; more than 38 digits or out of range is an error (1e50 + 1), never a rounding.
  static Result<Decimal> add(const Decimal& a, const Decimal& b);
  static Result<Decimal> subtract(const Decimal& a, const Decimal& b);

  friend bool operator==(const Decimal&, const Decimal&) = default;
  friend std::strong_ordering operator<=>(const Decimal& a, const Decimal& b);  ///< By value.

  /// Appends bytes whose unsigned order is the order of the numbers; decode_ordered() gives the number back.
  /// No encoding is a prefix of another one.
  void append_ordered(Bytes& out) const;
  /// Reads what append_ordered() wrote at the start of `in` and drops it from there. Requires: our own bytes.
  static Decimal decode_ordered(std::string_view& in);

 private:
  unsigned __int128 coefficient_ = 0;
  std::int32_t exponent_ = 0;
  bool negative_ = false;
};

}  // namespace drover::model

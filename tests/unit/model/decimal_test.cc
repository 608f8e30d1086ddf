#include "drover/model/decimal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "random_values.h"

namespace drover::model {
namespace {

constexpr std::uint64_t kSeed = 20260623;
constexpr int kRounds = 20'000;

constexpr const char* kTooManyDigits = "Attempting to store more than 38 significant digits in a Number";
constexpr const char* kOverflow =
    "Number overflow. Attempting to store a number with magnitude larger than supported range";
constexpr const char* kUnderflow =
    "Number underflow. Attempting to store a number with magnitude smaller than supported range";

std::string canonical(std::string_view text) {
  const Result<Decimal> number = Decimal::parse(text);
  return number ? number->text() : number.status().message();
}

Decimal decimal(std::string_view text) {
  return Decimal::parse(text).value();
}

Bytes ordered(const Decimal& number) {
  Bytes bytes;
  number.append_ordered(bytes);
  return bytes;
}

/// The naive model: a sign and one decimal digit per place from 10^150 down to 10^-200, added up as on paper.
class OnPaper {
 public:
  explicit OnPaper(std::string_view text) : digits_(kPlaces) {
    negative_ = text.front() == '-';
    if (negative_ || text.front() == '+') text.remove_prefix(1);
    const std::size_t e = text.find('e');
    const int exponent = e == std::string_view::npos ? 0 : std::stoi(std::string(text.substr(e + 1)));
    const std::string_view mantissa = text.substr(0, e);
    const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
    int place = kTop - (static_cast<int>(point) - 1 + exponent);
    for (const char c : mantissa) {
      if (c != '.') digits_[static_cast<std::size_t>(place++)] = c - '0';
    }
  }

  OnPaper negated() const {
    OnPaper result = *this;
    result.negative_ = !negative_;
    return result;
  }

  OnPaper plus(const OnPaper& other) const {
    if (negative_ != other.negative_ && digits_ < other.digits_) return other.plus(*this);
    OnPaper result = *this;
    int carry = 0;
    for (std::size_t place = kPlaces; place-- > 0;) {
      const int sum = digits_[place] + (negative_ == other.negative_ ? 1 : -1) * other.digits_[place] + carry;
      carry = sum > 9 ? 1 : sum < 0 ? -1 : 0;
      result.digits_[place] = sum - 10 * carry;
    }
    return result;
  }

  bool is_zero() const { return first() == kPlaces; }
  bool fits() const {
    if (is_zero()) return true;
    const int leading = kTop - static_cast<int>(first());
    return leading <= 125 && leading >= -130 && last() - first() < 38;
  }

  /// Canonical text.
  std::string text() const {
    if (is_zero()) return "0";
    std::string text = negative_ ? "-" : "";
    for (std::size_t place = std::min<std::size_t>(first(), kTop); place <= std::max<std::size_t>(last(), kTop);
         ++place) {
      text.push_back(static_cast<char>('0' + digits_[place]));
      if (place == kTop && last() > kTop) text.push_back('.');
    }
    return text;
  }

  bool less(const OnPaper& other) const {
    const bool minus = negative_ && !is_zero();
    const bool other_minus = other.negative_ && !other.is_zero();
    if (minus != other_minus) return minus;
    return minus ? other.digits_ < digits_ : digits_ < other.digits_;
  }

 private:
  static constexpr std::size_t kPlaces = 351;
  static constexpr int kTop = 150;  // index of 10^0

  std::size_t first() const {
    return static_cast<std::size_t>(std::find_if(digits_.begin(), digits_.end(), [](int d) { return d != 0; }) -
                                    digits_.begin());
  }
  std::size_t last() const {
    std::size_t place = kPlaces - 1;
    while (digits_[place] == 0) --place;
    return place;
  }

  bool negative_ = false;
  std::vector<int> digits_;
};

TEST(Decimal, TextIsCanonical) {
  EXPECT_EQ(canonical("+3"), "3");
  EXPECT_EQ(canonical("007"), "7");
  EXPECT_EQ(canonical("1.0"), "1");
  EXPECT_EQ(canonical("1e3"), "1000");
  EXPECT_EQ(canonical("1E+3"), "1000");
  EXPECT_EQ(canonical(".5"), "0.5");
  EXPECT_EQ(canonical("5."), "5");
  EXPECT_EQ(canonical("-0"), "0");
  EXPECT_EQ(canonical("-0.0e-500"), "0");
  EXPECT_EQ(canonical("0e999999999999999999999"), "0");
  EXPECT_EQ(canonical("-12.3400"), "-12.34");
  EXPECT_EQ(canonical("1234.5e-2"), "12.345");
  EXPECT_EQ(canonical("1e125"), "1" + std::string(125, '0'));
  EXPECT_EQ(canonical("-1e-130"), "-0." + std::string(129, '0') + "1");
  EXPECT_EQ(canonical("12345678901234567890123456789012345678"), "12345678901234567890123456789012345678");
}

TEST(Decimal, WhatIsNoNumberIsRefusedInDynamoDbsWords) {
  for (const char* text : {"abc", " 1", "1 ", "0x10", "NaN", "Infinity", "-", "+", ".", "e5", "1e", "1e+", "1e5.5",
                           "1.2.3", "--1", "1,5", "1_000", "\xd9\xa3"}) {
    EXPECT_EQ(canonical(text), std::string("The parameter cannot be converted to a numeric value: ") + text);
  }
  EXPECT_EQ(canonical(""), "The parameter cannot be converted to a numeric value");
  EXPECT_EQ(canonical(std::string_view("1\0", 2)),
            "The parameter cannot be converted to a numeric value: " + std::string("1\0", 2));
  EXPECT_EQ(Decimal::parse("x").status().code(), StatusCode::kInvalid);
}

TEST(Decimal, BeyondTheRangeIsAnErrorNeverARounding) {
  const std::string nines(38, '9');
  EXPECT_EQ(canonical(nines + "e88"), nines + std::string(88, '0'));
  EXPECT_EQ(canonical("1e126"), kOverflow);
  EXPECT_EQ(canonical("-1e126"), kOverflow);
  EXPECT_EQ(canonical(nines + "e89"), kOverflow);
  EXPECT_EQ(canonical("9.9e-131"), kUnderflow);
  EXPECT_EQ(canonical("-1e-131"), kUnderflow);
  EXPECT_EQ(canonical(std::string(39, '9')), kTooManyDigits);
  EXPECT_EQ(canonical("0.1" + std::string(37, '0') + "1"), kTooManyDigits);
  EXPECT_EQ(canonical("1" + std::string(80, '0') + ".0"), "1" + std::string(80, '0'));
  EXPECT_EQ(canonical("1" + std::string(60, '0') + "1"), kTooManyDigits);
}

TEST(Decimal, HugeExponentsAndHugeTextsAreRefusedAtOnce) {
  EXPECT_EQ(canonical("1.0e100000000"), kOverflow);
  EXPECT_EQ(canonical("1e99999999999999999999999999999"), kOverflow);
  EXPECT_EQ(canonical("1e18446744073709551621"), kOverflow);  // 2^64 + 5
  EXPECT_EQ(canonical("1e-99999999999999999999999999999"), kUnderflow);
  EXPECT_EQ(canonical("0." + std::string(400'000, '0') + "1e400001"), "1");
  EXPECT_EQ(canonical("1" + std::string(400'000, '0') + "e-400000"), "1");
  EXPECT_EQ(canonical(std::string(400'000, '7')), kOverflow);
}

TEST(Decimal, EqualNumbersHaveEqualFieldsAndBytes) {
  for (const char* text : {"1000", "1e3", "+1000.000", "0.1e4", "0010E2", "10000e-1"}) {
    EXPECT_EQ(decimal(text), Decimal(1000)) << text;
    EXPECT_EQ(ordered(decimal(text)), ordered(Decimal(1000))) << text;
    EXPECT_EQ(decimal(text).coefficient(), 1u);
    EXPECT_EQ(decimal(text).exponent(), 3);
  }
  EXPECT_EQ(decimal("-0"), Decimal());
}

TEST(Decimal, IntegersKeepTheirValue) {
  EXPECT_EQ(Decimal(0).text(), "0");
  EXPECT_EQ(Decimal(-120).text(), "-120");
  EXPECT_EQ(Decimal(std::numeric_limits<std::int64_t>::max()).text(), "9223372036854775807");
  EXPECT_EQ(Decimal(std::numeric_limits<std::int64_t>::min()).text(), "-9223372036854775808");
}

TEST(Decimal, UnscaledValuesAreTheNumberOfTheirText) {
  const unsigned __int128 all_bits = ~static_cast<unsigned __int128>(0);
  EXPECT_EQ(Decimal::of(true, 1200, -2)->text(), "-12");
  EXPECT_EQ(Decimal::of(true, 0, 999'999'999'999)->text(), "0");
  EXPECT_EQ(Decimal::of(false, all_bits, 0).status().message(), kTooManyDigits);
  EXPECT_EQ(Decimal::of(false, 1, 126).status().message(), kOverflow);
  EXPECT_EQ(Decimal::of(false, 1000, -134).status().message(), kUnderflow);
  EXPECT_EQ(Decimal::of(false, 1000, -133)->text(), decimal("1e-130").text());
  unsigned __int128 large = 1;
  for (int i = 0; i < 38; ++i) large *= 10;
  EXPECT_EQ(Decimal::of(false, large, -38)->text(), "1");
  EXPECT_EQ(Decimal::of(false, large, 87)->text(), decimal("1e125").text());
  EXPECT_EQ(Decimal::of(false, large, 88).status().message(), kOverflow);
}

TEST(Decimal, DigitsCountsTheSignificantOnes) {
  EXPECT_EQ(Decimal(0).digits(), 1u);
  EXPECT_EQ(Decimal(9).digits(), 1u);
  EXPECT_EQ(Decimal(11).digits(), 2u);
  EXPECT_EQ(decimal("999999999").digits(), 9u);
  EXPECT_EQ(decimal("1000000001").digits(), 10u);
  EXPECT_EQ(decimal("1e100").digits(), 1u);
  EXPECT_EQ(decimal(std::string(38, '9')).digits(), 38u);
}

TEST(Decimal, AdditionAtTheEdgesNeverLosesDigits) {
  const auto add = [](std::string_view a, std::string_view b) {
    const Result<Decimal> sum = Decimal::add(decimal(a), decimal(b));
    return sum ? sum->text() : sum.status().message();
  };
  const std::string nines(38, '9');
  EXPECT_EQ(add("1e50", "1"), kTooManyDigits);
  EXPECT_EQ(add("1e125", "1e-130"), kTooManyDigits);
  EXPECT_EQ(add("1e37", "1"), "1" + std::string(36, '0') + "1");
  EXPECT_EQ(add("1e38", "1"), kTooManyDigits);
  EXPECT_EQ(add("1e38", "-1"), nines);
  EXPECT_EQ(add("-1e38", "1"), "-" + nines);
  EXPECT_EQ(add("2e38", "-1"), kTooManyDigits);
  EXPECT_EQ(add("3.5e38", "-1"), kTooManyDigits);
  EXPECT_EQ(add(nines, "1"), "1" + std::string(38, '0'));
  EXPECT_EQ(add(nines, nines), kTooManyDigits);
  EXPECT_EQ(add("9e125", "1e125"), kOverflow);
  EXPECT_EQ(add("1.1e-130", "-1e-130"), kUnderflow);
  EXPECT_EQ(add("3.4e38", nines), kTooManyDigits);
  EXPECT_EQ(add("0.1", "0.2"), "0.3");
  EXPECT_EQ(add("5", "-5"), "0");
  EXPECT_EQ(add("0", "-5"), "-5");
}

TEST(Decimal, SumsAndDifferencesAreThoseOnPaper) {
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  int exact = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::string a = random_number_text(random);
    const std::string b = random_number_text(random);
    const OnPaper sum = OnPaper(a).plus(OnPaper(b));
    const OnPaper difference = OnPaper(a).plus(OnPaper(b).negated());
    const Result<Decimal> added = Decimal::add(decimal(a), decimal(b));
    const Result<Decimal> subtracted = Decimal::subtract(decimal(a), decimal(b));
    ASSERT_EQ(added.ok(), sum.fits()) << a << " + " << b;
    ASSERT_EQ(subtracted.ok(), difference.fits()) << a << " - " << b;
    if (added) {
      ASSERT_EQ(added->text(), sum.text()) << a << " + " << b;
    }
    if (subtracted) {
      ASSERT_EQ(subtracted->text(), difference.text()) << a << " - " << b;
    }
    exact += added.ok() ? 1 : 0;
  }
  EXPECT_GT(exact, kRounds / 4);
  EXPECT_LT(exact, kRounds);
}

TEST(Decimal, TextComesBackAsTheSameNumber) {
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  for (int round = 0; round < kRounds; ++round) {
    const std::string text = random_number_text(random);
    const Decimal number = decimal(text);
    ASSERT_EQ(number.text(), OnPaper(text).text()) << text;
    ASSERT_EQ(decimal(number.text()), number) << text;
  }
}

TEST(Decimal, OrderOfNumbersAndOfTheirBytesAreTheOneOnPaper) {
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  std::string last = "0";
  for (int round = 0; round < kRounds; ++round) {
    const std::string text = random_number_text(random);
    const Decimal a = decimal(last);
    const Decimal b = decimal(text);
    const bool less = OnPaper(last).less(OnPaper(text));
    const bool greater = OnPaper(text).less(OnPaper(last));
    ASSERT_EQ(a < b, less) << last << " " << text;
    ASSERT_EQ(a > b, greater) << last << " " << text;
    ASSERT_EQ(a == b, !less && !greater) << last << " " << text;
    ASSERT_EQ(ordered(a) < ordered(b), less) << last << " " << text;
    ASSERT_EQ(ordered(a) == ordered(b), a == b) << last << " " << text;
    last = text;
  }
}

TEST(Decimal, OrderedBytesEndThemselves) {
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  for (int round = 0; round < kRounds; ++round) {
    const Decimal number = random_decimal(random);
    Bytes bytes = ordered(number);
    bytes.append(random_bytes(random, 3));
    const std::size_t rest = bytes.size() - ordered(number).size();
    std::string_view in = bytes;
    ASSERT_EQ(Decimal::decode_ordered(in), number) << number.text();
    ASSERT_EQ(in.size(), rest) << number.text();
  }
}

TEST(Decimal, ExtremesComeBackFromOrderedBytesInOrder) {
  const std::string nines(38, '9');
  const std::vector<std::string> rising{"-" + nines + "e88",
                                        "-1e125",
                                        "-10",
                                        "-9.99",
                                        "-1",
                                        "-1e-130",
                                        "0",
                                        "1e-130",
                                        "1",
                                        "1.1",
                                        "1.11",
                                        "9.99e1",
                                        "1e125",
                                        nines + "e88"};
  for (std::size_t i = 0; i < rising.size(); ++i) {
    const Bytes bytes = ordered(decimal(rising[i]));
    std::string_view in = bytes;
    EXPECT_EQ(Decimal::decode_ordered(in), decimal(rising[i])) << rising[i];
    if (i > 0) {
      EXPECT_LT(ordered(decimal(rising[i - 1])), bytes) << rising[i];
      EXPECT_LT(decimal(rising[i - 1]), decimal(rising[i]));
    }
  }
}

}  // namespace
}  // namespace drover::model

#include "swar.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>

#include "time_text.h"

namespace drover::ingest {
namespace {

TEST(PutBytes, CopiesEverySizeAndNothingElse) {
  for (std::size_t size = 0; size < 70; ++size) {
    std::string from(size, 'a');
    for (std::size_t i = 0; i < size; ++i) from[i] = static_cast<char>('a' + i % 26);
    std::string to(size + 2, '#');
    EXPECT_EQ(put_bytes(to.data() + 1, from), to.data() + 1 + size);
    EXPECT_EQ(to, "#" + from + "#");
    EXPECT_TRUE(equal_bytes(to.data() + 1, from.data(), size));
    for (std::size_t i = 0; i < size; ++i) {
      std::string other = from;
      other[i] ^= 1;
      EXPECT_FALSE(equal_bytes(other.data(), from.data(), size)) << size << " " << i;
    }
  }
}

TEST(PutSmallVarint, IsPutVarint) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t value = random() >> (random() % 64);
    char expected[16] = {};
    char found[16] = {};
    const auto size = model::put_varint(expected, value) - expected;
    ASSERT_EQ(put_small_varint(found, value) - found, size) << value;
    ASSERT_EQ(std::string(found, static_cast<std::size_t>(size)),
              std::string(expected, static_cast<std::size_t>(size)));
  }
}

TEST(FindClosingQuote, StopsAtWhatNeedsMoreThanALook) {
  const auto find = [](const std::string& text) {
    const char* const close = find_closing_quote(text.data(), text.data() + text.size());
    return close == nullptr ? -1 : static_cast<int>(close - text.data());
  };
  for (int before = 0; before < 20; ++before) {
    const std::string plain(static_cast<std::size_t>(before), 'v');
    for (const char* behind : {"", "x", "\",\"more\":1}", "\x01\x80\\"}) {
      EXPECT_EQ(find(plain + "\"" + behind), before);
      for (const char* odd : {"\\\"", "\n", "\x1f", "\x80", "\xc3\xa4"})
        EXPECT_EQ(find(plain + odd + "\"" + behind), -1);
      EXPECT_EQ(find(plain + "\x7f !\"" + behind), before + 3);
    }
    EXPECT_EQ(find(plain), -1);
  }
}

// Goal: whatever is taken is a JSON number, taken to its end, with its value; plain numbers are taken.
// Method: numbers of every length, at every distance from the end, against a reading digit by digit.
TEST(TakeSmallDecimal, PlainNumbersHaveTheirValue) {
  std::mt19937 random(2);
  for (int i = 0; i < 200'000; ++i) {
    std::string whole = std::to_string(random() % 2 ? random() % 1000 : random());
    std::string fraction;
    for (auto digits = random() % 9; digits > 0; --digits) fraction += static_cast<char>('0' + random() % 10);
    const bool negative = random() % 3 == 0;
    const std::string number = (negative ? "-" : "") + whole + (fraction.empty() ? "" : "." + fraction);
    const std::string text = "[------" + number + (random() % 2 ? "}" : ",\"next\":12345678");
    SmallDecimal found;
    const char* const begin = text.data() + 7;
    const char* const behind = take_small_decimal(begin, text.data() + text.size(), found);
    if ((whole + fraction).size() > 18) continue;
    ASSERT_NE(behind, nullptr) << number;
    ASSERT_EQ(std::string(begin, behind), number);
    ASSERT_EQ(found.negative, negative);
    ASSERT_EQ(found.fraction_digits, fraction.size());
    ASSERT_EQ(std::to_string(found.digits), std::to_string(std::stoull(whole + fraction))) << number;
  }
}

TEST(TakeSmallDecimal, WhatIsNoJsonNumberIsNotTaken) {
  for (const char* text :
       {"-", "--1", "01", "-01.5", ".5", "+1", "1.", "1.x", "-.5", "", "x", "00", "-00000000", "012345678"}) {
    const std::string padded = "[[[[[[[[" + std::string(text) + "}";
    SmallDecimal number;
    EXPECT_EQ(take_small_decimal(padded.data() + 8, padded.data() + padded.size(), number), nullptr) << text;
  }
}

TEST(TakeSmallDecimal, ANumberThatGoesOnLeavesItsRest) {
  for (const char* text : {"1e5", "1.5E3", "-1234567e1", "12345678e1", "1.2.3", "1234567890123456789012"}) {
    const std::string padded = "[[[[[[[[" + std::string(text) + "}";
    SmallDecimal number;
    const char* const behind = take_small_decimal(padded.data() + 8, padded.data() + padded.size(), number);
    EXPECT_TRUE(behind == nullptr || *behind != '}') << text;
  }
}

// Goal: what TimeText takes is what parse_time() and format_time() make of it.
// Method: good times with one or two bytes changed at random.
TEST(TimeText, TakesWhatTheParserTakesWithTheSameResult) {
  std::mt19937 random(3);
  const std::string alphabet = "0123456789:.-TZ+ tz";
  int taken = 0;
  for (const auto precision :
       {model::TimePrecision::kSeconds, model::TimePrecision::kMillis, model::TimePrecision::kNanos}) {
    TimeText time(precision);
    for (int i = 0; i < 200'000; ++i) {
      std::string text = "2024-02-28T23:59:59";
      if (random() % 2) text += "." + std::string(1 + random() % 10, static_cast<char>('0' + random() % 10));
      text += "Z";
      for (auto changes = random() % 3; changes > 0; --changes) {
        text[random() % text.size()] = alphabet[random() % alphabet.size()];
      }
      if (time.take(text.data(), text.data() + text.size()) != text.data() + text.size()) continue;
      ++taken;
      const std::optional<model::TimeNs> parsed = model::parse_time(text);
      ASSERT_TRUE(parsed.has_value()) << text;
      ASSERT_EQ(time.canonical(), model::format_time(*parsed, precision)) << text;
    }
  }
  EXPECT_GT(taken, 150'000);
}

}  // namespace
}  // namespace drover::ingest

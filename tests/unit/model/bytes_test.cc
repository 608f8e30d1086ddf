#include "drover/model/bytes.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace drover::model {
namespace {

std::vector<std::uint64_t> numbers_at_every_length() {
  std::vector<std::uint64_t> numbers{0, std::numeric_limits<std::uint64_t>::max()};
  for (unsigned bits = 0; bits < 64; ++bits) {
    const std::uint64_t power = std::uint64_t{1} << bits;
    numbers.insert(numbers.end(), {power - 1, power, power + 1});
  }
  return numbers;
}

TEST(Varint, EveryLengthComesBackAndEndsWhereItEnded) {
  for (const std::uint64_t number : numbers_at_every_length()) {
    Bytes bytes;
    append_varint(bytes, number);
    bytes.push_back('\x7f');
    std::uint64_t back = ~number;
    EXPECT_EQ(get_varint(bytes.data(), back), bytes.data() + bytes.size() - 1) << number;
    EXPECT_EQ(back, number);
    EXPECT_LE(bytes.size() - 1, kVarintSizeBytesMax);
  }
}

TEST(Varint, SevenBitsTakeOneByte) {
  Bytes bytes;
  append_varint(bytes, 127);
  EXPECT_EQ(bytes, "\x7f");
  append_varint(bytes, 128);
  EXPECT_EQ(bytes, "\x7f\x80\x01");
}

TEST(Zigzag, SmallMagnitudesOfBothSignsBecomeSmallNumbers) {
  EXPECT_EQ(zigzag(0), 0u);
  EXPECT_EQ(zigzag(-1), 1u);
  EXPECT_EQ(zigzag(1), 2u);
  EXPECT_EQ(zigzag(std::numeric_limits<std::int64_t>::min()), std::numeric_limits<std::uint64_t>::max());
}

TEST(Zigzag, EveryNumberComesBack) {
  for (const std::uint64_t number : numbers_at_every_length()) {
    const auto signed_number = static_cast<std::int64_t>(number);
    EXPECT_EQ(unzigzag(zigzag(signed_number)), signed_number);
  }
}

}  // namespace
}  // namespace drover::model

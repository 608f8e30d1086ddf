#include "drover/model/key.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "drover/model/value_view.h"
#include "random_values.h"

namespace drover::model {
namespace {

constexpr std::uint64_t kSeed = 20260623;
constexpr int kRounds = 20'000;

std::string refusal(const KeyAttribute& attribute, const AttributeValue& value, std::size_t size_bytes_max) {
  Bytes out = "before";
  const Status status = append_key(out, attribute, value, size_bytes_max);
  EXPECT_EQ(status.ok(), out != "before");
  return status.message();
}

TEST(HashKey, NeverChanges) {
  EXPECT_EQ(hash_key(""), 0x2d06800538d394c2u);
  EXPECT_EQ(hash_key("VEH#V-7741"), 0x7fe0e125db9533eau);
}

TEST(HashKey, UpperBitsNameTheSegment) {
  EXPECT_EQ(segment_of(0), 0u);
  EXPECT_EQ(segment_of(~KeyHash{0}), kSegments - 1);
  EXPECT_EQ(segment_of(KeyHash{1} << (64 - kSegmentBits)), 1u);
}

TEST(Key, EveryTypeComesBack) {
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  AttributeNames names;
  for (int round = 0; round < kRounds; ++round) {
    const auto type = static_cast<KeyType>(round % 3);
    const AttributeValue value = type == KeyType::kString   ? AttributeValue::string("k" + random_bytes(random, 20))
                                 : type == KeyType::kNumber ? AttributeValue::of_number(random_decimal(random))
                                                            : AttributeValue::binary("k" + random_bytes(random, 20));
    Bytes encoded;
    ASSERT_TRUE(append_key(encoded, {"k", type}, value, kSortKeySizeBytesMax).ok());
    ASSERT_EQ(key_value(type, encoded), value);
    Bytes as_value;
    append_key_as_value(as_value, type, encoded);
    ASSERT_EQ(ValueView(as_value).to_value(names), value);
  }
}

TEST(Key, WrongTypesAreRefusedInDynamoDbsWords) {
  EXPECT_EQ(refusal({"vehicleId", KeyType::kString}, AttributeValue::of_number(Decimal(1)), kPartitionKeySizeBytesMax),
            "One or more parameter values were invalid: Type mismatch for key vehicleId expected: S actual: N");
  EXPECT_EQ(refusal({"k", KeyType::kNumber}, AttributeValue::null(), kPartitionKeySizeBytesMax),
            "One or more parameter values were invalid: Type mismatch for key k expected: N actual: NULL");
  EXPECT_EQ(refusal({"k", KeyType::kBinary}, AttributeValue::string("a"), kPartitionKeySizeBytesMax),
            "One or more parameter values were invalid: Type mismatch for key k expected: B actual: S");
}

TEST(Key, EmptyTextAndBinaryAreRefused) {
  EXPECT_EQ(refusal({"k", KeyType::kString}, AttributeValue::string(""), kPartitionKeySizeBytesMax),
            "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an "
            "empty string value. Key: k");
  EXPECT_EQ(refusal({"k", KeyType::kBinary}, AttributeValue::binary(""), kSortKeySizeBytesMax),
            "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an "
            "empty binary value. Key: k");
}

TEST(Key, SizesEndWhereDynamoDbsDo) {
  const KeyAttribute key{"k", KeyType::kString};
  EXPECT_EQ(refusal(key, AttributeValue::string(std::string(2048, 'k')), kPartitionKeySizeBytesMax), "");
  EXPECT_EQ(
      refusal(key, AttributeValue::string(std::string(2049, 'k')), kPartitionKeySizeBytesMax),
      "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes");
  EXPECT_EQ(refusal(key, AttributeValue::string(std::string(1024, 'k')), kSortKeySizeBytesMax), "");
  EXPECT_EQ(refusal(key, AttributeValue::string(std::string(1025, 'k')), kSortKeySizeBytesMax),
            "One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit "
            "of 1024 bytes");
}

TEST(KeyPart, JoinedPartsOrderAsTuplesAndComeBack) {
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  const auto join = [](const std::tuple<Bytes, Bytes, Bytes>& parts) {
    Bytes joined;
    append_key_part(joined, std::get<0>(parts));
    append_key_part(joined, std::get<1>(parts));
    append_key_part(joined, std::get<2>(parts));
    return joined;
  };
  const auto parts = [&random](std::size_t size) {
    return std::tuple(random_bytes(random, size), random_bytes(random, size), random_bytes(random, size));
  };
  for (int round = 0; round < kRounds; ++round) {
    const std::size_t size = round % 2 == 0 ? 3 : 30;  // from eight bytes on they are copied in words
    const auto a = parts(size);
    const auto b = parts(size);
    const Bytes joined_a = join(a);
    ASSERT_EQ(joined_a < join(b), a < b);
    ASSERT_EQ(joined_a == join(b), a == b);
    std::string_view rest = joined_a;
    ASSERT_EQ(take_key_part(rest), std::get<0>(a));
    ASSERT_EQ(take_key_part(rest), std::get<1>(a));
    ASSERT_EQ(take_key_part(rest), std::get<2>(a));
    ASSERT_TRUE(rest.empty());
  }
}

TEST(TimeKey, KeysAndBoundsTakeTheTablesForm) {
  const TimeSortKey millis{"TS#", TimePrecision::kMillis};
  EXPECT_EQ(canonical_time_key(millis, "TS#2026-06-23T09:00:01Z"), "TS#2026-06-23T09:00:01.000Z");
  EXPECT_EQ(canonical_time_key(millis, "TS#2026-06-23T10:00:01.5+01:00"), "TS#2026-06-23T09:00:01.500Z");
  EXPECT_EQ(canonical_time_key(millis, "TS#2026-06-23T09:00:01.123Z"), "TS#2026-06-23T09:00:01.123Z");
  EXPECT_EQ(canonical_time_key({"", TimePrecision::kSeconds}, "2026-06-23t09:00:01.9z"), "2026-06-23T09:00:01Z");
}

TEST(TimeKey, WhatIsNoTimeBehindThePrefixStaysAsItIs) {
  const TimeSortKey millis{"TS#", TimePrecision::kMillis};
  for (const char* text :
       {"META", "TS#", "TS#2026-06-23", "TS#2026-06-23T09:00:01", "2026-06-23T09:00:01Z", "TS", ""}) {
    EXPECT_EQ(canonical_time_key(millis, text), text);
    EXPECT_EQ(canonical_time_key(millis, text, true), text);
  }
}

TEST(TimeKey, RoundingUpMovesOnlyWhatLiesBetweenTwoTimes) {
  const TimeSortKey seconds{"TS#", TimePrecision::kSeconds};
  const TimeSortKey nanos{"TS#", TimePrecision::kNanos};
  EXPECT_EQ(canonical_time_key(seconds, "TS#2026-06-23T09:00:01.5Z", false), "TS#2026-06-23T09:00:01Z");
  EXPECT_EQ(canonical_time_key(seconds, "TS#2026-06-23T09:00:01.5Z", true), "TS#2026-06-23T09:00:02Z");
  EXPECT_EQ(canonical_time_key(seconds, "TS#2026-06-23T09:00:01.000+00:00", true), "TS#2026-06-23T09:00:01Z");
  EXPECT_EQ(canonical_time_key(seconds, "TS#2026-12-31T23:59:59.0001Z", true), "TS#2027-01-01T00:00:00Z");
  EXPECT_EQ(canonical_time_key(seconds, "TS#1969-12-31T23:59:59.5Z", true), "TS#1970-01-01T00:00:00Z");
  EXPECT_EQ(canonical_time_key(nanos, "TS#2026-06-23T09:00:01.0000000001Z", true), "TS#2026-06-23T09:00:01.000000001Z");
}

}  // namespace
}  // namespace drover::model

#include "drover/model/attribute.h"

#include <gtest/gtest.h>

#include <string>

namespace drover::model {
namespace {

AttributeValue number(std::string_view text) {
  return AttributeValue::of_number(Decimal::parse(text).value());
}

AttributeValue of_type(AttributeType type) {
  AttributeValue value;
  value.type = type;
  return value;
}

TEST(AttributeType, HasDynamoDbsLetters) {
  EXPECT_EQ(wire_name(AttributeType::kNull), "NULL");
  EXPECT_EQ(wire_name(AttributeType::kBool), "BOOL");
  EXPECT_EQ(wire_name(AttributeType::kString), "S");
  EXPECT_EQ(wire_name(AttributeType::kBinary), "B");
  EXPECT_EQ(wire_name(AttributeType::kNumber), "N");
  EXPECT_EQ(wire_name(AttributeType::kStringSet), "SS");
  EXPECT_EQ(wire_name(AttributeType::kNumberSet), "NS");
  EXPECT_EQ(wire_name(AttributeType::kBinarySet), "BS");
  EXPECT_EQ(wire_name(AttributeType::kList), "L");
  EXPECT_EQ(wire_name(AttributeType::kMap), "M");
}

TEST(AttributeValue, IsEqualDeeplyAndByType) {
  AttributeValue list = of_type(AttributeType::kList);
  list.list = {number("1.0"), AttributeValue::string("a")};
  AttributeValue same = of_type(AttributeType::kList);
  same.list = {number("1"), AttributeValue::string("a")};
  EXPECT_EQ(list, same);
  same.list[1] = AttributeValue::binary("a");
  EXPECT_FALSE(list == same);
  EXPECT_FALSE(AttributeValue::null() == AttributeValue::of_bool(false));
}

TEST(ItemSize, NumbersTakeAByteForTwoDigitsOneMoreAndOneForTheSign) {
  EXPECT_EQ(value_size_bytes(number("5")), 2u);
  EXPECT_EQ(value_size_bytes(number("-5")), 3u);
  EXPECT_EQ(value_size_bytes(number("1e100")), 2u);
  EXPECT_EQ(value_size_bytes(number("123")), 3u);
  EXPECT_EQ(value_size_bytes(number("-92.35")), 4u);
  EXPECT_EQ(value_size_bytes(number(std::string(38, '9'))), 20u);
}

TEST(ItemSize, ScalarsTakeTheirBytes) {
  EXPECT_EQ(value_size_bytes(AttributeValue::null()), 1u);
  EXPECT_EQ(value_size_bytes(AttributeValue::of_bool(true)), 1u);
  EXPECT_EQ(value_size_bytes(AttributeValue::string("")), 0u);
  EXPECT_EQ(value_size_bytes(AttributeValue::string("\xc3\xa4")), 2u);
  EXPECT_EQ(value_size_bytes(AttributeValue::binary(std::string(7, '\0'))), 7u);
}

TEST(ItemSize, SetsTakeTheSumAndDocumentsThreeBytesAndOneForEachElement) {
  AttributeValue set = of_type(AttributeType::kStringSet);
  set.bytes_set = {"a", "bcd"};
  EXPECT_EQ(value_size_bytes(set), 4u);
  AttributeValue numbers = of_type(AttributeType::kNumberSet);
  numbers.number_set = {Decimal(-1), Decimal(1)};
  EXPECT_EQ(value_size_bytes(numbers), 5u);

  EXPECT_EQ(value_size_bytes(of_type(AttributeType::kList)), 3u);
  AttributeValue list = of_type(AttributeType::kList);
  list.list = {AttributeValue::null(), AttributeValue::string("abc")};
  EXPECT_EQ(value_size_bytes(list), 3u + 2u + 1u + 3u);
  AttributeValue map = of_type(AttributeType::kMap);
  map.map["key"] = list;
  EXPECT_EQ(value_size_bytes(map), 3u + 1u + 3u + 9u);
}

TEST(ItemSize, AnItemsNamesCount) {
  EXPECT_EQ(item_size_bytes({{"vehicleId", AttributeValue::string("VEH#V-7741")}, {"speedKph", number("61.5")}}),
            9u + 10u + 8u + 3u);
}

}  // namespace
}  // namespace drover::model

#include "drover/model/value_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "random_values.h"

namespace drover::model {
namespace {

constexpr std::uint64_t kSeed = 20260623;
constexpr int kRounds = 5'000;

Bytes encode(const AttributeValue& value, AttributeNames& names) {
  Bytes out;
  append_value(out, value, names);
  return out;
}

using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

Bytes encode(const Attributes& attributes, AttributeNames& names) {
  Bytes out;
  for (const auto& [name, value] : attributes) {
    append_name(out, name, names);
    append_value(out, value, names);
  }
  return out;
}

Attributes random_attributes(Random& random) {
  Item item;
  for (std::int64_t i = pick(random, 0, 8); i > 0; --i) {
    item.insert_or_assign("a" + std::to_string(pick(random, 0, 20)), random_value(random, 2));
  }
  Attributes attributes(item.begin(), item.end());
  std::shuffle(attributes.begin(), attributes.end(), random);
  return attributes;
}

AttributeValue number(std::string_view text) {
  return AttributeValue::of_number(Decimal::parse(text).value());
}

TEST(ValueView, EveryTypeComesBack) {
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  AttributeNames names;
  std::vector<int> seen(10);
  for (int round = 0; round < kRounds; ++round) {
    const AttributeValue value = random_value(random, 4);
    const Bytes bytes = encode(value, names);
    ASSERT_EQ(ValueView(bytes).type(), value.type);
    ASSERT_EQ(ValueView(bytes).to_value(names), value);
    ASSERT_EQ(skip_value(bytes.data()), bytes.data() + bytes.size());
    ++seen[static_cast<std::size_t>(value.type)];
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 0), 0);
}

TEST(ValueView, DeeplyNestedValuesComeBack) {
  AttributeNames names;
  AttributeValue value = AttributeValue::string("innermost");
  for (std::size_t depth = 1; depth < kItemDepthMax; ++depth) {
    AttributeValue outer;
    outer.type = depth % 2 == 0 ? AttributeType::kList : AttributeType::kMap;
    if (depth % 2 == 0) {
      outer.list.push_back(value);
    } else {
      outer.map["inner"] = value;
    }
    value = outer;
  }
  const Bytes bytes = encode(value, names);
  EXPECT_EQ(ValueView(bytes).to_value(names), value);
}

TEST(ValueView, EqualValuesHaveEqualBytesAndOthersDoNot) {
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  AttributeNames names;
  AttributeValue last;
  for (int round = 0; round < kRounds; ++round) {
    const AttributeValue value = random_value(random, 1);
    ASSERT_EQ(encode(value, names) == encode(last, names), value == last);
    ASSERT_EQ(encode(value, names), encode(AttributeValue(value), names));
    last = value;
  }
}

TEST(ValueView, MapsAreInNameOrderWhateverTheOrderOfTheirIds) {
  AttributeNames names;
  const NameId z = names.intern("z");
  const NameId a = names.intern("a");
  ASSERT_LT(z, a);
  AttributeValue map;
  map.type = AttributeType::kMap;
  map.map["z"] = AttributeValue::null();
  map.map["a"] = AttributeValue::of_bool(true);
  const Bytes expected{static_cast<char>(ValueTag::kMap),
                       5,
                       2,
                       static_cast<char>(a.value),
                       static_cast<char>(ValueTag::kTrue),
                       static_cast<char>(z.value),
                       static_cast<char>(ValueTag::kNull)};
  EXPECT_EQ(encode(map, names), expected);
}

TEST(ValueView, NumbersThatFitAreShortAndOthersLong) {
  AttributeNames names;
  const auto tag = [&names](std::string_view text) {
    const Bytes bytes = encode(number(text), names);
    EXPECT_EQ(ValueView(bytes).number(), Decimal::parse(text).value()) << text;
    return ValueView(bytes).tag();
  };
  EXPECT_EQ(tag("0"), ValueTag::kNumber);
  EXPECT_EQ(tag("-61.25"), ValueTag::kNumber);
  EXPECT_EQ(tag("1e125"), ValueTag::kNumber);
  EXPECT_EQ(tag("-1e-130"), ValueTag::kNumber);
  EXPECT_EQ(tag("9223372036854775807"), ValueTag::kNumber);
  EXPECT_EQ(tag("9223372036854775808"), ValueTag::kBigNumber);
  EXPECT_EQ(tag("-9223372036854775808"), ValueTag::kNumber);
  EXPECT_EQ(tag("-9223372036854775809"), ValueTag::kBigNumber);
  EXPECT_EQ(tag("99999999999999999999999999999999999999e88"), ValueTag::kBigNumber);
}

TEST(ValueView, RawFormsWriteTheSameBytes) {
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  AttributeNames names;
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t coefficient = round == 0   ? std::numeric_limits<std::int64_t>::min()
                                     : round == 1 ? 0
                                                  : static_cast<std::int64_t>(random()) >> pick(random, 0, 63);
    const auto exponent = static_cast<std::int32_t>(pick(random, -20, 20));
    char raw[kNumberValueSizeBytesMax];
    const auto scaled = coefficient / 1000 * 1000;  // trailing zeros come up
    for (const std::int64_t given : {coefficient, scaled}) {
      const auto magnitude = static_cast<std::uint64_t>(given);
      const Decimal decimal =
          Decimal::of(given < 0, given < 0 ? std::uint64_t{0} - magnitude : magnitude, exponent).value();
      ASSERT_EQ(Bytes(raw, put_number_value(raw, given, exponent)), encode(AttributeValue::of_number(decimal), names));
    }
    const std::string text = random_bytes(random, 300);
    std::vector<char> room(text.size() + 11);
    ASSERT_EQ(Bytes(room.data(), put_string_value(room.data(), text)), encode(AttributeValue::string(text), names));
  }
}

TEST(AttributeReader, WalksTheAttributesInTheirOrder) {
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  AttributeNames names;
  for (int round = 0; round < kRounds; ++round) {
    const Attributes attributes = random_attributes(random);
    const Bytes bytes = encode(attributes, names);
    Attributes read;
    for (AttributeReader reader(bytes, names); reader.next();) {
      read.emplace_back(reader.attribute().name, reader.attribute().value.to_value(names));
    }
    ASSERT_EQ(read, attributes);
  }
}

TEST(AttributeReader, NamesBeyondTheBoundStandInTheRow) {
  AttributeNames names;
  for (std::size_t i = 0; i < kInternedNamesMax; ++i) names.intern("n" + std::to_string(i));
  AttributeValue map;
  map.type = AttributeType::kMap;
  map.map["inner stranger"] = AttributeValue::of_bool(false);
  map.map["n7"] = AttributeValue::null();
  const std::string longest(kAttributeNameSizeBytesMax, 'x');
  const Attributes attributes{{"stranger", map}, {"n0", number("1")}, {longest, number("2")}};
  const Bytes bytes = encode(attributes, names);

  AttributeReader reader(bytes, names);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.attribute().id, NameId{});
  EXPECT_EQ(reader.attribute().name, "stranger");
  EXPECT_EQ(reader.attribute().value.to_value(names), map);
  ASSERT_TRUE(reader.next());
  EXPECT_NE(reader.attribute().id, NameId{});
  EXPECT_EQ(reader.attribute().name, "n0");
  EXPECT_EQ(find_attribute(bytes, longest, names)->number(), Decimal(2));
  EXPECT_TRUE(contains_attributes(bytes, encode(Attributes{{longest, number("2")}, {"stranger", map}}, names), names));
}

TEST(RawAttribute, SplitsAnAttributeWithoutLookingItsNameUp) {
  AttributeNames names;
  const std::string long_name(AttributeNames::kInternedNameSizeBytesMax + 1, 'x');
  const Bytes first = encode(Attributes{{"speedKph", number("61.5")}}, names);
  const Bytes second = encode(Attributes{{long_name, number("2")}}, names);
  const Bytes both = first + second;

  const char* at = both.data();
  const RawAttribute speed = take_raw_attribute(at);
  EXPECT_EQ(speed.encoded, first);
  EXPECT_EQ(names.name(speed.id), "speedKph");
  EXPECT_EQ(speed.value.number(), Decimal::parse("61.5").value());
  EXPECT_TRUE(speed.is(names.intern("speedKph"), "speedKph"));
  EXPECT_FALSE(speed.is(names.intern("fuelPct"), "fuelPct"));
  const RawAttribute other = take_raw_attribute(at);
  EXPECT_EQ(other.encoded, second);
  EXPECT_EQ(other.id, NameId{});
  EXPECT_EQ(other.text, long_name);
  EXPECT_TRUE(other.is(NameId{}, long_name));
  EXPECT_FALSE(other.is(names.intern("speedKph"), "speedKph"));
  EXPECT_EQ(at, both.data() + both.size());
}

TEST(FindAttribute, FindsWhatIsThereAndNothingElse) {
  AttributeNames names;
  const Bytes bytes =
      encode(Attributes{{"speedKph", number("61.5")}, {"plate", AttributeValue::string("AB 123")}}, names);
  EXPECT_EQ(find_attribute(bytes, "plate", names)->bytes(), "AB 123");
  EXPECT_EQ(find_attribute(bytes, "speedKph", names)->number(), Decimal::parse("61.5").value());
  EXPECT_FALSE(find_attribute(bytes, "speed", names));
  EXPECT_FALSE(find_attribute("", "speed", names));
}

TEST(ContainsAttributes, IsContainmentByNameAndValueInAnyOrder) {
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  AttributeNames names;
  int contained = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Attributes whole = random_attributes(random);
    Attributes part = whole;
    std::shuffle(part.begin(), part.end(), random);
    part.erase(part.begin() + pick(random, 0, static_cast<std::int64_t>(part.size())), part.end());
    const std::int64_t change = pick(random, 0, 3);
    if (change == 0) part.emplace_back("stranger", AttributeValue::null());
    if (change == 1 && !part.empty()) part.back().second = random_value(random, 1);
    const bool expected = std::all_of(part.begin(), part.end(), [&whole](const auto& attribute) {
      return std::find(whole.begin(), whole.end(), attribute) != whole.end();
    });
    ASSERT_EQ(contains_attributes(encode(whole, names), encode(part, names), names), expected);
    contained += expected ? 1 : 0;
  }
  EXPECT_GT(contained, kRounds / 4);
  EXPECT_LT(contained, kRounds);
}

TEST(ContainsAttributes, AStampInFrontInTheMiddleOrBehindDoesNotMatter) {
  AttributeNames names;
  const std::pair<std::string, AttributeValue> speed{"speedKph", number("61.5")};
  const std::pair<std::string, AttributeValue> fuel{"fuelPct", number("40")};
  const std::pair<std::string, AttributeValue> stamp{"depotCode", AttributeValue::string("DEP-LON-3")};
  const Bytes reading = encode({speed, fuel}, names);
  EXPECT_TRUE(contains_attributes(encode({speed, fuel, stamp}, names), reading, names));
  EXPECT_TRUE(contains_attributes(encode({speed, stamp, fuel}, names), reading, names));
  EXPECT_TRUE(contains_attributes(encode({stamp, speed, fuel}, names), reading, names));
  EXPECT_TRUE(contains_attributes(encode({fuel, stamp, speed}, names), reading, names));
  EXPECT_FALSE(contains_attributes(reading, encode({speed, fuel, stamp}, names), names));
  EXPECT_TRUE(contains_attributes(reading, "", names));
}

}  // namespace
}  // namespace drover::model

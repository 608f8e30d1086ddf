#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decoding.h"
#include "drover/model/key.h"
#include "drover/model/limits.h"

namespace drover::ingest::test {
namespace {

using model::AttributeType;
using model::AttributeValue;
using model::Decimal;
using testing::ElementsAre;

constexpr const char* kReading =
    R"({"vehicleId":"V-7741","recordedAt":"2026-06-23T09:00:01.000Z","speedKph":61.5,"coolantC":88.2,"fuelPct":54.1})";

/// Often enough for a shape to be learned.
constexpr std::size_t kManyTimes = 40;

AttributeValue number(std::string_view digits) {
  return AttributeValue::of_number(Decimal::parse(digits).value());
}

std::string reading(const std::string& more_fields) {
  return R"({"vehicleId":"V-7741","recordedAt":"2026-06-23T09:00:01.000Z")" + more_fields + "}";
}

TEST(JsonDecoder, AReadingBecomesAnItemUnderItsVehicleAndTime) {
  Decoding decoding;
  const DecodedItem item = decoding.decode_one(kReading);
  EXPECT_EQ(item.partition_key, "VEH#V-7741");
  EXPECT_EQ(item.sort_key, "TS#2026-06-23T09:00:01.000Z");
  EXPECT_EQ(item.attributes,
            (model::Item{{"speedKph", number("61.5")}, {"coolantC", number("88.2")}, {"fuelPct", number("54.1")}}));
  EXPECT_EQ(decoding.hashes.front(), model::hash_key("VEH#V-7741"));
}

Mapping monthly_mapping() {
  Mapping mapping = telemetry_mapping();
  mapping.partition_key = KeyTemplate::parse("VEH#{vehicleId}#{recordedAt:%Y-%m}").value();
  mapping.meta.emplace().path = JsonPath{{"plate"}};
  return mapping;
}

TEST(JsonDecoder, AReadingGoesIntoTheBucketOfItsTimeInUtc) {
  Decoding decoding(monthly_mapping());
  for (std::size_t i = 0; i < kManyTimes; ++i) {
    EXPECT_EQ(decoding.decode_one(kReading).partition_key, "VEH#V-7741#2026-06");
    EXPECT_EQ(decoding.decode_one(R"({"vehicleId":"V-1","recordedAt":"2027-01-01T00:30:00+01:00"})").partition_key,
              "VEH#V-1#2026-12");
    EXPECT_EQ(decoding.decode_one(R"({"vehicleId":"V-1","recordedAt":1782205201000})").partition_key,
              "VEH#V-1#2026-06");
  }
  EXPECT_EQ(decoding.reason_for(R"({"vehicleId":"V-1"})"), RejectReason::kNoTime);
}

TEST(JsonDecoder, MetaIsOfNoTimeAndStandsInFrontOfTheBuckets) {
  Decoding decoding(monthly_mapping());
  for (std::size_t i = 0; i < kManyTimes; ++i) {
    EXPECT_EQ(decoding.decode_one(R"({"vehicleId":"V-7741","plate":"LA21 LLT"})").partition_key, "VEH#V-7741");
  }
}

TEST(JsonDecoder, ATimeThatOnlyABucketNeedsStaysAnAttribute) {
  Mapping mapping = monthly_mapping();
  mapping.meta.reset();
  mapping.time_path = JsonPath{{"at"}};
  mapping.sort_key = KeyTemplate::parse("LATEST").value();
  Decoding decoding(mapping);
  for (std::size_t i = 0; i < kManyTimes; ++i) {
    const DecodedItem item = decoding.decode_one(R"({"vehicleId":"V-1","at":"2026-06-23T09:00:01Z"})");
    EXPECT_EQ(item.partition_key, "VEH#V-1#2026-06");
    EXPECT_EQ(item.attributes.at("at"), AttributeValue::string("2026-06-23T09:00:01Z"));
  }
}

TEST(JsonDecoder, RowsOfAMappingThatMergesUnite) {
  Mapping mapping = telemetry_mapping();
  const std::string record = R"({"vehicleId":"V-1","recordedAt":"2026-06-23T09:00:01Z"})";
  EXPECT_EQ(Decoding(mapping).decode_one(record).flags, 0);
  mapping.on_same_key = SameKey::kMerge;
  EXPECT_EQ(Decoding(mapping).decode_one(record).flags, model::kRowUnites);
}

TEST(JsonDecoder, RowsKeepTheOrderOfTheRecords) {
  Decoding decoding;
  std::vector<std::optional<std::string>> records;
  for (std::size_t i = 0; i < 1000; ++i) records.push_back(reading(",\"n\":" + std::to_string(i)));
  const std::vector<DecodedItem> items = decoding.decode(records);
  ASSERT_EQ(items.size(), records.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    ASSERT_EQ(items[i].attributes.at("n"), number(std::to_string(i)));
    ASSERT_EQ(items[i].version.offset, i);
  }
}

TEST(JsonDecoder, AValueOfAnotherTypeInALearnedPlaceIsReadAsItIs) {
  Decoding decoding;
  const std::vector<std::optional<std::string>> usual(kManyTimes, reading(R"(,"gear":3)"));
  decoding.decode(usual);
  EXPECT_EQ(decoding.decode_one(reading(R"(,"gear":null)")).attributes.at("gear").type, AttributeType::kNull);
  EXPECT_EQ(decoding.decode_one(reading(R"(,"gear":true)")).attributes.at("gear"), AttributeValue::of_bool(true));
  EXPECT_EQ(decoding.decode_one(reading(R"(,"gear":false)")).attributes.at("gear"), AttributeValue::of_bool(false));
  EXPECT_EQ(decoding.decode_one(reading(R"(,"gear":"N")")).attributes.at("gear"), text("N"));
  EXPECT_EQ(decoding.decode_one(reading(R"(,"gear":"\u00e4\n")")).attributes.at("gear"), text("\u00e4\n"));
  EXPECT_EQ(decoding.decode_one(reading(R"(,"gear":"ä")")).attributes.at("gear"), text("ä"));
  EXPECT_EQ(decoding.decode_one(reading(R"(,"gear":-1.50e3)")).attributes.at("gear"), number("-1500"));
  EXPECT_EQ(decoding.decode_one(reading(R"(,"gear":[1,"a"])")).attributes.at("gear").list.size(), 2U);
  EXPECT_EQ(decoding.decode_one(reading(R"(,"gear":{"now":3})")).attributes.at("gear").map.at("now"), number("3"));
}

TEST(JsonDecoder, ALearnedShapeTakesNoBrokenRecord) {
  Decoding decoding;
  decoding.decode(std::vector<std::optional<std::string>>(kManyTimes, kReading));
  std::string record = kReading;
  for (std::size_t size = 1; size < record.size(); ++size) {
    ASSERT_EQ(decoding.reason_for(record.substr(0, size)), RejectReason::kNotJson) << size;
  }
  EXPECT_EQ(decoding.reason_for(record + "}"), RejectReason::kNotJson);
  EXPECT_EQ(decoding.reason_for(record + " x"), RejectReason::kNotJson);
  EXPECT_EQ(decoding.reason_for(record + "\n"), RejectReason::kCount);
  record.replace(record.find("61.5"), 4, "061.5");
  EXPECT_EQ(decoding.reason_for(record), RejectReason::kNotJson);
  record.replace(record.find("061.5"), 5, "61.");
  EXPECT_EQ(decoding.reason_for(record), RejectReason::kNotJson);
}

TEST(JsonDecoder, NumbersAreExact) {
  Decoding decoding;
  for (const char* digits :
       {"9007199254740993", "18446744073709551615", "327267367867168100000", "0.1", "-0", "0.00", "100", "1.10",
        "-273.15", "99999999999999999999999999999999999999", "1E2", "1e-130", "9.9E125", "123456789012345678",
        "-123456789012345678", "12345678.12345678", "-0.12775812"}) {
    for (std::size_t i = 0; i < kManyTimes; ++i) {
      const DecodedItem item = decoding.decode_one(reading(std::string(",\"n\":") + digits));
      ASSERT_EQ(item.attributes.at("n"), number(digits)) << digits;
    }
  }
}

TEST(JsonDecoder, ANumberThatDynamoDbCannotHoldRefusesTheRecordAndNoOther) {
  Decoding decoding;
  EXPECT_EQ(decoding.reason_for(reading(R"(,"n":1e400)")), RejectReason::kBadNumber);
  EXPECT_EQ(decoding.reason_for(reading(R"(,"n":1e126)")), RejectReason::kBadNumber);
  EXPECT_EQ(decoding.reason_for(reading(R"(,"n":1e-131)")), RejectReason::kBadNumber);
  EXPECT_EQ(decoding.reason_for(reading(R"(,"n":[1.00000000000000000000000000000000000001])")),
            RejectReason::kBadNumber);
  EXPECT_EQ(decoding.decode({kReading, reading(R"(,"n":1e400)"), kReading}).size(), 2U);
  EXPECT_THAT(decoding.rejected, ElementsAre(Rejected{1, RejectReason::kBadNumber}));
}

TEST(JsonDecoder, TheIdIsTextOrAWholeNumber) {
  Decoding decoding;
  const auto with_id = [](const std::string& id) {
    return "{\"vehicleId\":" + id + R"(,"recordedAt":"2026-06-23T09:00:01Z"})";
  };
  EXPECT_EQ(decoding.decode_one(with_id("7741")).partition_key, "VEH#7741");
  EXPECT_EQ(decoding.decode_one(with_id("18446744073709551616")).partition_key, "VEH#18446744073709551616");
  EXPECT_EQ(decoding.decode_one(with_id(R"("a#TS#b")")).partition_key, "VEH#a#TS#b");
  for (const char* id : {"\"\"", "null", "true", "1.5", "1e3", "-1", "{}", "[1]"}) {
    EXPECT_EQ(decoding.reason_for(with_id(id)), RejectReason::kNoId) << id;
  }
  EXPECT_EQ(decoding.reason_for(R"({"recordedAt":"2026-06-23T09:00:01Z"})"), RejectReason::kNoId);
  EXPECT_EQ(decoding.reason_for("{}"), RejectReason::kNoId);
}

TEST(JsonDecoder, ALearnedShapeTakesNumbersAsIdsAsSimdjsonDoes) {
  Decoding decoding;
  const std::string number_id = R"({"vehicleId":7741,"recordedAt":"2026-06-23T09:00:01Z"})";
  for (const DecodedItem& item : decoding.decode(std::vector<std::optional<std::string>>(kManyTimes, number_id))) {
    ASSERT_EQ(item.partition_key, "VEH#7741");
  }
  EXPECT_EQ(decoding.reason_for(R"({"vehicleId":77.0,"recordedAt":"2026-06-23T09:00:01Z"})"), RejectReason::kNoId);
  EXPECT_EQ(decoding.reason_for(R"({"vehicleId":-7,"recordedAt":"2026-06-23T09:00:01Z"})"), RejectReason::kNoId);
  EXPECT_EQ(decoding.reason_for(R"({"vehicleId":"","recordedAt":"2026-06-23T09:00:01Z"})"), RejectReason::kNoId);
}

TEST(JsonDecoder, OneInstantHasOneSortKeyHoweverItIsWritten) {
  Decoding decoding;
  for (const char* time :
       {"2024-03-31T01:30:00+01:00", "2024-03-31T00:30:00Z", "2024-03-31T00:30:00.000+0000", "2024-03-31T00:30:00.0Z",
        "2024-03-31T00:30:00.000000000Z", "2024-03-31t00:30:00z", "2024-03-31T00:30:00.0009Z"}) {
    const std::string record = std::string(R"({"vehicleId":"V","recordedAt":")") + time + "\"}";
    for (std::size_t i = 0; i < kManyTimes; ++i) {
      ASSERT_EQ(decoding.decode_one(record).sort_key, "TS#2024-03-31T00:30:00.000Z") << time;
    }
  }
}

TEST(JsonDecoder, TimesTakeTheTablesPrecision) {
  for (const auto& [precision, canonical] :
       {std::pair(model::TimePrecision::kSeconds, "TS#2026-06-23T09:00:01Z"),
        std::pair(model::TimePrecision::kMillis, "TS#2026-06-23T09:00:01.230Z"),
        std::pair(model::TimePrecision::kNanos, "TS#2026-06-23T09:00:01.230000000Z")}) {
    Decoding decoding(telemetry_mapping(), telemetry_table(precision));
    for (std::size_t i = 0; i < kManyTimes; ++i) {
      ASSERT_EQ(decoding.decode_one(R"({"vehicleId":"V","recordedAt":"2026-06-23T09:00:01.23Z"})").sort_key, canonical);
    }
  }
}

TEST(JsonDecoder, NumbersAreTimesInTheMappingsUnit) {
  for (const auto& [unit, digits] :
       {std::pair(model::TimeUnit::kSeconds, "1782205201.23"), std::pair(model::TimeUnit::kMillis, "1782205201230"),
        std::pair(model::TimeUnit::kMicros, "1782205201230000"),
        std::pair(model::TimeUnit::kNanos, "1782205201230000000"),
        std::pair(model::TimeUnit::kMillis, "1.78220520123e12")}) {
    Mapping mapping = telemetry_mapping();
    mapping.time_unit = unit;
    Decoding decoding(mapping);
    const std::string record = std::string(R"({"vehicleId":"V","recordedAt":)") + digits + "}";
    for (std::size_t i = 0; i < kManyTimes; ++i) {
      ASSERT_EQ(decoding.decode_one(record).sort_key, "TS#2026-06-23T09:00:01.230Z") << digits;
    }
  }
}

TEST(JsonDecoder, ATimeThatIsMissingOrCannotBeReadRefusesTheReading) {
  Decoding decoding;
  const auto with_time = [](const std::string& time) { return R"({"vehicleId":"V","recordedAt":)" + time + "}"; };
  EXPECT_EQ(decoding.reason_for(R"({"vehicleId":"V"})"), RejectReason::kNoTime);
  EXPECT_EQ(decoding.reason_for(with_time("null")), RejectReason::kNoTime);
  for (const char* time : {"\"2024-03-31T00:30:00\"", "\"2024-02-30T00:30:00Z\"", "\"2024-03-31T24:30:00Z\"", "\"\"",
                           "\"META\"", "\"1782205201\"", "true", "{}", "[]", "1e300", "\"9999-01-01T00:00:00Z\""}) {
    EXPECT_EQ(decoding.reason_for(with_time(time)), RejectReason::kBadTime) << time;
  }
  decoding.decode(std::vector<std::optional<std::string>>(kManyTimes, with_time("\"2024-02-28T00:30:00Z\"")));
  for (const char* time : {"\"2024-02-30T00:30:00Z\"", "\"2024-02-28T24:30:00Z\"", "\"2024-02-28T00:60:00Z\"",
                           "\"2024-02-28T00:30:61Z\"", "\"2024-02-28T00:30:0:Z\"", "\"2024-02-28T00:30:00.Z\""}) {
    EXPECT_EQ(decoding.reason_for(with_time(time)), RejectReason::kBadTime) << time;
  }
}

TEST(JsonDecoder, AReadingTooFarAheadOfTheClockOrTooOldIsRefused) {
  Mapping mapping = telemetry_mapping();
  mapping.ahead_ms_max = 60'000;
  mapping.age_ms_max = 3'600'000;
  Decoding decoding(mapping);
  const auto at = [](const std::string& time) { return R"({"vehicleId":"V","recordedAt":")" + time + "\"}"; };
  for (int way = 0; way < 2; ++way) {  // read whole, then by the shape that was learned
    EXPECT_EQ(decoding.reason_for(at("2026-06-23T09:01:00Z")), RejectReason::kCount);
    EXPECT_EQ(decoding.reason_for(at("2026-06-23T09:01:00.001Z")), RejectReason::kAheadOfTime);
    EXPECT_EQ(decoding.reason_for(at("2034-06-23T09:00:00Z")), RejectReason::kAheadOfTime);
    EXPECT_EQ(decoding.reason_for(at("2034-06-23T11:00:00+02:00")), RejectReason::kAheadOfTime);
    EXPECT_EQ(decoding.reason_for(at("2026-06-23T08:00:00Z")), RejectReason::kCount);
    EXPECT_EQ(decoding.reason_for(at("2026-06-23T07:59:59.999Z")), RejectReason::kExpired);
    EXPECT_EQ(decoding.reason_for(at("1970-01-01T00:00:00Z")), RejectReason::kExpired);
    decoding.decode(std::vector<std::optional<std::string>>(kManyTimes, at("2026-06-23T09:00:00Z")));
  }
}

TEST(JsonDecoder, NoTimeIsTooFarAwayWithoutABound) {
  Decoding decoding;
  for (const char* time : {"1678-01-02T00:00:00Z", "2261-01-01T00:00:00Z"}) {
    EXPECT_EQ(decoding.reason_for(std::string(R"({"vehicleId":"V","recordedAt":")") + time + "\"}"),
              RejectReason::kCount);
  }
}

TEST(JsonDecoder, TheTimeOfAMetaRecordBindsItToNothing) {
  Mapping mapping = telemetry_mapping();
  mapping.ahead_ms_max = 60'000;
  mapping.age_ms_max = 3'600'000;
  mapping.meta.emplace().path = JsonPath{{"plate"}};
  Decoding decoding(mapping);
  const std::string meta = R"({"vehicleId":"V","plate":"LA21 LLT","recordedAt":"2034-06-23T09:00:00Z"})";
  for (std::size_t i = 0; i < kManyTimes; ++i) ASSERT_EQ(decoding.decode_one(meta).sort_key, "META");
}

TEST(JsonDecoder, BadRecordsAreToldApartByReason) {
  Decoding decoding;
  EXPECT_EQ(decoding.reason_for(std::nullopt), RejectReason::kNullValue);
  EXPECT_EQ(decoding.reason_for(""), RejectReason::kEmptyValue);
  for (const char* text : {" ",
                           "{",
                           "{\"a\":1,}",
                           "{\"a\":1 \"b\":2}",
                           "{\"a\" 1}",
                           "{a:1}",
                           "{\"vehicleId\":\"V\"} {}",
                           "nul",
                           "{\"vehicleId\":NaN}",
                           "{\"vehicleId\":Infinity}",
                           "{\"a\":[1,]}",
                           "{\"a\":[1 2]}",
                           "{\"a\":tru}",
                           "{\"a\":truex}",
                           "{\"a\":.5}",
                           "{\"a\":+5}",
                           "{\"a\":\"\\x\"}",
                           "{\"a\":\"\xff\"}",
                           "[1,2",
                           "\"a",
                           "{\"a\":\"\n\"}",
                           "{\"\xc0\xaf\":1}",
                           "1 2",
                           "\xef\xbb\xbf{}",
                           "{\"a\":\"\\ud800\"}",
                           "{\"a\":{\"b\":[1}]}}"}) {
    EXPECT_EQ(decoding.reason_for(text), RejectReason::kNotJson) << text;
  }
  for (const char* text : {"null", "[]", "[{\"a\":[1,2]}]", "12", " true ", "\"text\"", "-1.5e3"}) {
    EXPECT_EQ(decoding.reason_for(text), RejectReason::kNotAnObject) << text;
  }
}

TEST(JsonDecoder, WhatIsNotStoredIsCheckedToo) {
  Mapping mapping = telemetry_mapping();
  mapping.attributes = attributes({{"speedKph", "speed"}});
  Decoding decoding(mapping);
  EXPECT_EQ(decoding.decode_one(reading(R"(,"speedKph":1,"x":{"y":[1,2,{"z":"\u0041"}]},"n":1e400)")).attributes,
            (model::Item{{"speed", number("1")}}));
  for (const char* tail : {R"(,"x":tru)", R"(,"x":[1,])", R"(,"x":{"y":01})", R"(,"x":"\q")", R"(,"x":{"y":1}})"}) {
    EXPECT_EQ(decoding.reason_for(reading(tail)), RejectReason::kNotJson) << tail;
  }
}

TEST(JsonDecoder, NestedDeeperThanAnItemMayBeIsRefused) {
  Decoding decoding;
  const auto nested = [](std::size_t depth) {
    return reading(",\"a\":" + std::string(depth, '[') + std::string(depth, ']'));
  };
  EXPECT_EQ(decoding.reason_for(nested(model::kItemDepthMax)), RejectReason::kCount);
  EXPECT_EQ(decoding.reason_for(nested(model::kItemDepthMax + 1)), RejectReason::kTooDeep);
  EXPECT_EQ(decoding.reason_for(nested(100'000)), RejectReason::kTooDeep);
  std::string objects;
  for (std::size_t i = 0; i < model::kItemDepthMax + 1; ++i) objects += "{\"a\":";
  EXPECT_EQ(decoding.reason_for(reading(",\"a\":" + objects + "1" + std::string(model::kItemDepthMax + 1, '}'))),
            RejectReason::kTooDeep);
}

TEST(JsonDecoder, AnItemOfMoreThan400KbIsRefused) {
  Decoding decoding;
  const auto with_text = [](std::size_t size) { return reading(",\"a\":\"" + std::string(size, 'x') + "\""); };
  const std::size_t other_bytes = std::string("vehicleIdVEH#V-7741recordedAtTS#2026-06-23T09:00:01.000Za").size();
  EXPECT_EQ(decoding.reason_for(with_text(model::kItemSizeBytesMax - 200)), RejectReason::kCount);
  EXPECT_EQ(decoding.reason_for(with_text(model::kItemSizeBytesMax)), RejectReason::kTooLarge);
  EXPECT_EQ(decoding.reason_for(with_text(5'000'000)), RejectReason::kTooLarge);
  Mapping mapping = telemetry_mapping();
  mapping.attributes = attributes({{"a", std::string(2000, 'n')}});
  Decoding renaming(mapping);
  const std::size_t fits = model::kItemSizeBytesMax - other_bytes + 1 - 2000;
  EXPECT_EQ(renaming.reason_for(with_text(fits)), RejectReason::kCount);
  EXPECT_EQ(renaming.reason_for(with_text(fits + 1)), RejectReason::kTooLarge);
}

TEST(JsonDecoder, AKeyLongerThanDynamoDbAllowsIsRefused) {
  Decoding decoding;
  const auto with_id = [](std::size_t size) {
    return "{\"vehicleId\":\"" + std::string(size, 'v') + R"(","recordedAt":"2026-06-23T09:00:01Z"})";
  };
  const std::size_t fits = model::kPartitionKeySizeBytesMax - std::string("VEH#").size();
  for (std::size_t i = 0; i < kManyTimes; ++i) {
    ASSERT_EQ(decoding.reason_for(with_id(fits)), RejectReason::kCount);
    ASSERT_EQ(decoding.reason_for(with_id(fits + 1)), RejectReason::kBadKey);
  }
}

TEST(JsonDecoder, ANameTwiceIsRefused) {
  Decoding decoding;
  EXPECT_EQ(decoding.reason_for(reading(R"(,"a":1,"b":2,"a":1)")), RejectReason::kDuplicateName);
  EXPECT_EQ(decoding.reason_for(reading(R"(,"a":1,"\u0061":1)")), RejectReason::kDuplicateName);
  EXPECT_EQ(decoding.reason_for(reading(R"(,"a":{"b":1,"b":2})")), RejectReason::kDuplicateName);
  EXPECT_EQ(decoding.reason_for(reading(R"(,"vehicleId":"V-2")")), RejectReason::kDuplicateName);
  EXPECT_EQ(decoding.reason_for(reading(R"(,"a":{"b":1},"c":{"b":2})")), RejectReason::kCount);
}

TEST(JsonDecoder, ListedAttributesAloneAreStoredUnderTheirNames) {
  Mapping mapping = telemetry_mapping();
  mapping.id_path = JsonPath::parse("asset.id").value();
  mapping.attributes =
      attributes({{"location.lat", "lat"}, {"location.lon", "lon"}, {"tags", "labels"}, {"rpm", "rpm"}});
  Decoding decoding(mapping);
  const std::string record = R"({"recordedAt":"2026-06-23T09:00:01Z","asset":{"id":"A1","name":"x"},)"
                             R"("location":{"lat":51.507351,"alt":7,"lon":-0.127758},"noise":"n"})";
  const model::Item expected = {{"lat", number("51.507351")}, {"lon", number("-0.127758")}};
  for (std::size_t i = 0; i < kManyTimes; ++i) {
    const DecodedItem item = decoding.decode_one(record);
    ASSERT_EQ(item.partition_key, "VEH#A1");
    ASSERT_EQ(item.attributes, expected);
  }
  EXPECT_EQ(
      decoding.decode_one(R"({"recordedAt":"2026-06-23T09:00:01Z","asset":{"id":"A1"},"location":5,"tags":["a",{}]})")
          .attributes.at("labels")
          .list.size(),
      2U);
}

TEST(JsonDecoder, EveryFieldIsStoredButWhatMakesTheKeys) {
  Mapping mapping = telemetry_mapping();
  mapping.id_path = JsonPath::parse("asset.id").value();
  Decoding decoding(mapping);
  const DecodedItem item = decoding.decode_one(
      R"({"recordedAt":"2026-06-23T09:00:01Z","asset":{"id":"A1","z":1,"a":{"b":[null,true]}},"vehicleId":"other","list":[]})");
  ASSERT_EQ(item.attributes.size(), 2U);
  EXPECT_EQ(item.attributes.at("list").type, AttributeType::kList);
  const AttributeValue& asset = item.attributes.at("asset");
  ASSERT_EQ(asset.type, AttributeType::kMap);
  EXPECT_EQ(asset.map.size(), 2U);
  EXPECT_EQ(asset.map.at("z"), number("1"));
  EXPECT_EQ(asset.map.at("a").map.at("b").list,
            (AttributeValue::List{AttributeValue::null(), AttributeValue::of_bool(true)}));
}

TEST(JsonDecoder, StoredMapsAndListsHaveTheBytesOfEqualApiValues) {
  Mapping mapping = telemetry_mapping();
  model::AttributeNames names;
  const auto decoder = make_json_decoder(mapping, telemetry_table(), names);
  const std::vector<std::optional<std::string>> values = {
      reading(R"(,"m":{"z":[1,[],"t",{"y":2,"b":{}}],"a":1.50,"é":null})")};
  model::RowBatch batch;
  SourceState state{model::SourceId{1}};
  decoder->decode({state.source, views(values)}, state, kNowMs, batch, [](const Reject&) {});
  ASSERT_EQ(batch.rows.size(), 1U);
  const std::string_view attributes = model::RowView(batch.row_bytes(batch.rows.front())).attributes();
  EXPECT_EQ(drover::test::encode_attributes(drover::test::decode_attributes(attributes, names), names), attributes);
}

Mapping mapping_with_meta(std::string equals) {
  Mapping mapping = telemetry_mapping();
  mapping.meta.emplace();
  mapping.meta->path = JsonPath{{"kind"}};
  mapping.meta->equals = std::move(equals);
  return mapping;
}

TEST(JsonDecoder, MetaRecordsAreToldByAFieldsText) {
  Decoding decoding(mapping_with_meta("vehicle"));
  const std::string meta = R"({"kind":"vehicle","vehicleId":"V-1","plate":"AB 12","depotCode":"DEP-LON-3"})";
  const std::string as_reading = R"({"kind":"reading","vehicleId":"V-1","recordedAt":"2026-06-23T09:00:01Z","n":1})";
  for (std::size_t i = 0; i < kManyTimes; ++i) {
    const std::vector<DecodedItem> items = decoding.decode({meta, as_reading});
    ASSERT_EQ(items.size(), 2U);
    ASSERT_EQ(items[0].sort_key, "META");
    ASSERT_EQ(items[0].attributes.at("plate"), text("AB 12"));
    ASSERT_EQ(items[1].sort_key, "TS#2026-06-23T09:00:01.000Z");
  }
}

TEST(JsonDecoder, OneShapeCanBeOfBothKinds) {
  Decoding decoding(mapping_with_meta("vehicle"));
  const auto of_kind = [](const std::string& kind) {
    return R"({"vehicleId":"V-1","recordedAt":"2026-06-23T09:00:01Z","kind":")" + kind + "\"}";
  };
  for (std::size_t i = 0; i < kManyTimes; ++i) {
    ASSERT_EQ(decoding.decode_one(of_kind("vehicle")).sort_key, "META");
    ASSERT_EQ(decoding.decode_one(of_kind("reading")).sort_key, "TS#2026-06-23T09:00:01.000Z");
    ASSERT_EQ(decoding.decode_one(of_kind("v\\u0065hicle")).sort_key, "META");
  }
}

TEST(JsonDecoder, MetaRecordsAreToldByAFieldsPresence) {
  Mapping mapping = mapping_with_meta("");
  mapping.meta->path = JsonPath::parse("vehicle.plate").value();
  mapping.meta->attributes = attributes({{"vehicle.plate", "plate"}});
  Decoding decoding(mapping);
  for (std::size_t i = 0; i < kManyTimes; ++i) {
    const DecodedItem meta = decoding.decode_one(R"({"vehicleId":"V-1","vehicle":{"make":"M","plate":"AB 12"}})");
    ASSERT_EQ(meta.sort_key, "META");
    ASSERT_EQ(meta.attributes, (model::Item{{"plate", text("AB 12")}}));
    ASSERT_EQ(decoding.reason_for(R"({"vehicleId":"V-1","vehicle":{"make":"M"}})"), RejectReason::kNoTime);
  }
}

TEST(JsonDecoder, ATableWithoutASortKeyKeepsTheTimeAsAnAttribute) {
  model::TableSchema table = telemetry_table();
  table.key.sort_key.reset();
  table.time_sort_key.reset();
  Mapping mapping = telemetry_mapping();
  mapping.sort_key = {};
  Decoding decoding(mapping, table);
  const DecodedItem item = decoding.decode_one(kReading);
  EXPECT_EQ(item.sort_key, "");
  EXPECT_EQ(item.attributes.at("recordedAt"), text("2026-06-23T09:00:01.000Z"));
}

TEST(JsonDecoder, VersionsFollowTheSourcesRunningMaximumOfTimestamps) {
  Decoding decoding;
  const std::vector<std::optional<std::string>> values(5, kReading);
  std::vector<model::RecordView> records = views(values);
  records[0].timestamp_ms = kNowMs - 5000;
  records[1].timestamp_ms = kNowMs - 9000;           // late
  records[2].timestamp_ms = -1;                      // none
  records[3].timestamp_ms = kNowMs + 3'600'000 + 1;  // more than an hour ahead
  records[4].timestamp_ms = kNowMs + 3'600'000;
  std::vector<std::int64_t> log_times;
  for (const DecodedItem& item : decoding.decode_views(records)) {
    log_times.push_back(item.version.log_time_ms());
    EXPECT_EQ(item.version.source(), model::SourceId{1});
  }
  EXPECT_THAT(log_times, ElementsAre(kNowMs - 5000, kNowMs - 5000, kNowMs - 5000, kNowMs - 5000, kNowMs + 3'600'000));
  EXPECT_EQ(decoding.state.log_time_ms, kNowMs + 3'600'000);
}

TEST(JsonDecoder, RowsAreAppendedBehindThoseOfTheBatch) {
  Decoding decoding;
  model::RowBatch batch;
  const auto decoder = make_json_decoder(telemetry_mapping(), telemetry_table(), decoding.names);
  const std::vector<std::optional<std::string>> values = {kReading};
  for (int i = 0; i < 2; ++i) {
    decoder->decode({decoding.state.source, views(values)}, decoding.state, kNowMs, batch, [](const Reject&) {});
  }
  ASSERT_EQ(batch.rows.size(), 2U);
  EXPECT_EQ(batch.row_bytes(batch.rows[0]).substr(16), batch.row_bytes(batch.rows[1]).substr(16));
  EXPECT_EQ(batch.rows[1].begin + batch.rows[1].partition_key_size + batch.rows[1].row_size, batch.bytes.size());
}

TEST(JsonDecoder, EveryReasonHasAName) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < static_cast<std::size_t>(RejectReason::kCount); ++i) {
    names.push_back(wire_name(static_cast<RejectReason>(i)));
  }
  EXPECT_THAT(
      names, ElementsAre("null_value", "empty_value", "not_json", "not_an_object", "too_deep", "too_large", "no_id",
                         "no_time", "bad_time", "bad_number", "bad_key", "duplicate_name", "ahead_of_time", "expired"));
}

}  // namespace
}  // namespace drover::ingest::test

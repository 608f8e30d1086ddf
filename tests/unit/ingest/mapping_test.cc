#include "drover/ingest/mapping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decoding.h"

namespace drover::ingest::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(JsonPath, NamesAreSplitAtDots) {
  EXPECT_THAT(JsonPath::parse("location.lat").value().names, ElementsAre("location", "lat"));
  EXPECT_THAT(JsonPath::parse("vin").value().names, ElementsAre("vin"));
  EXPECT_EQ(JsonPath::parse("a.b.c").value().text(), "a.b.c");
}

TEST(JsonPath, EmptyNamesAreRefused) {
  for (const char* text : {"", ".", "a.", ".a", "a..b"}) EXPECT_FALSE(JsonPath::parse(text).ok()) << text;
}

TEST(KeyTemplate, TextAndOneFieldAreSplit) {
  const KeyTemplate key = KeyTemplate::parse("VEH#{vehicleId}#x").value();
  EXPECT_EQ(key.prefix, "VEH#");
  EXPECT_EQ(key.field, "vehicleId");
  EXPECT_EQ(key.suffix, "#x");
  EXPECT_EQ(KeyTemplate::parse("META").value().prefix, "META");
  EXPECT_EQ(KeyTemplate::parse("{recordedAt}").value().field, "recordedAt");
}

TEST(KeyTemplate, WhatIsNoTemplateIsRefusedWithTheReason) {
  EXPECT_THAT(KeyTemplate::parse("VEH#{vin}").status().message(), HasSubstr("{vin}"));
  EXPECT_THAT(KeyTemplate::parse("{vehicleId}{recordedAt}").status().message(), HasSubstr("at most one field"));
  for (const char* text : {"VEH#{vehicleId", "VEH#}", "{}", "{vehicleId}}", "}{"}) {
    EXPECT_FALSE(KeyTemplate::parse(text).ok()) << text;
  }
}

TEST(KeyTemplate, ABucketOfTimeStandsBehindTheId) {
  const KeyTemplate key = KeyTemplate::parse("VEH#{vehicleId}#{recordedAt:%Y-%m}!").value();
  EXPECT_EQ(key.suffix, "#0000-00!");
  EXPECT_EQ(key.digits, (std::vector<model::TimeDigits>{{1, 0}, {3, 2}, {6, 5}}));
  EXPECT_THAT(KeyTemplate::parse("VEH#{vehicleId}#{recordedAt:%Y-%W}").status().message(),
              HasSubstr("%W is not known"));
  EXPECT_THAT(KeyTemplate::parse("{recordedAt:%Y}#{vehicleId}").status().message(), HasSubstr("behind {vehicleId}"));
  EXPECT_FALSE(KeyTemplate::parse("{vehicleId}{recordedAt:%Y}{recordedAt:%Y}").ok());
  EXPECT_FALSE(KeyTemplate::parse("{vehicleId}{recordedAt:%Y").ok());
}

/// What validate() says of a mapping that `change` has spoiled.
template <typename Change>
std::string complaint(Change&& change) {
  Mapping mapping = telemetry_mapping();
  model::TableSchema table = telemetry_table();
  change(mapping, table);
  return validate(mapping, table).message();
}

TEST(Mapping, TheExampleIsGood) {
  EXPECT_EQ(complaint([](Mapping&, model::TableSchema&) {}), "");
}

TEST(Mapping, WhatDoesNotFitTheTableIsNamedBySetting) {
  using Table = model::TableSchema;
  EXPECT_THAT(complaint([](Mapping& m, Table&) { m.topic.clear(); }), HasSubstr("topic:"));
  EXPECT_THAT(complaint([](Mapping& m, Table&) { m.table = "other"; }), HasSubstr("table:"));
  EXPECT_THAT(complaint([](Mapping& m, Table&) { m.id_path = {}; }), HasSubstr("id:"));
  EXPECT_THAT(complaint([](Mapping& m, Table&) { m.time_path = {}; }), HasSubstr("time:"));
  EXPECT_THAT(complaint([](Mapping& m, Table&) { m.partition_key = {"VEH", "", ""}; }), HasSubstr("partition_key:"));
  EXPECT_THAT(complaint([](Mapping& m, Table&) { m.sort_key = {}; }), HasSubstr("sort_key:"));
  EXPECT_THAT(complaint([](Mapping& m, Table&) { m.sort_key.prefix = "T#"; }), HasSubstr("\"T#\""));
  EXPECT_THAT(complaint([](Mapping& m, Table&) { m.sort_key.suffix = "#x"; }), HasSubstr("#x"));
  EXPECT_THAT(complaint([](Mapping&, Table& t) { t.time_sort_key.reset(); }), HasSubstr("time sort key"));
  EXPECT_THAT(complaint([](Mapping&, Table& t) { t.key.sort_key.reset(); }), HasSubstr("no sort key"));
  EXPECT_THAT(complaint([](Mapping&, Table& t) { t.key.sort_key->type = model::KeyType::kNumber; }),
              HasSubstr("type S"));
  EXPECT_THAT(complaint([](Mapping&, Table& t) { t.key.partition_key.type = model::KeyType::kBinary; }),
              HasSubstr("type S"));
}

TEST(Mapping, ABucketNeedsATimeAndNoPlaceInTheSortKey) {
  using Table = model::TableSchema;
  const KeyTemplate bucket = KeyTemplate::parse("{vehicleId}#{recordedAt:%Y-%m}").value();
  EXPECT_EQ(complaint([&](Mapping& m, Table&) { m.partition_key = bucket; }), "");
  EXPECT_THAT(complaint([&](Mapping& m, Table&) {
                m.partition_key = bucket;
                m.sort_key = KeyTemplate::parse("LATEST").value();
                m.time_path = {};
              }),
              HasSubstr("time: partition_key has a bucket"));
  EXPECT_THAT(complaint([&](Mapping& m, Table&) { m.sort_key = bucket; }), HasSubstr("belongs into partition_key"));
}

TEST(Mapping, AttributesThatClashAreNamed) {
  using Table = model::TableSchema;
  const auto with = [](std::initializer_list<std::pair<std::string_view, std::string_view>> mapped) {
    return complaint([&](Mapping& mapping, Table&) { mapping.attributes = attributes(mapped); });
  };
  EXPECT_EQ(with({{"a.b", "x"}, {"a.c", "y"}}), "");
  EXPECT_THAT(with({{"a", "vehicleId"}}), HasSubstr("is a key"));
  EXPECT_THAT(with({{"a", "recordedAt"}}), HasSubstr("is a key"));
  EXPECT_THAT(with({{"a", "x"}, {"b", "x"}}), HasSubstr("twice"));
  EXPECT_THAT(with({{"a", "x"}, {"a.b", "y"}}), HasSubstr("overlap"));
  EXPECT_THAT(with({{"a", ""}}), HasSubstr("empty"));
}

TEST(Mapping, MetaNeedsASortKeyAndAPath) {
  using Table = model::TableSchema;
  const auto meta = [](Mapping& mapping) { mapping.meta.emplace().path = JsonPath{{"kind"}}; };
  EXPECT_EQ(complaint([&](Mapping& m, Table&) { meta(m); }), "");
  EXPECT_THAT(complaint([&](Mapping& m, Table&) { m.meta.emplace(); }), HasSubstr("meta.path"));
  EXPECT_THAT(complaint([&](Mapping& m, Table&) {
                meta(m);
                m.meta->sort_key.clear();
              }),
              HasSubstr("meta.sort_key"));
  EXPECT_THAT(complaint([&](Mapping& m, Table& t) {
                meta(m);
                m.sort_key = {};
                t.key.sort_key.reset();
              }),
              HasSubstr("meta:"));
  EXPECT_THAT(complaint([&](Mapping& m, Table&) {
                meta(m);
                m.meta->attributes = attributes({{"a", "vehicleId"}});
              }),
              HasSubstr("meta.attributes"));
}

}  // namespace
}  // namespace drover::ingest::test

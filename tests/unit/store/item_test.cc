#include "drover/store/item.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/rows.h"
#include "tests/support/tables.h"

namespace drover::store {
namespace {

using model::Item;
using model::KeyAttribute;
using model::KeyType;
using test::number;
using test::text;

std::string bytes(std::string_view literal) {
  return std::string(literal);
}
using namespace std::string_view_literals;

/// Texts whose order is unsigned byte order, and in which zeros, 0x01 and 0xff stand everywhere.
const std::vector<std::string>& difficult_texts() {
  static const std::vector<std::string> texts{bytes("\0"sv),     bytes("\0\0"sv),    bytes("\0\1"sv), bytes("\0\xff"sv),
                                              bytes("\1"sv),     bytes("a"sv),       bytes("a\0"sv),  bytes("a\0\0"sv),
                                              bytes("a\0\1"sv),  bytes("a\0\xff"sv), bytes("a\1"sv),  bytes("aa"sv),
                                              bytes("a\xff"sv),  bytes("a\xff\0"sv), bytes("b"sv),    bytes("\xff"sv),
                                              bytes("\xff\0"sv), bytes("\xff\xff"sv)};
  return texts;
}

std::vector<model::Decimal> ordered_numbers() {
  std::vector<model::Decimal> numbers;
  for (const char* written :
       {"-9.9e125", "-1000", "-256", "-255", "-1.5", "-1e-130", "0", "1e-130", "0.1", "1", "1.0000000000000000001",
        "10", "255", "256", "65535.5", "12345678901234567890123456789012345678", "9e125"}) {
    numbers.push_back(model::Decimal::parse(written).value());
  }
  return numbers;
}

model::TableSchema schema_with(model::IndexSchema index) {
  return test::telemetry_schema({std::move(index)});
}

TEST(IndexSortKey, OrdersByTheIndexKeyThenTheTablesKeys) {
  const model::TableSchema schema = schema_with(
      {"by", {{"a", KeyType::kString}, KeyAttribute{"b", KeyType::kBinary}}, false, model::ProjectionType::kAll, {}});
  const model::IndexSchema& index = schema.indexes[0];
  std::string last;
  for (const std::string& by : difficult_texts()) {
    for (const std::string& partition : difficult_texts()) {
      for (const std::string& sort : difficult_texts()) {
        const std::string joined = index_sort_key(schema, index, by, partition, sort);
        ASSERT_LT(last, joined);
        last = joined;
      }
    }
  }
}

TEST(IndexBounds, HoldEveryEntryOfTheKeyAndNoOther) {
  const model::TableSchema schema = schema_with(
      {"by", {{"a", KeyType::kString}, KeyAttribute{"b", KeyType::kBinary}}, false, model::ProjectionType::kAll, {}});
  for (const std::string& part : difficult_texts()) {
    const IndexBounds whole = index_bounds(part, false);
    const IndexBounds prefix = index_bounds(part, true);
    for (const std::string& by : difficult_texts()) {
      for (const std::string& base : difficult_texts()) {
        const std::string joined = index_sort_key(schema, schema.indexes[0], by, base, base);
        EXPECT_EQ(whole.lower <= joined && joined < whole.upper, by == part);
        EXPECT_EQ(prefix.lower <= joined && (prefix.upper.empty() || joined < prefix.upper), by.starts_with(part));
      }
    }
  }
}

TEST(IndexBounds, APrefixOfAllOnesHasNoUpperBound) {
  EXPECT_TRUE(index_bounds("\xff\xff", true).upper.empty());
  EXPECT_TRUE(index_bounds("", true).upper.empty());
  EXPECT_EQ(index_bounds("", true).lower, "");
}

TEST(IndexBounds, HoldNumbersInTheirOrder) {
  const std::vector<model::Decimal> numbers = ordered_numbers();
  const model::TableSchema schema = schema_with(
      {"by", {{"a", KeyType::kString}, KeyAttribute{"n", KeyType::kNumber}}, false, model::ProjectionType::kAll, {}});
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const IndexBounds bounds = index_bounds(test::number_key(numbers[i]), false);
    for (std::size_t j = 0; j < numbers.size(); ++j) {
      const std::string joined =
          index_sort_key(schema, schema.indexes[0], test::number_key(numbers[j]), "VEH#1", "TS#1");
      EXPECT_EQ(bounds.lower <= joined, i <= j) << numbers[i].text() << " " << numbers[j].text();
      EXPECT_EQ(joined < bounds.upper, j <= i) << numbers[i].text() << " " << numbers[j].text();
    }
  }
}

TEST(ItemReader, GivesTheTablesKeysAndTheRowsAttributes) {
  model::AttributeNames names;
  const model::TableSchema schema = test::telemetry_schema();
  ItemReader reader(schema, nullptr, names);
  const std::string row = test::make_row("TS#1", test::encode_attributes({{"speedKph", number(50)}}, names));
  const StoredItem item{"VEH#1", model::RowView(row)};
  EXPECT_EQ(reader.to_item(item),
            (Item{{"vehicleId", text("VEH#1")}, {"recordedAt", text("TS#1")}, {"speedKph", number(50)}}));
  EXPECT_EQ(reader.key_of(item), (Item{{"vehicleId", text("VEH#1")}, {"recordedAt", text("TS#1")}}));
  std::vector<std::string> order;
  reader.for_each(item, [&](std::string_view name, model::ValueView) { order.emplace_back(name); });
  EXPECT_EQ(order, (std::vector<std::string>{"vehicleId", "recordedAt", "speedKph"}));
}

TEST(ItemReader, ATableWithoutASortKeyHasOneKeyAttribute) {
  model::AttributeNames names;
  model::TableSchema schema;
  schema.name = "counters";
  schema.key = {{"id", KeyType::kNumber}, std::nullopt};
  ItemReader reader(schema, nullptr, names);
  for (const model::Decimal& id : ordered_numbers()) {
    const std::string key = test::number_key(id);
    const std::string row = test::make_row("", test::encode_attributes({{"count", number(1)}}, names));
    const Item expected{{"id", model::AttributeValue::of_number(id)}, {"count", number(1)}};
    EXPECT_EQ(reader.to_item({key, model::RowView(row)}), expected);
    EXPECT_EQ(reader.key_of({key, model::RowView(row)}), (Item{{"id", model::AttributeValue::of_number(id)}}));
  }
}

TEST(ItemReader, TakesAnIndexEntrysKeysApartAgain) {
  model::AttributeNames names;
  const model::TableSchema schema = schema_with({"by",
                                                 {{"region", KeyType::kString}, KeyAttribute{"raw", KeyType::kBinary}},
                                                 false,
                                                 model::ProjectionType::kAll,
                                                 {}});
  ItemReader reader(schema, &schema.indexes[0], names);
  for (const std::string& region : difficult_texts()) {
    for (const std::string& raw : difficult_texts()) {
      const std::string joined = index_sort_key(schema, schema.indexes[0], raw, region, raw);
      const std::string row = test::make_row(joined, "");
      EXPECT_EQ(reader.to_item({region, model::RowView(row)}), (Item{{"region", text(region)},
                                                                     {"raw", model::AttributeValue::binary(raw)},
                                                                     {"vehicleId", text(region)},
                                                                     {"recordedAt", text(raw)}}));
    }
  }
}

TEST(ItemReader, AnAttributeThatIsAKeyOfTableAndIndexStandsOnce) {
  model::AttributeNames names;
  const model::TableSchema schema = schema_with(test::depot_index());
  ItemReader reader(schema, &schema.indexes[0], names);
  const std::string joined = index_sort_key(schema, schema.indexes[0], "TS#1", "VEH#1", "TS#1");
  const std::string row = test::make_row(joined, test::encode_attributes({{"speedKph", number(50)}}, names));
  const StoredItem item{"DEP-LON-3", model::RowView(row)};
  const Item key{{"depotCode", text("DEP-LON-3")}, {"recordedAt", text("TS#1")}, {"vehicleId", text("VEH#1")}};
  EXPECT_EQ(reader.key_of(item), key);
  Item whole = key;
  whole.emplace("speedKph", number(50));
  EXPECT_EQ(reader.to_item(item), whole);
}

TEST(ItemReader, AnIndexMayTurnTheTablesKeysRound) {
  model::AttributeNames names;
  const model::TableSchema schema =
      schema_with({"turned",
                   {{"recordedAt", KeyType::kString}, KeyAttribute{"vehicleId", KeyType::kString}},
                   false,
                   model::ProjectionType::kKeysOnly,
                   {}});
  ItemReader reader(schema, &schema.indexes[0], names);
  const std::string joined = index_sort_key(schema, schema.indexes[0], "VEH#1", "VEH#1", "TS#1");
  const std::string row = test::make_row(joined, "");
  EXPECT_EQ(reader.key_of({"TS#1", model::RowView(row)}),
            (Item{{"vehicleId", text("VEH#1")}, {"recordedAt", text("TS#1")}}));
}

TEST(ItemReader, ALocalIndexIsReadFromTheTable) {
  model::AttributeNames names;
  const model::TableSchema schema =
      schema_with({"local",
                   {{"vehicleId", KeyType::kString}, KeyAttribute{"speedKph", KeyType::kNumber}},
                   true,
                   model::ProjectionType::kAll,
                   {}});
  ItemReader reader(schema, &schema.indexes[0], names);
  const std::string row = test::make_row("TS#1", "");
  EXPECT_EQ(reader.key_of({"VEH#1", model::RowView(row)}),
            (Item{{"vehicleId", text("VEH#1")}, {"recordedAt", text("TS#1")}}));
}

}  // namespace
}  // namespace drover::store

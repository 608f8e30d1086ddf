#include "drover/model/schema.h"

#include <gtest/gtest.h>

#include <string>

namespace drover::model {
namespace {

TableSchema telemetry() {
  TableSchema schema;
  schema.name = "telemetry";
  schema.key = {{"vehicleId", KeyType::kString}, KeyAttribute{"recordedAt", KeyType::kString}};
  IndexSchema depot;
  depot.name = "depot";
  depot.key = {{"depotCode", KeyType::kString}, KeyAttribute{"recordedAt", KeyType::kString}};
  schema.indexes.push_back(depot);
  schema.time_sort_key = TimeSortKey{};
  schema.inherit = {"depotCode"};
  return schema;
}

IndexSchema local_index(std::string name, std::string sort_key) {
  IndexSchema index;
  index.name = std::move(name);
  index.local = true;
  index.key = {{"vehicleId", KeyType::kString}, KeyAttribute{std::move(sort_key), KeyType::kNumber}};
  return index;
}

std::string refusal(const TableSchema& schema) {
  const Status status = validate(schema);
  EXPECT_TRUE(status.ok() || status.code() == StatusCode::kInvalid);
  return status.message();
}

constexpr const char* kWrong = "One or more parameter values were invalid: ";

TEST(TableSchema, TheTelemetryTableIsValid) {
  EXPECT_TRUE(validate(telemetry()).ok()) << refusal(telemetry());
}

TEST(TableSchema, FindsIndexesByName) {
  const TableSchema schema = telemetry();
  EXPECT_EQ(schema.find_index("depot"), &schema.indexes[0]);
  EXPECT_EQ(schema.find_index("Depot"), nullptr);
}

TEST(TableSchema, NamesHaveDynamoDbsLengthAndLetters) {
  TableSchema schema = telemetry();
  schema.name = "ab";
  EXPECT_EQ(refusal(schema), "TableName must be at least 3 characters long and at most 255 characters long");
  schema.name = std::string(256, 'a');
  EXPECT_EQ(refusal(schema), "TableName must be at least 3 characters long and at most 255 characters long");
  schema.name = "a b";
  EXPECT_EQ(refusal(schema),
            "1 validation error detected: Value 'a b' at 'tableName' failed to satisfy constraint: Member must satisfy "
            "regular expression pattern: [a-zA-Z0-9_.-]+");
  schema.name = "Fleet_1.telemetry-EU";
  EXPECT_EQ(refusal(schema), "");
  schema.indexes[0].name = "d";
  EXPECT_EQ(refusal(schema), "IndexName must be at least 3 characters long and at most 255 characters long");
}

TEST(TableSchema, KeyAttributesDifferAndKeepOneType) {
  TableSchema schema = telemetry();
  schema.key.sort_key->name = "vehicleId";
  EXPECT_EQ(refusal(schema), "Both the Hash Key and the Range Key element in the KeySchema have the same name");
  schema = telemetry();
  schema.indexes[0].key.sort_key->type = KeyType::kNumber;
  EXPECT_EQ(refusal(schema), std::string(kWrong) + "Key attribute recordedAt is used with two types");
  schema = telemetry();
  schema.key.partition_key.name = std::string(256, 'k');
  EXPECT_EQ(refusal(schema), std::string(kWrong) + "The name of a key attribute must be 1 to 255 bytes long");
}

TEST(TableSchema, LocalIndexesShareThePartitionKeyAndHaveASortKey) {
  TableSchema schema = telemetry();
  schema.indexes.push_back(local_index("bySpeed", "speedKph"));
  EXPECT_EQ(refusal(schema), "");

  TableSchema other = schema;
  other.indexes[1].key.partition_key.name = "depotCode";
  EXPECT_EQ(refusal(other),
            std::string(kWrong) +
                "Index KeySchema does not have the same leading hash key as table KeySchema for index: bySpeed. index "
                "hash key: depotCode, table hash key: vehicleId");
  other = schema;
  other.indexes[1].key.sort_key.reset();
  EXPECT_EQ(refusal(other), std::string(kWrong) + "Index KeySchema does not have a range key for index: bySpeed");
  other = schema;
  other.key.sort_key.reset();
  EXPECT_EQ(refusal(other),
            std::string(kWrong) +
                "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex");
}

TEST(TableSchema, IndexNamesAreUniqueAcrossLocalAndGlobalOnes) {
  TableSchema schema = telemetry();
  schema.indexes.push_back(local_index("depot", "speedKph"));
  EXPECT_EQ(refusal(schema), std::string(kWrong) + "Duplicate index name: depot");
}

TEST(TableSchema, IndexesAreBounded) {
  TableSchema schema = telemetry();
  while (schema.indexes.size() < 20) {
    schema.indexes.push_back(schema.indexes[0]);
    schema.indexes.back().name += std::to_string(schema.indexes.size());
  }
  EXPECT_EQ(refusal(schema), "");
  TableSchema too_many = schema;
  too_many.indexes.push_back(schema.indexes[0]);
  too_many.indexes.back().name = "oneMore";
  EXPECT_EQ(refusal(too_many), std::string(kWrong) + "GlobalSecondaryIndex count exceeds the per-table limit of 20");
  for (int i = 0; i < 5; ++i) schema.indexes.push_back(local_index("local" + std::to_string(i), "speedKph"));
  EXPECT_EQ(refusal(schema), "");
  schema.indexes.push_back(local_index("local5", "speedKph"));
  EXPECT_EQ(refusal(schema), std::string(kWrong) + "LocalSecondaryIndex count exceeds the per-table limit of 5");
}

TEST(TableSchema, IncludedAttributesGoWithIncludeOnly) {
  TableSchema schema = telemetry();
  schema.indexes[0].projection = ProjectionType::kInclude;
  EXPECT_EQ(refusal(schema), std::string(kWrong) + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified");
  schema.indexes[0].included = {"speedKph"};
  EXPECT_EQ(refusal(schema), "");
  schema.indexes[0].projection = ProjectionType::kKeysOnly;
  EXPECT_EQ(refusal(schema), std::string(kWrong) + "ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified");
  schema.indexes[0].projection = ProjectionType::kAll;
  EXPECT_EQ(refusal(schema), std::string(kWrong) + "ProjectionType is ALL, but NonKeyAttributes is specified");
}

TEST(TableSchema, TimeSortKeysAndInheritanceNeedAStringSortKey) {
  TableSchema schema = telemetry();
  schema.indexes.clear();
  schema.key.sort_key->type = KeyType::kNumber;
  EXPECT_EQ(refusal(schema), "Table telemetry: a time sort key needs a sort key of type S");
  schema.time_sort_key.reset();
  EXPECT_EQ(refusal(schema), "Table telemetry: inherit needs a sort key of type S");
  schema.inherit.clear();
  EXPECT_EQ(refusal(schema), "");
}

TEST(TableSchema, KeysAreNotInherited) {
  TableSchema schema = telemetry();
  schema.inherit = {"depotCode", "recordedAt"};
  EXPECT_EQ(refusal(schema), "Table telemetry: inherit can't name the key attribute 'recordedAt'");
}

}  // namespace
}  // namespace drover::model

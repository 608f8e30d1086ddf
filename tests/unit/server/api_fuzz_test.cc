#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "mutation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace drover::server::test {
namespace {

// See api_fuzz.cc; the fuzzer's entry aborts where something is wrong.
TEST(ApiFuzz, MutatedRequestsAreAnsweredOrRefused) {
  // A request's first byte is its operation, from '0' for Query to '<' for UpdateTable.
  const std::vector<std::string> requests = {
      R"json(0{"TableName":"fuzzed","KeyConditionExpression":"pk = :p AND sk BETWEEN :a AND :b","Limit":3,"ExpressionAttributeValues":{":p":{"S":"p"},":a":{"S":"a"},":b":{"S":"z"}},"ReturnConsumedCapacity":"INDEXES"})json",
      R"json(0{"TableName":"fuzzed","IndexName":"by-speed","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"p"}},"ScanIndexForward":false,"ExclusiveStartKey":{"pk":{"S":"p"},"sk":{"S":"s"},"speed":{"N":"3"}}})json",
      R"json(0{"TableName":"fuzzed","IndexName":"by-depot","KeyConditions":{"depot":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"D"}]}},"QueryFilter":{"x":{"ComparisonOperator":"NOT_NULL"}}})json",
      R"json(1{"TableName":"fuzzed","Key":{"pk":{"S":"p"},"sk":{"S":"s"}},"ProjectionExpression":"x.y[0],#n","ExpressionAttributeNames":{"#n":"name"}})json",
      R"json(2{"TableName":"fuzzed","Item":{"pk":{"S":"p"},"sk":{"S":"s"},"depot":{"S":"D"},"speed":{"N":"61.5"},"x":{"M":{"y":{"L":[{"NS":["1","2"]},{"B":"AAE="}]}}}},"ConditionExpression":"attribute_not_exists(z)","ReturnValues":"ALL_OLD"})json",
      R"json(3{"TableName":"fuzzed","Key":{"pk":{"S":"p"},"sk":{"S":"s"}},"UpdateExpression":"SET speed = if_not_exists(speed, :n) + :n REMOVE x.y[0] ADD tags :t","ExpressionAttributeValues":{":n":{"N":"1"},":t":{"SS":["a","b"]}},"ReturnValues":"UPDATED_NEW"})json",
      R"json(3{"TableName":"fuzzed","Key":{"pk":{"S":"p"},"sk":{"S":"s"}},"AttributeUpdates":{"n":{"Action":"ADD","Value":{"N":"1"}}},"Expected":{"x":{"Exists":false}}})json",
      R"json(4{"TableName":"fuzzed","Key":{"pk":{"S":"p"},"sk":{"S":"s"}},"ReturnConsumedCapacity":"TOTAL"})json",
      R"json(5{"RequestItems":{"fuzzed":{"Keys":[{"pk":{"S":"p"},"sk":{"S":"s"}},{"pk":{"S":"q"},"sk":{"S":"s"}}],"AttributesToGet":["x"]}}})json",
      R"json(6{"TableName":"fuzzed","TotalSegments":4,"Segment":1,"FilterExpression":"size(x) > :n OR pk = :p","ExpressionAttributeValues":{":n":{"N":"0"},":p":{"S":"p"}}})json",
      R"json(7{"RequestItems":{"fuzzed":[{"PutRequest":{"Item":{"pk":{"S":"q"},"sk":{"S":"s"},"depot":{"S":"D"},"speed":{"N":"1"}}}},{"DeleteRequest":{"Key":{"pk":{"S":"p"},"sk":{"S":"s"}}}}]}})json",
      R"json(8{"TableName":"another","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"a","AttributeType":"B"}],"KeySchema":[{"AttributeName":"a","KeyType":"HASH"}]})json",
      R"json(9{"TableName":"another"})json",
      R"json(:{"TableName":"fuzzed"})json",
      R"json(;{"Limit":2,"ExclusiveStartTableName":"aaa"})json",
      R"json(<{"TableName":"fuzzed","AttributeDefinitions":[{"AttributeName":"driver","AttributeType":"S"}],"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"by-driver","KeySchema":[{"AttributeName":"driver","KeyType":"HASH"}],"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["x"]}}}]})json",
      R"json(<{"TableName":"fuzzed","GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"by-driver"}}]})json"};
  const std::vector<std::string> pieces = {"{",
                                           "}",
                                           "[",
                                           "]",
                                           ",",
                                           ":",
                                           "\"",
                                           "null",
                                           "true",
                                           "0",
                                           "-1",
                                           "1e400",
                                           "\"S\":",
                                           "{\"N\":\"1\"}",
                                           "{\"S\":\"\"}",
                                           "{\"L\":[]}",
                                           "\"pk\"",
                                           "\"speed\"",
                                           ":n",
                                           ":p",
                                           "\\u0000",
                                           "\\ud800",
                                           "\xff",
                                           " AND ",
                                           "(",
                                           ")",
                                           "#n",
                                           "\"TableName\":\"fuzzed\","};
  std::mt19937 random(7741);
  for (int i = 0; i < 20'000; ++i) {
    const std::string input = mutate(requests[random() % requests.size()], pieces, random);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  }
}

}  // namespace
}  // namespace drover::server::test

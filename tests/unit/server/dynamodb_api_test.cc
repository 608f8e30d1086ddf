#include "dynamodb/api.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/json.hpp>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "drover/model/schema.h"
#include "drover/store/store.h"

namespace drover::server {
namespace {

namespace json = boost::json;

struct Answer {
  unsigned status = 0;
  json::value body;
  std::string text;
  std::string headers;

  const json::value& at(std::string_view pointer) const { return body.at_pointer(pointer); }
  bool has(std::string_view pointer) const {
    json::error_code error;
    return body.find_pointer(pointer, error) != nullptr;
  }
  std::string type() const {
    const std::string full(at("/__type").as_string());
    return full.substr(full.find('#') + 1);
  }
  std::string message() const { return std::string(at(has("/message") ? "/message" : "/Message").as_string()); }
};

// An API over a store of its own, called without HTTP.
class DynamoDbApiTest : public testing::Test {
 protected:
  Answer send(const HttpRequest& request) {
    std::promise<HttpResponse> promise;
    api_->handle(request, [&](HttpResponse&& response) { promise.set_value(std::move(response)); });
    HttpResponse response = promise.get_future().get();
    Answer answer{response.status, {}, response.body, response.extra_headers};
    json::error_code error;
    answer.body = json::parse(response.body, error);
    return answer;
  }

  Answer call(std::string_view operation, std::string_view body) {
    const std::string target = "DynamoDB_20120810." + std::string(operation);
    HttpRequest request;
    request.method = "POST";
    request.target = "/";
    request.body = body;
    request.content_type = "application/x-amz-json-1.0";
    request.amz_target = target;
    return send(request);
  }
  // JSON with ' for ", which no test needs otherwise.
  static std::string quoted(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
      if (c == '\'') c = '"';
    }
    return out;
  }
  Answer ok(std::string_view operation, std::string_view body) {
    Answer answer = call(operation, quoted(body));
    EXPECT_EQ(answer.status, 200u) << operation << ' ' << body << "\n" << answer.text;
    return answer;
  }
  Answer fails(std::string_view operation, std::string_view body, std::string_view type) {
    Answer answer = call(operation, quoted(body));
    EXPECT_EQ(answer.status, 400u) << operation << ' ' << body << "\n" << answer.text;
    if (answer.status == 400) {
      EXPECT_EQ(answer.type(), type) << operation << ' ' << body << "\n" << answer.text;
    }
    return answer;
  }
  std::string invalid(std::string_view operation, std::string_view body) {
    const Answer answer = fails(operation, body, "ValidationException");
    return answer.status == 400 ? answer.message() : "";
  }

  void create_readings() {
    ok("CreateTable", R"({'TableName':'readings','BillingMode':'PAY_PER_REQUEST',
       'AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'},{'AttributeName':'sk','AttributeType':'S'},
                               {'AttributeName':'depot','AttributeType':'S'},{'AttributeName':'speed','AttributeType':'N'}],
       'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'},{'AttributeName':'sk','KeyType':'RANGE'}],
       'GlobalSecondaryIndexes':[
         {'IndexName':'by-depot','KeySchema':[{'AttributeName':'depot','KeyType':'HASH'},{'AttributeName':'speed','KeyType':'RANGE'}],
          'Projection':{'ProjectionType':'ALL'}},
         {'IndexName':'depot-keys','KeySchema':[{'AttributeName':'depot','KeyType':'HASH'}],
          'Projection':{'ProjectionType':'INCLUDE','NonKeyAttributes':['note']}}],
       'LocalSecondaryIndexes':[
         {'IndexName':'by-speed','KeySchema':[{'AttributeName':'pk','KeyType':'HASH'},{'AttributeName':'speed','KeyType':'RANGE'}],
          'Projection':{'ProjectionType':'KEYS_ONLY'}}]})");
  }
  void put(const std::string& pk, const std::string& sk, const std::string& more = "") {
    ok("PutItem", "{'TableName':'readings','Item':{'pk':{'S':'" + pk + "'},'sk':{'S':'" + sk + "'}" +
                      (more.empty() ? "" : "," + more) + "}}");
  }
  static std::vector<std::string> sort_keys(const Answer& answer) {
    std::vector<std::string> out;
    for (const json::value& item : answer.at("/Items").as_array()) {
      out.emplace_back(item.at_pointer("/sk/S").as_string());
    }
    return out;
  }
  std::vector<std::string> query(const std::string& more) {
    return sort_keys(ok("Query", "{'TableName':'readings'," + more + "}"));
  }
  std::string item(const std::string& pk, const std::string& sk) {
    return ok("GetItem", "{'TableName':'readings','Key':{'pk':{'S':'" + pk + "'},'sk':{'S':'" + sk + "'}}}").text;
  }

  std::unique_ptr<store::Store> store_ = store::Store::open({.workers = 2});
  std::unique_ptr<DynamoDbApi> api_ = DynamoDbApi::make(*store_);
};

using Keys = std::vector<std::string>;

// --- protocol

using Protocol = DynamoDbApiTest;

TEST_F(Protocol, GetAnswersHealthyWithTheHost) {
  HttpRequest request;
  request.method = "GET";
  request.target = "/";
  request.host = "127.0.0.1:8000";
  EXPECT_EQ(send(request).text, "healthy: 127.0.0.1:8000");
}

TEST_F(Protocol, EveryAnswerCarriesARequestIdOf52LettersAndDigits) {
  std::set<std::string> ids;
  for (const char* body : {"{}", "nonsense", "{'Limit':0}"}) {
    const Answer answer = call("ListTables", quoted(body));
    ASSERT_TRUE(answer.headers.starts_with("x-amzn-RequestId: ")) << answer.headers;
    const std::string id = answer.headers.substr(18);
    ASSERT_EQ(id.size(), 54u);
    EXPECT_EQ(id.substr(52), "\r\n");
    EXPECT_EQ(id.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"), 52u);
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 3u);
}

TEST_F(Protocol, UnknownOperationsAndContentTypesAreRefused) {
  EXPECT_EQ(call("MakeCoffee", "{}").type(), "UnknownOperationException");
  HttpRequest request;
  request.method = "POST";
  request.body = "{}";
  request.amz_target = "DynamoDB_20120810.ListTables";
  for (const char* type : {"text/plain", "", "application/xml"}) {
    request.content_type = type;
    EXPECT_EQ(send(request).type(), "UnknownOperationException") << type;
  }
  for (const char* type :
       {"application/x-amz-json-1.0", "application/x-amz-json-1.1; charset=utf-8", "application/json"}) {
    request.content_type = type;
    EXPECT_EQ(send(request).status, 200u) << type;
  }
  request.amz_target = "ListTables";
  EXPECT_EQ(send(request).type(), "UnknownOperationException");
}

TEST_F(Protocol, ABodyThatIsNoJsonObjectIsASerializationException) {
  for (const char* body : {"", "null", "[]", "\"\"", "1", "{", "{\"TableName\":}", "{}x", "{\"a\":\"\\ud800\"}",
                           "{\"a\":\"\xff\"}", "\xef\xbb\xbf{}", "{'a':1}", "nul"}) {
    EXPECT_EQ(call("Query", body).type(), "SerializationException") << body;
  }
  EXPECT_EQ(call("Query", std::string(100'000, '[')).type(), "SerializationException");
}

TEST_F(Protocol, WrongShapesAtAnyDepthAreClientErrors) {
  create_readings();
  const char* shapes[] = {"null", "[]",     "{}",         "''",  "1",   "1.5",
                          "true", "[null]", "{'a':null}", "'x'", "[1]", "{'a':{}}"};
  const char* operations[] = {"CreateTable", "DeleteTable", "DescribeTable",    "ListTables",        "PutItem",
                              "GetItem",     "DeleteItem",  "UpdateItem",       "BatchGetItem",      "BatchWriteItem",
                              "Query",       "Scan",        "UpdateTimeToLive", "DescribeTimeToLive"};
  const char* members[] = {"TableName",
                           "Item",
                           "Key",
                           "RequestItems",
                           "KeySchema",
                           "AttributeDefinitions",
                           "Limit",
                           "Select",
                           "ExclusiveStartKey",
                           "ExpressionAttributeNames",
                           "ExpressionAttributeValues",
                           "KeyConditionExpression",
                           "FilterExpression",
                           "ProjectionExpression",
                           "ConditionExpression",
                           "UpdateExpression",
                           "KeyConditions",
                           "QueryFilter",
                           "ScanFilter",
                           "Expected",
                           "AttributesToGet",
                           "AttributeUpdates",
                           "ConditionalOperator",
                           "ConsistentRead",
                           "ScanIndexForward",
                           "IndexName",
                           "Segment",
                           "TotalSegments",
                           "ReturnValues",
                           "ReturnConsumedCapacity",
                           "BillingMode",
                           "ProvisionedThroughput",
                           "LocalSecondaryIndexes",
                           "GlobalSecondaryIndexes",
                           "ExclusiveStartTableName",
                           "TimeToLiveSpecification",
                           "ReturnValuesOnConditionCheckFailure"};
  for (const char* operation : operations) {
    for (const char* member : members) {
      for (const char* shape : shapes) {
        std::string body = std::string("{'") + member + "':" + shape;
        if (std::string_view(member) != "TableName") body += ",'TableName':'no-table'";
        const Answer answer = call(operation, quoted(body + "}"));
        EXPECT_TRUE(answer.status == 400 || answer.status == 200) << operation << body << answer.text;
        EXPECT_TRUE(answer.body.is_object());
      }
    }
  }
}

TEST_F(Protocol, ConstraintsAreReportedTogether) {
  EXPECT_EQ(
      invalid("Query", "{'TableName':'a;','Limit':0,'Select':'SOME'}"),
      "4 validation errors detected: Value 'a;' at 'tableName' failed to satisfy constraint: Member must satisfy "
      "regular expression pattern: [a-zA-Z0-9_.-]+; Value 'a;' at 'tableName' failed to satisfy constraint: Member "
      "must have length greater than or equal to 3; Value '0' at 'limit' failed to satisfy constraint: Member must "
      "have value greater than or equal to 1; Value 'SOME' at 'select' failed to satisfy constraint: Member must "
      "satisfy enum value set: [SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]");
  EXPECT_EQ(
      invalid("GetItem", "{}"),
      "2 validation errors detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null; "
      "Value null at 'key' failed to satisfy constraint: Member must not be null");
}

TEST_F(Protocol, OperationsAreCounted) {
  create_readings();
  put("a", "1");
  invalid("PutItem", "{}");
  for (const metrics::OperationStats& stats : api_->stats().operations) {
    if (stats.operation != "PutItem") continue;
    EXPECT_EQ(stats.ok, 1u);
    EXPECT_EQ(stats.client_errors, 1u);
    std::uint64_t timed = 0;
    for (const std::uint64_t count : stats.by_duration) timed += count;
    EXPECT_EQ(timed, 2u);
    EXPECT_GT(stats.duration_seconds_sum, 0);
    return;
  }
  FAIL() << "PutItem is not among the operations";
}

// --- tables

using Tables = DynamoDbApiTest;

TEST_F(Tables, TimeToLiveIsOffUntilAnAttributeIsNamedAndThenDescribed) {
  create_readings();
  EXPECT_EQ(ok("DescribeTimeToLive", "{'TableName':'readings'}").text,
            quoted("{'TimeToLiveDescription':{'TimeToLiveStatus':'DISABLED'}}"));
  EXPECT_EQ(ok("UpdateTimeToLive",
               "{'TableName':'readings','TimeToLiveSpecification':{'Enabled':true,'AttributeName':'until'}}")
                .text,
            quoted("{'TimeToLiveSpecification':{'Enabled':true,'AttributeName':'until'}}"));
  EXPECT_EQ(ok("DescribeTimeToLive", "{'TableName':'readings'}").text,
            quoted("{'TimeToLiveDescription':{'TimeToLiveStatus':'ENABLED','AttributeName':'until'}}"));
  EXPECT_EQ(ok("UpdateTimeToLive",
               "{'TableName':'readings','TimeToLiveSpecification':{'Enabled':false,'AttributeName':'until'}}")
                .text,
            quoted("{'TimeToLiveSpecification':{'Enabled':false,'AttributeName':'until'}}"));
  EXPECT_EQ(ok("DescribeTimeToLive", "{'TableName':'readings'}").text,
            quoted("{'TimeToLiveDescription':{'TimeToLiveStatus':'DISABLED'}}"));
}

TEST_F(Tables, TimeToLiveIsRefusedWhereItChangesNothingOrAnotherAttributeHasIt) {
  create_readings();
  const auto update = [&](const std::string& enabled, const std::string& attribute) {
    return invalid("UpdateTimeToLive", "{'TableName':'readings','TimeToLiveSpecification':{'Enabled':" + enabled +
                                           ",'AttributeName':'" + attribute + "'}}");
  };
  EXPECT_EQ(update("false", "until"), "TimeToLive is already disabled");
  ok("UpdateTimeToLive", "{'TableName':'readings','TimeToLiveSpecification':{'Enabled':true,'AttributeName':'until'}}");
  EXPECT_EQ(update("true", "until"), "TimeToLive is already enabled");
  const std::string other = "TimeToLive is active on a different AttributeName: current AttributeName is until";
  EXPECT_EQ(update("true", "ttl"), other);
  EXPECT_EQ(update("false", "ttl"), other);
}

TEST_F(Tables, TimeToLiveNeedsATableAndAWholeSpecification) {
  const std::string missing = " failed to satisfy constraint: Member must not be null";
  EXPECT_EQ(invalid("UpdateTimeToLive", "{'TableName':'readings'}"),
            "1 validation error detected: Value null at 'timeToLiveSpecification'" + missing);
  EXPECT_EQ(invalid("UpdateTimeToLive", "{'TableName':'readings','TimeToLiveSpecification':{}}"),
            "2 validation errors detected: Value null at 'timeToLiveSpecification.attributeName'" + missing +
                "; Value null at 'timeToLiveSpecification.enabled'" + missing);
  EXPECT_EQ(
      invalid("UpdateTimeToLive",
              "{'TableName':'readings','TimeToLiveSpecification':{'Enabled':true,'AttributeName':''}}"),
      "1 validation error detected: Value '' at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: "
      "Member must have length greater than or equal to 1");
  fails("UpdateTimeToLive", "{'TableName':'nowhere','TimeToLiveSpecification':{'Enabled':true,'AttributeName':'a'}}",
        "ResourceNotFoundException");
  fails("DescribeTimeToLive", "{'TableName':'nowhere'}", "ResourceNotFoundException");
}

TEST_F(Tables, CreateDescribeListDelete) {
  create_readings();
  const Answer described = ok("DescribeTable", "{'TableName':'readings'}");
  EXPECT_EQ(described.at("/Table/TableStatus").as_string(), "ACTIVE");
  EXPECT_EQ(described.at("/Table/KeySchema/1/AttributeName").as_string(), "sk");
  EXPECT_EQ(described.at("/Table/AttributeDefinitions").as_array().size(), 4u);
  EXPECT_EQ(described.at("/Table/GlobalSecondaryIndexes/1/Projection/NonKeyAttributes/0").as_string(), "note");
  EXPECT_EQ(described.at("/Table/LocalSecondaryIndexes/0/Projection/ProjectionType").as_string(), "KEYS_ONLY");
  EXPECT_EQ(fails("CreateTable", R"({'TableName':'readings','BillingMode':'PAY_PER_REQUEST',
      'AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'}],
      'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}]})",
                  "ResourceInUseException")
                .message(),
            "Table already exists: readings");
  EXPECT_EQ(ok("DeleteTable", "{'TableName':'readings'}").at("/TableDescription/TableStatus").as_string(), "DELETING");
  EXPECT_EQ(fails("DescribeTable", "{'TableName':'readings'}", "ResourceNotFoundException").message(),
            "Requested resource not found: Table: readings not found");
  EXPECT_EQ(fails("Scan", "{'TableName':'readings'}", "ResourceNotFoundException").message(),
            "Requested resource not found");
}

TEST_F(Tables, ListPages) {
  for (const char* name : {"ccc", "aaa", "bbb"}) {
    ok("CreateTable", std::string("{'TableName':'") + name + R"(','BillingMode':'PAY_PER_REQUEST',
       'AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'}],'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}]})");
  }
  EXPECT_EQ(ok("ListTables", "{'Limit':2}").text,
            quoted("{'TableNames':['aaa','bbb'],'LastEvaluatedTableName':'bbb'}"));
  EXPECT_EQ(ok("ListTables", "{'ExclusiveStartTableName':'bbb'}").text, quoted("{'TableNames':['ccc']}"));
  EXPECT_EQ(ok("ListTables", "{'Limit':3}").text, quoted("{'TableNames':['aaa','bbb','ccc']}"));
  invalid("ListTables", "{'Limit':101}");
}

TEST_F(Tables, DefinitionsMustFitTheKeys) {
  const auto create = [&](const std::string& definitions, const std::string& keys, const std::string& more = "") {
    return invalid("CreateTable", "{'TableName':'ttt','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':[" +
                                      definitions + "],'KeySchema':[" + keys + "]" + more + "}");
  };
  const std::string a = "{'AttributeName':'a','AttributeType':'S'}";
  const std::string b = "{'AttributeName':'b','AttributeType':'S'}";
  const std::string hash_a = "{'AttributeName':'a','KeyType':'HASH'}";
  const std::string range_b = "{'AttributeName':'b','KeyType':'RANGE'}";
  EXPECT_EQ(
      create(a + "," + b, hash_a),
      "One or more parameter values were invalid: Number of attributes in KeySchema does not exactly match number of "
      "attributes defined in AttributeDefinitions");
  EXPECT_EQ(create(a, hash_a + "," + range_b), "Invalid KeySchema: Some index key attribute have no definition");
  EXPECT_EQ(
      create(a, range_b),
      "One or more parameter values were invalid: Some index key attributes are not defined in AttributeDefinitions. "
      "Keys: [b], AttributeDefinitions: [a]");
  EXPECT_EQ(create(a + "," + b, range_b + "," + hash_a),
            "Invalid KeySchema: The first KeySchemaElement is not a HASH key type");
  EXPECT_EQ(create(a + "," + b, hash_a + ",{'AttributeName':'a','KeyType':'RANGE'}"),
            "Both the Hash Key and the Range Key element in the KeySchema have the same name");
  EXPECT_NE(create(a + "," + a, hash_a), "");
  const std::string index = "{'IndexName':'iii','KeySchema':[" + hash_a + "],'Projection':{'ProjectionType':'ALL'}}";
  EXPECT_EQ(create(a, hash_a, ",'GlobalSecondaryIndexes':[]"),
            "One or more parameter values were invalid: List of GlobalSecondaryIndexes is empty");
  EXPECT_EQ(create(a, hash_a, ",'GlobalSecondaryIndexes':[" + index + "," + index + "]"),
            "One or more parameter values were invalid: Duplicate index name: iii");
  EXPECT_EQ(
      create(a, hash_a, ",'LocalSecondaryIndexes':[" + index + "]"),
      "One or more parameter values were invalid: Table KeySchema does not have a range key, which is required when "
      "specifying a LocalSecondaryIndex");
  EXPECT_NE(create(a + "," + b, hash_a, ",'GlobalSecondaryIndexes':[" + index + "]"), "");
}

// --- items

using Items = DynamoDbApiTest;

TEST_F(Items, EveryTypeComesBackInCanonicalForm) {
  create_readings();
  put("a", "1", R"('n':{'N':'+1.50e1'},'b':{'B':'AAEC/w=='},'bool':{'BOOL':false},
      'null':{'NULL':true},'ss':{'SS':['b','a']},'ns':{'NS':['10','9.0']},'bs':{'BS':['Ag==','AQ==']},
      'l':{'L':[{'S':''},{'L':[]},{'M':{}}]},'m':{'M':{'k':{'N':'-0'}}},'empty':{'S':''},'big':{'N':'1e125'})");
  const Answer answer = ok("GetItem", "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}}}");
  EXPECT_EQ(answer.at("/Item/n/N").as_string(), "15");
  EXPECT_EQ(answer.at("/Item/b/B").as_string(), "AAEC/w==");
  EXPECT_EQ(answer.at("/Item/bool/BOOL").as_bool(), false);
  EXPECT_EQ(answer.at("/Item/null/NULL").as_bool(), true);
  EXPECT_EQ(json::serialize(answer.at("/Item/ss/SS")), R"(["a","b"])");
  EXPECT_EQ(json::serialize(answer.at("/Item/ns/NS")), R"(["9","10"])");
  EXPECT_EQ(json::serialize(answer.at("/Item/bs/BS")), R"(["AQ==","Ag=="])");
  EXPECT_EQ(json::serialize(answer.at("/Item/l/L")), R"([{"S":""},{"L":[]},{"M":{}}])");
  EXPECT_EQ(answer.at("/Item/m/M/k/N").as_string(), "0");
  EXPECT_EQ(answer.at("/Item/big/N").as_string().size(), 126u);
  EXPECT_EQ(answer.at("/Item/empty/S").as_string(), "");
}

TEST_F(Items, StringsAreEscapedAsJson) {
  create_readings();
  const std::string body =
      R"({"TableName":"readings","Item":{"pk":{"S":"a"},"sk":{"S":"1"},"s":{"S":"q\"b\\n\nc\u0001\u007f\u00e9"}}})";
  ASSERT_EQ(call("PutItem", body).status, 200u);
  const Answer answer = ok("GetItem", "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}}}");
  EXPECT_EQ(answer.at("/Item/s/S").as_string(), "q\"b\\n\nc\x01\x7f\xc3\xa9");
}

TEST_F(Items, WrongValuesAreRefused) {
  create_readings();
  const auto refused = [&](const std::string& value, std::string_view type, std::string_view message) {
    const Answer answer =
        fails("PutItem", "{'TableName':'readings','Item':{'pk':{'S':'a'},'sk':{'S':'1'},'x':" + value + "}}", type);
    if (answer.status == 400) {
      EXPECT_EQ(answer.message(), message) << value;
    }
  };
  const std::string empty = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes";
  refused("{'N':3}", "SerializationException", "NUMBER_VALUE cannot be converted to String");
  refused("{'S':true}", "SerializationException", "TRUE_VALUE cannot be converted to String");
  refused("{'S':[]}", "SerializationException", "Unrecognized collection type class java.lang.String");
  refused("{'B':'AAE'}", "SerializationException",
          "Base64 encoded length is expected a multiple of 4 bytes but found: 3");
  refused("{'B':'AAF='}", "SerializationException", "Invalid last non-pad Base64 character dectected");
  refused("{'L':{}}", "SerializationException", "Start of structure or map found where not expected");
  refused("'x'", "SerializationException", "Unexpected value type in payload");
  refused("{}", "ValidationException", empty);
  refused("null", "ValidationException", empty);
  refused("{'Q':'x'}", "ValidationException", empty);
  refused(
      "{'S':'a','N':'1'}", "ValidationException",
      "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes");
  refused("{'SS':[]}", "ValidationException",
          "One or more parameter values were invalid: An string set  may not be empty");
  refused("{'SS':['a','a']}", "ValidationException",
          "One or more parameter values were invalid: Input collection [a, a] contains duplicates.");
  refused("{'NS':['1','1.0']}", "ValidationException", "Input collection contains duplicates");
  refused("{'NULL':false}", "ValidationException",
          "One or more parameter values were invalid: Null attribute value types must have the value of true");
  refused("{'N':'1e126'}", "ValidationException",
          "Number overflow. Attempting to store a number with magnitude larger than supported range");
  refused("{'N':' 1'}", "ValidationException", "The parameter cannot be converted to a numeric value:  1");
}

TEST_F(Items, DocumentsNest32LevelsDeep) {
  create_readings();
  std::string value = "{'S':'x'}";
  for (int i = 0; i < 32; ++i) value = "{'L':[" + value + "]}";
  put("a", "1", "'x':" + value);
  const std::string deeper = "{'M':{'k':" + value + "}}";
  EXPECT_EQ(invalid("PutItem", "{'TableName':'readings','Item':{'pk':{'S':'a'},'sk':{'S':'1'},'x':" + deeper + "}}"),
            "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported "
            "limit");
  ok("UpdateItem",
     "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'2'}},'UpdateExpression':'SET m=:m',"
     "'ExpressionAttributeValues':{':m':{'M':{}}}}");
  invalid("UpdateItem",
          "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'2'}},'UpdateExpression':'SET m.x=:x',"
          "'ExpressionAttributeValues':{':x':" +
              value + "}}");
}

TEST_F(Items, KeysMustSuitTheSchema) {
  create_readings();
  EXPECT_EQ(invalid("PutItem", "{'TableName':'readings','Item':{'pk':{'S':'a'}}}"),
            "One or more parameter values were invalid: Missing the key sk in the item");
  EXPECT_EQ(invalid("PutItem", "{'TableName':'readings','Item':{'pk':{'N':'1'},'sk':{'S':'1'}}}"),
            "One or more parameter values were invalid: Type mismatch for key pk expected: S actual: N");
  EXPECT_EQ(
      invalid("PutItem", "{'TableName':'readings','Item':{'pk':{'S':''},'sk':{'S':'1'}}}"),
      "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty "
      "string value. Key: pk");
  EXPECT_EQ(
      invalid("PutItem",
              "{'TableName':'readings','Item':{'pk':{'S':'" + std::string(2049, 'x') + "'},'sk':{'S':'1'}}}"),
      "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes");
  EXPECT_EQ(invalid("PutItem",
                    "{'TableName':'readings','Item':{'pk':{'S':'a'},'sk':{'S':'" + std::string(1025, 'x') + "'}}}"),
            "One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size limit "
            "of 1024 "
            "bytes");
  EXPECT_EQ(
      invalid("PutItem", "{'TableName':'readings','Item':{'pk':{'S':'a'},'sk':{'S':'1'},'depot':{'N':'1'}}}"),
      "One or more parameter values were invalid: Type mismatch for Index Key depot Expected: S Actual: N IndexName: "
      "by-depot");
  invalid("PutItem", "{'TableName':'readings','Item':{'pk':{'S':'a'},'sk':{'S':'1'},'depot':{'S':''}}}");
  for (const char* key :
       {"{'pk':{'S':'a'}}", "{'pk':{'S':'a'},'sk':{'N':'1'}}", "{'pk':{'S':'a'},'sk':{'S':'1'},'x':{'S':'1'}}", "{}",
        "{'pk':{'S':'a'},'other':{'S':'1'}}"}) {
    for (const char* operation : {"GetItem", "DeleteItem", "UpdateItem"}) {
      EXPECT_EQ(invalid(operation, std::string("{'TableName':'readings','Key':") + key + "}"),
                "The provided key element does not match the schema");
    }
  }
}

TEST_F(Items, AnItemIsAtMost400KilobytesLarge) {
  create_readings();
  const auto with = [&](std::size_t size) {
    return "{'TableName':'readings','Item':{'pk':{'S':'a'},'sk':{'S':'1'},'x':{'S':'" + std::string(size, 'x') + "'}}}";
  };
  const std::size_t fits = 400 * 1024 - std::string_view(
                                            "pk"
                                            "a"
                                            "sk"
                                            "1"
                                            "x")
                                            .size();
  ok("PutItem", with(fits));
  EXPECT_EQ(invalid("PutItem", with(fits + 1)), "Item size has exceeded the maximum allowed size");
  EXPECT_EQ(invalid("UpdateItem",
                    "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}},'UpdateExpression':"
                    "'SET y=:y','ExpressionAttributeValues':{':y':{'S':'y'}}}"),
            "Item size to update has exceeded the maximum allowed size");
}

TEST_F(Items, GetProjectsAndMissesQuietly) {
  create_readings();
  put("a", "1", "'m':{'M':{'x':{'N':'1'},'y':{'N':'2'}}},'n':{'N':'3'}");
  const std::string key = "'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}}";
  EXPECT_EQ(ok("GetItem", "{" + key + ",'ProjectionExpression':'m.x,#n','ExpressionAttributeNames':{'#n':'n'}}").text,
            quoted("{'Item':{'m':{'M':{'x':{'N':'1'}}},'n':{'N':'3'}}}"));
  EXPECT_EQ(ok("GetItem", "{" + key + ",'AttributesToGet':['n','zz']}").text, quoted("{'Item':{'n':{'N':'3'}}}"));
  EXPECT_EQ(ok("GetItem", "{" + key + ",'ProjectionExpression':'zz'}").text, quoted("{'Item':{}}"));
  EXPECT_EQ(item("a", "2"), "{}");
  EXPECT_EQ(item("b", "1"), "{}");
}

TEST_F(Items, PutReturnsTheOldItemAndReplacesAllOfIt) {
  create_readings();
  put("a", "1", "'x':{'N':'1'}");
  const Answer answer = ok("PutItem",
                           "{'TableName':'readings','Item':{'pk':{'S':'a'},'sk':{'S':'1'},'y':{'N':'2'}},"
                           "'ReturnValues':'ALL_OLD'}");
  EXPECT_EQ(answer.text, quoted("{'Attributes':{'pk':{'S':'a'},'sk':{'S':'1'},'x':{'N':'1'}}}"));
  EXPECT_EQ(item("a", "1"), quoted("{'Item':{'pk':{'S':'a'},'sk':{'S':'1'},'y':{'N':'2'}}}"));
  EXPECT_EQ(
      ok("PutItem", "{'TableName':'readings','Item':{'pk':{'S':'b'},'sk':{'S':'1'}},'ReturnValues':'ALL_OLD'}").text,
      "{}");
  EXPECT_EQ(
      invalid("PutItem", "{'TableName':'readings','Item':{'pk':{'S':'b'},'sk':{'S':'1'}},'ReturnValues':'ALL_NEW'}"),
      "ReturnValues can only be ALL_OLD or NONE");
}

TEST_F(Items, AFailedConditionChangesNothingAndCanReturnTheItem) {
  create_readings();
  put("a", "1", "'x':{'N':'1'}");
  const std::string condition = "'ConditionExpression':'x = :two','ExpressionAttributeValues':{':two':{'N':'2'}}";
  const Answer failed = fails("DeleteItem",
                              "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}}," + condition +
                                  ",'ReturnValuesOnConditionCheckFailure':'ALL_OLD'}",
                              "ConditionalCheckFailedException");
  EXPECT_EQ(failed.message(), "The conditional request failed");
  EXPECT_EQ(failed.at("/Item/x/N").as_string(), "1");
  EXPECT_FALSE(fails("PutItem", "{'TableName':'readings','Item':{'pk':{'S':'a'},'sk':{'S':'1'}}," + condition + "}",
                     "ConditionalCheckFailedException")
                   .has("/Item"));
  EXPECT_EQ(item("a", "1"), quoted("{'Item':{'pk':{'S':'a'},'sk':{'S':'1'},'x':{'N':'1'}}}"));
  ok("PutItem",
     "{'TableName':'readings','Item':{'pk':{'S':'n'},'sk':{'S':'1'}},'ConditionExpression':'attribute_not_exists(pk)'"
     "}");
  fails("PutItem",
        "{'TableName':'readings','Item':{'pk':{'S':'n'},'sk':{'S':'1'}},'ConditionExpression':'attribute_not_exists(pk)"
        "'}",
        "ConditionalCheckFailedException");
}

TEST_F(Items, DeleteIsQuietAboutWhatIsNotThere) {
  create_readings();
  put("a", "1", "'x':{'N':'1'}");
  const std::string erase = "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}},'ReturnValues':'ALL_OLD'}";
  EXPECT_EQ(ok("DeleteItem", erase).at("/Attributes/x/N").as_string(), "1");
  EXPECT_EQ(ok("DeleteItem", erase).text, "{}");
  EXPECT_EQ(item("a", "1"), "{}");
}

TEST_F(Items, UpdateReturnsWhatWasAskedFor) {
  create_readings();
  put("a", "1", "'x':{'N':'1'},'m':{'M':{'k':{'S':'old'},'z':{'S':'z'}}}");
  const auto update = [&](const std::string& expression, const std::string& returned) {
    return ok("UpdateItem", "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}},'UpdateExpression':'" +
                                expression + "','ExpressionAttributeValues':{':v':{'S':'new'}},'ReturnValues':'" +
                                returned + "'}")
        .text;
  };
  EXPECT_EQ(update("SET m.k = :v REMOVE x", "UPDATED_OLD"),
            quoted("{'Attributes':{'m':{'M':{'k':{'S':'old'}}},'x':{'N':'1'}}}"));
  EXPECT_EQ(update("SET m.k = :v, m.n = :v", "UPDATED_NEW"),
            quoted("{'Attributes':{'m':{'M':{'k':{'S':'new'},'n':{'S':'new'}}}}}"));
  EXPECT_EQ(update("SET y = :v REMOVE m", "ALL_NEW"),
            quoted("{'Attributes':{'pk':{'S':'a'},'sk':{'S':'1'},'y':{'S':'new'}}}"));
  EXPECT_EQ(update("SET y = :v", "NONE"), "{}");
  EXPECT_EQ(ok("UpdateItem",
               "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}},'UpdateExpression':'REMOVE y',"
               "'ReturnValues':'UPDATED_NEW'}")
                .text,
            "{}");
}

TEST_F(Items, UpdateCreatesUnlessItOnlyRemoves) {
  create_readings();
  ok("UpdateItem", "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}},'UpdateExpression':'REMOVE x'}");
  EXPECT_EQ(item("a", "1"), "{}");
  ok("UpdateItem", "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}}}");
  EXPECT_EQ(item("a", "1"), quoted("{'Item':{'pk':{'S':'a'},'sk':{'S':'1'}}}"));
}

TEST_F(Items, UpdateCannotChangeTheKey) {
  create_readings();
  EXPECT_EQ(invalid("UpdateItem",
                    "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}},'UpdateExpression':'SET sk = :v',"
                    "'ExpressionAttributeValues':{':v':{'S':'2'}}}"),
            "One or more parameter values were invalid: Cannot update attribute sk. This attribute is part of the key");
  invalid("UpdateItem",
          "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}},'UpdateExpression':'SET depot = :v',"
          "'ExpressionAttributeValues':{':v':{'N':'2'}}}");
}

TEST_F(Items, AnUpdateMustLeaveIndexKeysUsable) {
  create_readings();
  const auto update = [&](const std::string& value) {
    return invalid("UpdateItem",
                   "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}},'UpdateExpression':'SET depot = :v',"
                   "'ExpressionAttributeValues':{':v':" +
                       value + "}}");
  };
  EXPECT_EQ(update("{'N':'2'}"),
            "The update expression attempted to update the secondary index key to unsupported type");
  EXPECT_EQ(
      update("{'S':''}"),
      "One or more parameter values are not valid. The update expression attempted to update a secondary index key to "
      "a "
      "value that is not supported. The AttributeValue for a key attribute cannot contain an empty string value.");
}

TEST_F(Items, PathsCannotLeadIntoKeys) {
  create_readings();
  const std::string problem =
      "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: ";
  const std::string key = "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}}";
  EXPECT_EQ(invalid("GetItem", key + ",'ProjectionExpression':'pk.x'}"), problem + "Key: pk");
  EXPECT_EQ(invalid("UpdateItem", key + ",'UpdateExpression':'REMOVE depot[0]'}"), problem + "IndexKey: depot");
}

TEST_F(Items, AttributeNamesAreShorterThan64Kilobytes) {
  create_readings();
  const std::string longest(65'535, 'x');
  put("a", "1", "'" + longest + "':{'N':'1'}");
  const std::string key = "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}}";
  EXPECT_TRUE(ok("GetItem", key + ",'AttributesToGet':['" + longest + "']}").has("/Item/" + longest));
  for (const std::string& body :
       {"{'TableName':'readings','Item':{'pk':{'S':'a'},'sk':{'S':'1'},'" + longest + "x':{'N':'1'}}}",
        key + ",'AttributesToGet':['" + longest + "x']}",
        key + ",'ProjectionExpression':'#n','ExpressionAttributeNames':{'#n':'" + longest + "x'}}"}) {
    const std::string message = invalid(body.find("Item") != std::string::npos ? "PutItem" : "GetItem", body);
    EXPECT_NE(message.find("Attribute name is too large, must be less than 65536 bytes"), std::string::npos) << message;
  }
}

TEST_F(Items, LegacyParametersDoTheSame) {
  create_readings();
  const std::string key = "'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}}";
  ok("UpdateItem", "{" + key + R"(,'AttributeUpdates':{'n':{'Action':'ADD','Value':{'N':'2'}},'s':{'Value':{'S':'x'}},
      'l':{'Action':'ADD','Value':{'L':[{'S':'a'}]}}}})");
  ok("UpdateItem", "{" + key + R"(,'AttributeUpdates':{'n':{'Action':'ADD','Value':{'N':'3'}},'s':{'Action':'DELETE'},
      'l':{'Action':'ADD','Value':{'L':[{'S':'b'}]}}},'Expected':{'n':{'Value':{'N':'2'}},'q':{'Exists':false}}})");
  EXPECT_EQ(item("a", "1"),
            quoted("{'Item':{'pk':{'S':'a'},'sk':{'S':'1'},'l':{'L':[{'S':'a'},{'S':'b'}]},'n':{'N':'5'}}}"));
  fails("DeleteItem", "{" + key + R"(,'Expected':{'n':{'ComparisonOperator':'GT','AttributeValueList':[{'N':'5'}]}}})",
        "ConditionalCheckFailedException");
  ok("DeleteItem", "{" + key + R"(,'Expected':{'n':{'ComparisonOperator':'GT','AttributeValueList':[{'N':'5'}]},
      'l':{'ComparisonOperator':'NOT_NULL'}},'ConditionalOperator':'OR'})");
  EXPECT_EQ(invalid("UpdateItem", "{" + key + R"(,'AttributeUpdates':{},'ConditionExpression':'attribute_exists(a)'})"),
            "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: "
            "{AttributeUpdates} Expression parameters: {ConditionExpression}");
  invalid("UpdateItem", "{" + key + R"(,'AttributeUpdates':{'s':{'Action':'ADD','Value':{'S':'x'}}}})");
  invalid("DeleteItem",
          "{" + key + R"(,'Expected':{'n':{'ComparisonOperator':'BETWEEN','AttributeValueList':[{'N':'5'}]}}})");
}

TEST_F(Items, PlaceholdersNeedAnExpressionThatUsesThem) {
  create_readings();
  const std::string put = "'TableName':'readings','Item':{'pk':{'S':'a'},'sk':{'S':'1'}}";
  EXPECT_EQ(invalid("PutItem", "{" + put + ",'ExpressionAttributeNames':{'#a':'a'}}"),
            "ExpressionAttributeNames can only be specified when using expressions");
  EXPECT_EQ(invalid("PutItem", "{" + put + ",'ExpressionAttributeValues':{':a':{'S':'a'}}}"),
            "ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null");
  EXPECT_EQ(
      invalid("PutItem", "{" + put + ",'ConditionExpression':'attribute_exists(a)','ExpressionAttributeNames':{}}"),
      "ExpressionAttributeNames must not be empty");
  EXPECT_EQ(invalid("PutItem",
                    "{" + put + ",'ConditionExpression':'attribute_exists(a)','ExpressionAttributeNames':{'a':'a'}}"),
            "ExpressionAttributeNames contains invalid key: Syntax error; key: \"a\"");
  EXPECT_EQ(
      invalid("PutItem", "{" + put + ",'ConditionExpression':'a = :a','ExpressionAttributeValues':{':a':{'N':'x'}}}"),
      "ExpressionAttributeValues contains invalid value: The parameter cannot be converted to a numeric value: x for "
      "key :a");
}

// Goal: a condition and its write are one step.
// Method: threads race to increment one counter under the condition that it has not changed; every success counts.
TEST_F(Items, ConditionAndWriteAreOneStep) {
  create_readings();
  put("a", "1", "'n':{'N':'0'}");
  constexpr int kThreads = 4;
  constexpr int kTries = 200;
  std::atomic<int> succeeded{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTries; ++i) {
        const Answer now = call("GetItem", quoted("{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}}}"));
        const std::string n(now.at("/Item/n/N").as_string());
        const Answer answer =
            call("UpdateItem",
                 quoted("{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}},'UpdateExpression':"
                        "'SET n = n + :one','ConditionExpression':'n = :n','ExpressionAttributeValues':{':one':"
                        "{'N':'1'},':n':{'N':'" +
                        n + "'}}}"));
        if (answer.status == 200) ++succeeded;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(succeeded.load(), kTries);
  EXPECT_EQ(ok("GetItem", "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}}}").at("/Item/n/N").as_string(),
            std::to_string(succeeded.load()));
}

// --- Query

using Query = DynamoDbApiTest;

TEST_F(Query, SortKeyConditions) {
  create_readings();
  for (const char* sk : {"a", "ab", "b", "c", "ca"}) put("p", sk);
  put("q", "a");
  const auto where = [&](const std::string& condition, const std::string& values) {
    return query("'KeyConditionExpression':'pk = :p" + condition + "','ExpressionAttributeValues':{':p':{'S':'p'}" +
                 values + "}");
  };
  EXPECT_EQ(where("", ""), (Keys{"a", "ab", "b", "c", "ca"}));
  EXPECT_EQ(where(" AND sk = :x", ",':x':{'S':'b'}"), (Keys{"b"}));
  EXPECT_EQ(where(" AND sk < :x", ",':x':{'S':'b'}"), (Keys{"a", "ab"}));
  EXPECT_EQ(where(" AND sk <= :x", ",':x':{'S':'b'}"), (Keys{"a", "ab", "b"}));
  EXPECT_EQ(where(" AND :x < sk", ",':x':{'S':'b'}"), (Keys{"c", "ca"}));
  EXPECT_EQ(where(" AND sk >= :x", ",':x':{'S':'b'}"), (Keys{"b", "c", "ca"}));
  EXPECT_EQ(where(" AND sk BETWEEN :x AND :y", ",':x':{'S':'ab'},':y':{'S':'c'}"), (Keys{"ab", "b", "c"}));
  EXPECT_EQ(where(" AND begins_with(sk, :x)", ",':x':{'S':'c'}"), (Keys{"c", "ca"}));
  EXPECT_EQ(where(" AND sk = :x", ",':x':{'S':'z'}"), Keys{});
}

TEST_F(Query, NewestFirstWithALimitAndPages) {
  create_readings();
  for (int i = 0; i < 7; ++i) put("p", std::to_string(i));
  const std::string base =
      "'KeyConditionExpression':'pk = :p','ExpressionAttributeValues':{':p':{'S':'p'}},'ScanIndexForward':false";
  EXPECT_EQ(query(base + ",'Limit':2"), (Keys{"6", "5"}));
  Keys all;
  std::string start;
  int pages = 0;
  for (;; ++pages) {
    ASSERT_LT(pages, 10);
    const Answer page = ok("Query", "{'TableName':'readings'," + base + ",'Limit':3" + start + "}");
    for (std::string& key : sort_keys(page)) all.push_back(std::move(key));
    if (!page.has("/LastEvaluatedKey")) break;
    EXPECT_EQ(page.at("/LastEvaluatedKey").as_object().size(), 2u);
    start = ",'ExclusiveStartKey':" + json::serialize(page.at("/LastEvaluatedKey"));
  }
  EXPECT_EQ(all, (Keys{"6", "5", "4", "3", "2", "1", "0"}));
}

TEST_F(Query, ALimitOfWhatRemainsStillReturnsAKeyAndALargerOneDoesNot) {
  create_readings();
  for (const char* sk : {"1", "2", "3"}) put("p", sk);
  const std::string base =
      "{'TableName':'readings','KeyConditionExpression':'pk = "
      ":p','ExpressionAttributeValues':{':p':{'S':'p'}},'Limit':";
  EXPECT_TRUE(ok("Query", base + "3}").has("/LastEvaluatedKey"));
  EXPECT_FALSE(ok("Query", base + "4}").has("/LastEvaluatedKey"));
  invalid("Query", base + "0}");
}

TEST_F(Query, TheLimitCountsItemsBeforeTheFilter) {
  create_readings();
  for (int i = 0; i < 6; ++i) put("p", std::to_string(i), "'n':{'N':'" + std::to_string(i) + "'}");
  const Answer page = ok("Query",
                         "{'TableName':'readings','KeyConditionExpression':'pk = :p','FilterExpression':'n > :n',"
                         "'ExpressionAttributeValues':{':p':{'S':'p'},':n':{'N':'3'}},'Limit':3}");
  EXPECT_EQ(page.at("/Count").as_int64(), 0);
  EXPECT_EQ(page.at("/ScannedCount").as_int64(), 3);
  EXPECT_TRUE(page.has("/LastEvaluatedKey"));
}

TEST_F(Query, APageEndsWithTheItemThatTakesItToAMegabyte) {
  create_readings();
  const std::string filler = "'x':{'S':'" + std::string(300'000, 'x') + "'}";
  for (const char* sk : {"1", "2", "3", "4", "5"}) put("p", sk, filler);
  for (const char* direction : {"true", "false"}) {
    const std::string base =
        "{'TableName':'readings','KeyConditionExpression':'pk = :p','ExpressionAttributeValues':{':p':"
        "{'S':'p'}},'ProjectionExpression':'sk','ScanIndexForward':" +
        std::string(direction);
    const Answer first = ok("Query", base + "}");
    EXPECT_EQ(first.at("/Count").as_int64(), 4);
    const Answer second =
        ok("Query", base + ",'ExclusiveStartKey':" + json::serialize(first.at("/LastEvaluatedKey")) + "}");
    EXPECT_EQ(second.at("/Count").as_int64(), 1);
    EXPECT_FALSE(second.has("/LastEvaluatedKey"));
  }
}

TEST_F(Query, SelectRules) {
  create_readings();
  put("p", "1", "'n':{'N':'1'}");
  const std::string base =
      "{'TableName':'readings','KeyConditionExpression':'pk = :p','ExpressionAttributeValues':{':p':{'S':'p'}}";
  EXPECT_EQ(ok("Query", base + ",'Select':'COUNT'}").text, quoted("{'Count':1,'ScannedCount':1}"));
  EXPECT_EQ(
      invalid("Query", base + ",'Select':'ALL_PROJECTED_ATTRIBUTES'}"),
      "One or more parameter values were invalid: ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an "
      "IndexName");
  invalid("Query", base + ",'Select':'SPECIFIC_ATTRIBUTES'}");
  EXPECT_EQ(invalid("Query", base + ",'Select':'ALL_ATTRIBUTES','ProjectionExpression':'n'}"),
            "One or more parameter values were invalid: Cannot specify the ProjectionExpression when choosing to get "
            "ALL_ATTRIBUTES");
  EXPECT_EQ(ok("Query", base + ",'Select':'SPECIFIC_ATTRIBUTES','ProjectionExpression':'n'}").text,
            quoted("{'Items':[{'n':{'N':'1'}}],'Count':1,'ScannedCount':1}"));
}

TEST_F(Query, StartKeysMustBeWholeAndInside) {
  create_readings();
  for (const char* sk : {"1", "3", "5"}) put("p", sk);
  const auto start = [](const std::string& key) {
    return "{'TableName':'readings','KeyConditionExpression':'pk = :p AND sk < "
           ":x','ExpressionAttributeValues':{':p':{'S':'p'},"
           "':x':{'S':'5'}},'ExclusiveStartKey':" +
           key + "}";
  };
  EXPECT_EQ(sort_keys(ok("Query", start("{'pk':{'S':'p'},'sk':{'S':'2'}}"))), (Keys{"3"}));
  EXPECT_EQ(invalid("Query", start("{'pk':{'S':'p'}}")), "The provided starting key is invalid");
  EXPECT_EQ(invalid("Query", start("{'pk':{'S':'p'},'sk':{'S':'1'},'x':{'S':'1'}}")),
            "The provided starting key is invalid");
  EXPECT_EQ(invalid("Query", start("{'pk':{'S':'p'},'sk':{'N':'1'}}")),
            "The provided starting key is invalid: The provided key element does not match the schema");
  EXPECT_EQ(invalid("Query", start("{'pk':{'S':'p'},'sk':{'S':'7'}}")),
            "The provided starting key does not match the range key predicate");
  EXPECT_EQ(invalid("Query", start("{'pk':{'S':'q'},'sk':{'S':'1'}}")),
            "The provided starting key is outside query boundaries based on provided conditions");
}

TEST_F(Query, AFilterCannotNameTheKeyAndIsCheckedEagerly) {
  create_readings();
  const std::string base =
      "{'TableName':'readings','KeyConditionExpression':'pk = :p','ExpressionAttributeValues':{':p':{'S':'p'}},";
  EXPECT_EQ(invalid("Query", base + "'FilterExpression':'sk = :p'}"),
            "Filter Expression can only contain non-primary key attributes: Primary key attribute: sk");
  invalid("Query", base + "'FilterExpression':'x = '}");
  EXPECT_EQ(invalid("Query", "{'TableName':'readings'}"),
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.");
}

TEST_F(Query, LegacyParametersDoTheSame) {
  create_readings();
  for (int i = 0; i < 5; ++i) put("p", std::to_string(i), "'n':{'N':'" + std::to_string(i) + "'}");
  const std::string keys = R"('KeyConditions':{'pk':{'ComparisonOperator':'EQ','AttributeValueList':[{'S':'p'}]},
      'sk':{'ComparisonOperator':'BETWEEN','AttributeValueList':[{'S':'1'},{'S':'3'}]}})";
  EXPECT_EQ(query(keys), (Keys{"1", "2", "3"}));
  EXPECT_EQ(
      query(keys + R"(,'QueryFilter':{'n':{'ComparisonOperator':'IN','AttributeValueList':[{'N':'2'},{'N':'4'}]}})"),
      (Keys{"2"}));
  EXPECT_EQ(query(keys + R"(,'FilterExpression':'n <> :n','ExpressionAttributeValues':{':n':{'N':'2'}})"),
            (Keys{"1", "3"}));
  EXPECT_EQ(ok("Query", "{'TableName':'readings'," + keys + ",'AttributesToGet':['n'],'Limit':1}")
                .at("/Items/0/n/N")
                .as_string(),
            "1");
  EXPECT_EQ(invalid("Query", "{'TableName':'readings'," + keys +
                                 ",'KeyConditionExpression':'pk = :p','ExpressionAttributeValues':{':p':{'S':'p'}}}"),
            "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: "
            "{KeyConditions} Expression parameters: {KeyConditionExpression}");
}

TEST_F(Query, NumberKeysSortAsNumbersAndEqualOnesAreOne) {
  ok("CreateTable", R"({'TableName':'numbers','BillingMode':'PAY_PER_REQUEST',
     'AttributeDefinitions':[{'AttributeName':'p','AttributeType':'N'},{'AttributeName':'s','AttributeType':'N'}],
     'KeySchema':[{'AttributeName':'p','KeyType':'HASH'},{'AttributeName':'s','KeyType':'RANGE'}]})");
  for (const char* s : {"10", "9", "-1", "0.5", "-20", "9.0", "1e1"}) {
    ok("PutItem", std::string("{'TableName':'numbers','Item':{'p':{'N':'1.0'},'s':{'N':'") + s + "'}}}");
  }
  const Answer answer = ok("Query",
                           "{'TableName':'numbers','KeyConditionExpression':'p = :p AND s > :s',"
                           "'ExpressionAttributeValues':{':p':{'N':'1'},':s':{'N':'-5'}}}");
  Keys keys;
  for (const json::value& each : answer.at("/Items").as_array()) keys.emplace_back(each.at_pointer("/s/N").as_string());
  EXPECT_EQ(keys, (Keys{"-1", "0.5", "9", "10"}));
}

// --- indexes

using Indexes = DynamoDbApiTest;

TEST_F(Indexes, AGlobalIndexFollowsWritesAndPagesThroughTies) {
  create_readings();
  for (int i = 0; i < 6; ++i) {
    put("v" + std::to_string(i), "1", "'depot':{'S':'D'},'speed':{'N':'" + std::to_string(i % 2) + "'},'x':{'S':'x'}");
  }
  put("no-depot", "1", "'speed':{'N':'1'}");
  const std::string base =
      "{'TableName':'readings','IndexName':'by-depot','KeyConditionExpression':'depot = :d',"
      "'ExpressionAttributeValues':{':d':{'S':'D'}}";
  EXPECT_EQ(ok("Query", base + "}").at("/Count").as_int64(), 6);
  std::set<std::string> seen;
  std::string start;
  for (int pages = 0;; ++pages) {
    ASSERT_LT(pages, 10);
    const Answer page = ok("Query", base + ",'Limit':1" + start + "}");
    for (const json::value& each : page.at("/Items").as_array()) {
      EXPECT_TRUE(seen.emplace(each.at_pointer("/pk/S").as_string()).second);
    }
    if (!page.has("/LastEvaluatedKey")) break;
    EXPECT_EQ(page.at("/LastEvaluatedKey").as_object().size(), 4u);
    start = ",'ExclusiveStartKey':" + json::serialize(page.at("/LastEvaluatedKey"));
  }
  EXPECT_EQ(seen.size(), 6u);

  ok("UpdateItem", "{'TableName':'readings','Key':{'pk':{'S':'v0'},'sk':{'S':'1'}},'UpdateExpression':'REMOVE depot'}");
  ok("DeleteItem", "{'TableName':'readings','Key':{'pk':{'S':'v1'},'sk':{'S':'1'}}}");
  EXPECT_EQ(ok("Query", base + "}").at("/Count").as_int64(), 4);
}

TEST_F(Indexes, SortKeyConditionsOnAGlobalIndex) {
  create_readings();
  for (int i = 0; i < 5; ++i)
    put("v", std::to_string(i), "'depot':{'S':'D'},'speed':{'N':'" + std::to_string(i * 10) + "'}");
  const auto where = [&](const std::string& condition) {
    return query("'IndexName':'by-depot','KeyConditionExpression':'depot = :d AND " + condition +
                 "','ExpressionAttributeValues':{':d':{'S':'D'},':x':{'N':'20'}}");
  };
  EXPECT_EQ(where("speed = :x"), (Keys{"2"}));
  EXPECT_EQ(where("speed < :x"), (Keys{"0", "1"}));
  EXPECT_EQ(where("speed <= :x"), (Keys{"0", "1", "2"}));
  EXPECT_EQ(where("speed > :x"), (Keys{"3", "4"}));
  EXPECT_EQ(where("speed >= :x"), (Keys{"2", "3", "4"}));
  EXPECT_EQ(where("speed BETWEEN :x AND :x"), (Keys{"2"}));
}

TEST_F(Indexes, AGlobalIndexAnswersFromItsProjection) {
  create_readings();
  put("v", "1", "'depot':{'S':'D'},'note':{'S':'n'},'x':{'S':'x'}");
  const std::string base =
      "{'TableName':'readings','IndexName':'depot-keys','KeyConditionExpression':'depot = :d',"
      "'ExpressionAttributeValues':{':d':{'S':'D'}}";
  const Answer answer = ok("Query", base + "}");
  EXPECT_EQ(answer.at("/Items/0").as_object().size(), 4u) << answer.text;
  EXPECT_TRUE(answer.has("/Items/0/note"));
  EXPECT_EQ(invalid("Query", base + ",'ConsistentRead':true}"),
            "Consistent reads are not supported on global secondary indexes");
  EXPECT_EQ(invalid("Query", base + ",'Select':'ALL_ATTRIBUTES'}"),
            "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global "
            "secondary index "
            "depot-keys because its projection type is not ALL");
  invalid("Query", base + ",'ProjectionExpression':'x'}");
  EXPECT_EQ(invalid("Query",
                    "{'TableName':'readings','IndexName':'nope','KeyConditionExpression':'depot = :d',"
                    "'ExpressionAttributeValues':{':d':{'S':'D'}}}"),
            "The table does not have the specified index: nope");
}

TEST_F(Indexes, ALocalIndexSortsTheCollectionAnew) {
  create_readings();
  const int speeds[] = {30, 10, 20, 10, 50};
  for (int i = 0; i < 5; ++i)
    put("v", std::to_string(i), "'speed':{'N':'" + std::to_string(speeds[i]) + "'},'x':{'S':'x'}");
  put("v", "none");
  put("w", "1", "'speed':{'N':'1'}");
  const std::string base = "'IndexName':'by-speed','KeyConditionExpression':'pk = :p";
  const std::string values = "','ExpressionAttributeValues':{':p':{'S':'v'}";
  EXPECT_EQ(query(base + values + "}"), (Keys{"1", "3", "2", "0", "4"}));
  EXPECT_EQ(query(base + values + "},'ScanIndexForward':false,'ConsistentRead':true"), (Keys{"4", "0", "2", "3", "1"}));
  EXPECT_EQ(query(base + " AND speed BETWEEN :a AND :b" + values + ",':a':{'N':'10'},':b':{'N':'20'}}"),
            (Keys{"1", "3", "2"}));

  Keys all;
  std::string start;
  for (int pages = 0;; ++pages) {
    ASSERT_LT(pages, 10);
    const Answer page =
        ok("Query", "{'TableName':'readings'," + base + values + "},'Limit':2,'ScanIndexForward':false" + start + "}");
    for (std::string& key : sort_keys(page)) all.push_back(std::move(key));
    if (!page.has("/LastEvaluatedKey")) break;
    EXPECT_EQ(page.at("/LastEvaluatedKey").as_object().size(), 3u);
    start = ",'ExclusiveStartKey':" + json::serialize(page.at("/LastEvaluatedKey"));
  }
  EXPECT_EQ(all, (Keys{"4", "0", "2", "3", "1"}));

  const Answer projected = ok("Query", "{'TableName':'readings'," + base + values + "},'Limit':1}");
  EXPECT_EQ(projected.at("/Items/0").as_object().size(), 3u);
  const Answer fetched =
      ok("Query", "{'TableName':'readings'," + base + values + "},'Limit':1,'Select':'ALL_ATTRIBUTES'}");
  EXPECT_EQ(fetched.at("/Items/0").as_object().size(), 4u);
  EXPECT_EQ(ok("Query", "{'TableName':'readings'," + base + values + "},'Limit':1,'ProjectionExpression':'x'}")
                .at("/Items/0/x/S")
                .as_string(),
            "x");
}

TEST_F(Indexes, ALocalIndexPagesWithoutLossWhenItsCollectionIsLargerThanAPage) {
  create_readings();
  const std::string filler = ",'x':{'S':'" + std::string(200'000, 'x') + "'}";
  for (int i = 0; i < 12; ++i)
    put("v", std::to_string(100 + i), "'speed':{'N':'" + std::to_string(12 - i) + "'}" + filler);
  Keys all;
  std::string start;
  for (int pages = 0;; ++pages) {
    ASSERT_LT(pages, 20);
    const Answer page = ok("Query",
                           "{'TableName':'readings','IndexName':'by-speed','KeyConditionExpression':'pk = :p',"
                           "'ExpressionAttributeValues':{':p':{'S':'v'}},'ProjectionExpression':'sk'" +
                               start + "}");
    for (std::string& key : sort_keys(page)) all.push_back(std::move(key));
    if (!page.has("/LastEvaluatedKey")) break;
    start = ",'ExclusiveStartKey':" + json::serialize(page.at("/LastEvaluatedKey"));
  }
  EXPECT_EQ(all, (Keys{"111", "110", "109", "108", "107", "106", "105", "104", "103", "102", "101", "100"}));
}

// --- Scan

using Scan = DynamoDbApiTest;

TEST_F(Scan, PagesAndSegmentsReturnEveryItemOnce) {
  create_readings();
  for (int i = 0; i < 50; ++i)
    put("p" + std::to_string(i % 20), std::to_string(i), i % 3 == 0 ? "'speed':{'N':'1'}" : "");
  const auto collect = [&](const std::string& more, std::multiset<std::string>& out) {
    std::string start;
    for (int pages = 0;; ++pages) {
      ASSERT_LT(pages, 100);
      const Answer page = ok("Scan", "{'TableName':'readings','Limit':7" + more + start + "}");
      for (std::string& key : sort_keys(page)) out.insert(std::move(key));
      if (!page.has("/LastEvaluatedKey")) break;
      start = ",'ExclusiveStartKey':" + json::serialize(page.at("/LastEvaluatedKey"));
    }
  };
  std::multiset<std::string> whole;
  collect("", whole);
  EXPECT_EQ(whole.size(), 50u);
  EXPECT_EQ(std::set<std::string>(whole.begin(), whole.end()).size(), 50u);
  std::multiset<std::string> in_parts;
  for (int segment = 0; segment < 5; ++segment) {
    collect(",'TotalSegments':5,'Segment':" + std::to_string(segment), in_parts);
  }
  EXPECT_EQ(in_parts, whole);
  std::multiset<std::string> local;
  collect(",'IndexName':'by-speed'", local);
  EXPECT_EQ(local.size(), 17u);
  EXPECT_EQ(ok("Scan", "{'TableName':'readings','TotalSegments':1000000,'Segment':999999}").status, 200u);
}

TEST_F(Scan, FiltersAndChecksItsSegments) {
  create_readings();
  put("a", "1", "'n':{'N':'1'}");
  put("b", "1", "'n':{'N':'2'}");
  EXPECT_EQ(
      ok("Scan", "{'TableName':'readings','FilterExpression':'pk = :p','ExpressionAttributeValues':{':p':{'S':'a'}}}")
          .at("/Count")
          .as_int64(),
      1);
  EXPECT_EQ(
      ok("Scan",
         R"({'TableName':'readings','ScanFilter':{'n':{'ComparisonOperator':'GE','AttributeValueList':[{'N':'1'}]}}})")
          .at("/Count")
          .as_int64(),
      2);
  EXPECT_EQ(
      invalid("Scan", "{'TableName':'readings','Segment':2,'TotalSegments':2}"),
      "The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: 2 is not less than "
      "TotalSegments: 2");
  invalid("Scan", "{'TableName':'readings','Segment':0}");
  invalid("Scan", "{'TableName':'readings','TotalSegments':1}");
  invalid("Scan", "{'TableName':'readings','Segment':0,'TotalSegments':1000001}");
}

// --- batches

using Batch = DynamoDbApiTest;

TEST_F(Batch, WritesAndGets) {
  create_readings();
  put("c", "1");
  EXPECT_EQ(ok("BatchWriteItem", R"({'RequestItems':{'readings':[
      {'PutRequest':{'Item':{'pk':{'S':'a'},'sk':{'S':'1'},'x':{'N':'1'}}}},
      {'PutRequest':{'Item':{'pk':{'S':'b'},'sk':{'S':'1'}}}},
      {'DeleteRequest':{'Key':{'pk':{'S':'c'},'sk':{'S':'1'}}}}]}})")
                .text,
            quoted("{'UnprocessedItems':{}}"));
  const Answer got = ok("BatchGetItem", R"({'RequestItems':{'readings':{'Keys':[
      {'pk':{'S':'a'},'sk':{'S':'1'}},{'pk':{'S':'b'},'sk':{'S':'1'}},{'pk':{'S':'c'},'sk':{'S':'1'}}],
      'ProjectionExpression':'pk,x'}},'ReturnConsumedCapacity':'TOTAL'})");
  EXPECT_EQ(json::serialize(got.at("/Responses/readings")),
            quoted("[{'pk':{'S':'a'},'x':{'N':'1'}},{'pk':{'S':'b'}}]"));
  EXPECT_EQ(json::serialize(got.at("/UnprocessedKeys")), "{}");
  EXPECT_EQ(got.at("/ConsumedCapacity/0/CapacityUnits").as_double(), 1.5);
}

TEST_F(Batch, BoundsAndDuplicates) {
  create_readings();
  const auto puts = [](int count) {
    std::string list;
    for (int i = 0; i < count; ++i) {
      list += (i > 0 ? "," : "") + ("{'PutRequest':{'Item':{'pk':{'S':'a'},'sk':{'S':'" + std::to_string(i) + "'}}}}");
    }
    return "{'RequestItems':{'readings':[" + list + "]}}";
  };
  ok("BatchWriteItem", puts(25));
  EXPECT_EQ(query("'KeyConditionExpression':'pk = :p','ExpressionAttributeValues':{':p':{'S':'a'}}").size(), 25u);
  invalid("BatchWriteItem", puts(26));
  invalid("BatchWriteItem", puts(0));
  invalid("BatchWriteItem", "{'RequestItems':{}}");
  EXPECT_EQ(
      invalid("BatchWriteItem", R"({'RequestItems':{'readings':[{'PutRequest':{'Item':{'pk':{'S':'z'},'sk':{'S':'1'}}}},
      {'DeleteRequest':{'Key':{'pk':{'S':'z'},'sk':{'S':'1'}}}}]}})"),
      "Provided list of item keys contains duplicates");
  EXPECT_EQ(invalid("BatchGetItem", R"({'RequestItems':{'readings':{'Keys':[{'pk':{'S':'z'},'sk':{'S':'1'}},
      {'sk':{'S':'1'},'pk':{'S':'z'}}]}}})"),
            "Provided list of item keys contains duplicates");
  EXPECT_EQ(item("z", "1"), "{}");
  fails("BatchGetItem", "{'RequestItems':{'nope':{'Keys':[{'a':{'S':'1'}}]}}}", "ResourceNotFoundException");
}

TEST_F(Batch, AWrongKeyFailsTheWholeBatch) {
  create_readings();
  EXPECT_EQ(
      invalid("BatchWriteItem", R"({'RequestItems':{'readings':[{'PutRequest':{'Item':{'pk':{'S':'a'},'sk':{'S':'1'}}}},
      {'PutRequest':{'Item':{'pk':{'S':'a'}}}}]}})"),
      "The provided key element does not match the schema");
  invalid("BatchWriteItem", R"({'RequestItems':{'readings':[{'PutRequest':{'Item':{'pk':{'S':'a'},'sk':{'S':'1'}}}},
      {'PutRequest':{'Item':{'pk':{'S':'a'},'sk':{'S':''}}}}]}})");
  invalid("BatchWriteItem", "{'RequestItems':{'readings':[{}]}}");
  EXPECT_EQ(item("a", "1"), "{}");
}

TEST_F(Batch, GetStopsAt16MegabytesAndNamesTheRest) {
  create_readings();
  const std::string filler = "'x':{'S':'" + std::string(390'000, 'x') + "'}";
  std::string keys;
  for (int i = 0; i < 50; ++i) {
    put("p", std::to_string(i), filler);
    keys += (i > 0 ? "," : "") + ("{'pk':{'S':'p'},'sk':{'S':'" + std::to_string(i) + "'}}");
  }
  const Answer got = ok("BatchGetItem", "{'RequestItems':{'readings':{'Keys':[" + keys + "],'ConsistentRead':true}}}");
  const std::size_t read = got.at("/Responses/readings").as_array().size();
  EXPECT_EQ(read, 44u);
  EXPECT_EQ(got.at("/UnprocessedKeys/readings/Keys").as_array().size(), 50 - read);
  EXPECT_EQ(got.at("/UnprocessedKeys/readings/ConsistentRead").as_bool(), true);
}

// --- capacity

using Capacity = DynamoDbApiTest;

TEST_F(Capacity, ReadsCountFourKilobytesAndWritesOne) {
  create_readings();
  const std::string filler = "'x':{'S':'" + std::string(5'000, 'x') + "'}";
  const auto units = [&](std::string_view operation, const std::string& body) {
    return ok(operation, body).at("/ConsumedCapacity/CapacityUnits").as_double();
  };
  const std::string report = ",'ReturnConsumedCapacity':'TOTAL'}";
  EXPECT_EQ(units("PutItem", "{'TableName':'readings','Item':{'pk':{'S':'a'},'sk':{'S':'1'}," + filler + "}" + report),
            5);
  EXPECT_EQ(units("PutItem", "{'TableName':'readings','Item':{'pk':{'S':'b'},'sk':{'S':'1'}}" + report), 1);
  EXPECT_EQ(
      units("PutItem", "{'TableName':'readings','Item':{'pk':{'S':'c'},'sk':{'S':'1'},'depot':{'S':'D'}}" + report), 2);
  const std::string key = "{'TableName':'readings','Key':{'pk':{'S':'a'},'sk':{'S':'1'}}";
  EXPECT_EQ(units("GetItem", key + report), 1);
  EXPECT_EQ(units("GetItem", key + ",'ConsistentRead':true" + report), 2);
  EXPECT_EQ(units("DeleteItem", key + report), 5);
  EXPECT_EQ(units("Query",
                  "{'TableName':'readings','KeyConditionExpression':'pk = :p','ExpressionAttributeValues':{':p':{'S':"
                  "'none'}}" +
                      report),
            0.5);
  const Answer indexed = ok("Query",
                            "{'TableName':'readings','IndexName':'depot-keys','KeyConditionExpression':'depot = :p',"
                            "'ExpressionAttributeValues':{':p':{'S':'D'}},'ReturnConsumedCapacity':'INDEXES'}");
  EXPECT_EQ(indexed.at("/ConsumedCapacity/GlobalSecondaryIndexes/depot-keys/CapacityUnits").as_double(), 0.5);
  EXPECT_EQ(indexed.at("/ConsumedCapacity/Table/CapacityUnits").as_double(), 0);
}

// --- time sort keys

class TimeKeys : public DynamoDbApiTest {
 protected:
  TimeKeys() {
    model::TableSchema schema;
    schema.name = "fleet";
    schema.key.partition_key = {"vehicleId", model::KeyType::kString};
    schema.key.sort_key = model::KeyAttribute{"recordedAt", model::KeyType::kString};
    schema.time_sort_key = model::TimeSortKey{};
    EXPECT_TRUE(store_->create_table(schema).ok());
    for (const char* time :
         {"META", "TS#2026-06-23T09:00:00Z", "TS#2026-06-23T11:00:01.5+02:00", "TS#2026-06-23T09:00:02.000Z"}) {
      ok("PutItem",
         std::string("{'TableName':'fleet','Item':{'vehicleId':{'S':'V'},'recordedAt':{'S':'") + time + "'}}}");
    }
  }
  Keys where(const std::string& condition, const std::string& values) {
    const Answer answer = ok("Query", "{'TableName':'fleet','KeyConditionExpression':'vehicleId = :v AND " + condition +
                                          "','ExpressionAttributeValues':{':v':{'S':'V'}," + values + "}}");
    Keys out;
    for (const json::value& each : answer.at("/Items").as_array())
      out.emplace_back(each.at_pointer("/recordedAt/S").as_string());
    return out;
  }
};

TEST_F(TimeKeys, KeysAndBoundsAreBroughtToOneForm) {
  EXPECT_EQ(where("recordedAt BETWEEN :a AND :b",
                  "':a':{'S':'TS#2026-06-23T09:00:00Z'},':b':{'S':'TS#2026-06-23T09:00:02Z'}"),
            (Keys{"TS#2026-06-23T09:00:00.000Z", "TS#2026-06-23T09:00:01.500Z", "TS#2026-06-23T09:00:02.000Z"}));
  EXPECT_EQ(where("recordedAt = :a", "':a':{'S':'TS#2026-06-23T10:00:00+01:00'}"),
            (Keys{"TS#2026-06-23T09:00:00.000Z"}));
  EXPECT_EQ(where("recordedAt = :a", "':a':{'S':'META'}"), (Keys{"META"}));
}

TEST_F(TimeKeys, BoundsFinerThanThePrecisionPartRightly) {
  const std::string fine = "':a':{'S':'TS#2026-06-23T09:00:00.0005Z'}";
  const Keys behind{"TS#2026-06-23T09:00:01.500Z", "TS#2026-06-23T09:00:02.000Z"};
  const Keys before{"META", "TS#2026-06-23T09:00:00.000Z"};
  EXPECT_EQ(where("recordedAt > :a", fine), behind);
  EXPECT_EQ(where("recordedAt >= :a", fine), behind);
  EXPECT_EQ(where("recordedAt < :a", fine), before);
  EXPECT_EQ(where("recordedAt <= :a", fine), before);
}

TEST_F(TimeKeys, APrefixStaysText) {
  EXPECT_EQ(where("begins_with(recordedAt, :a)", "':a':{'S':'TS#2026-06-23T09:00:01'}"),
            (Keys{"TS#2026-06-23T09:00:01.500Z"}));
  EXPECT_EQ(where("begins_with(recordedAt, :a)", "':a':{'S':'TS#2026-06-23T09:00:01Z'}"), Keys{});
}

TEST_F(TimeKeys, ItemsAreFoundAndWrittenUnderAnyFormOfTheirTime) {
  const std::string key =
      "{'TableName':'fleet','Key':{'vehicleId':{'S':'V'},'recordedAt':{'S':'TS#2026-06-23T09:00:00Z'}}";
  EXPECT_TRUE(ok("GetItem", key + "}").has("/Item"));
  EXPECT_EQ(ok("UpdateItem",
               key + ",'UpdateExpression':'SET x = :x','ExpressionAttributeValues':{':x':{'S':'x'}},'ReturnValues':"
                     "'ALL_NEW'}")
                .at("/Attributes/recordedAt/S")
                .as_string(),
            "TS#2026-06-23T09:00:00.000Z");
  ok("DeleteItem", key + "}");
  EXPECT_EQ(ok("GetItem", key + "}").text, "{}");
  const Answer page = ok("Query",
                         "{'TableName':'fleet','KeyConditionExpression':'vehicleId = :v','ExpressionAttributeValues':"
                         "{':v':{'S':'V'}},'ExclusiveStartKey':{'vehicleId':{'S':'V'},'recordedAt':{'S':"
                         "'TS#2026-06-23T09:00:01.5Z'}}}");
  EXPECT_EQ(page.at("/Count").as_int64(), 1);
}

// --- item collections

TEST_F(DynamoDbApiTest, AFullItemCollectionOfATableWithALocalIndexTakesNoMore) {
  store::StoreOptions options{.workers = 2};
  options.item_collection_limit_bytes = 1'000;
  store_ = store::Store::open(options);
  api_ = DynamoDbApi::make(*store_);
  create_readings();
  const std::string text(700, 'n');
  put("v1", "1", "'note':{'S':'" + text + "'}");
  const std::string item = "'Item':{'pk':{'S':'v1'},'sk':{'S':'2'},'note':{'S':'" + text + "'}}";
  const std::string_view kTooLarge = "ItemCollectionSizeLimitExceededException";
  EXPECT_EQ(fails("PutItem", "{'TableName':'readings'," + item + "}", kTooLarge).message(),
            "Collection size exceeded.");
  fails("BatchWriteItem", "{'RequestItems':{'readings':[{'PutRequest':{" + item + "}}]}}", kTooLarge);
  fails("UpdateItem",
        "{'TableName':'readings','Key':{'pk':{'S':'v1'},'sk':{'S':'1'}},'UpdateExpression':'SET more = :m',"
        "'ExpressionAttributeValues':{':m':{'S':'" +
            text + "'}}}",
        kTooLarge);
  ok("UpdateItem", "{'TableName':'readings','Key':{'pk':{'S':'v1'},'sk':{'S':'1'}},'UpdateExpression':'REMOVE note'}");
  ok("PutItem", "{'TableName':'readings'," + item + "}");
}

TEST_F(DynamoDbApiTest, ItemCollectionMetricsAreGivenWhereAskedFor) {
  create_readings();
  const std::string size = ",'ReturnItemCollectionMetrics':'SIZE'}";
  const std::string item = "{'TableName':'readings','Item':{'pk':{'S':'v1'},'sk':{'S':'1'}}";
  EXPECT_FALSE(ok("PutItem", item + "}").has("/ItemCollectionMetrics"));
  EXPECT_FALSE(ok("PutItem", item + ",'ReturnItemCollectionMetrics':'NONE'}").has("/ItemCollectionMetrics"));
  const std::string metrics = quoted("{'ItemCollectionKey':{'pk':{'S':'v1'}},'SizeEstimateRangeGB':[0.0,1.0]}");
  EXPECT_EQ(ok("PutItem", item + size).text, quoted("{'ItemCollectionMetrics':") + metrics + "}");
  const std::string key = "{'TableName':'readings','Key':{'pk':{'S':'v1'},'sk':{'S':'1'}}";
  EXPECT_EQ(ok("UpdateItem", key + size).text, quoted("{'ItemCollectionMetrics':") + metrics + "}");
  EXPECT_EQ(ok("DeleteItem", key + size).text, quoted("{'ItemCollectionMetrics':") + metrics + "}");
  EXPECT_EQ(ok("DeleteItem", key + size).text, quoted("{'ItemCollectionMetrics':") + metrics + "}");
  const Answer batch = ok("BatchWriteItem",
                          "{'RequestItems':{'readings':[{'PutRequest':{'Item':{'pk':{'S':'v1'},'sk':{'S':'1'}}}},"
                          "{'PutRequest':{'Item':{'pk':{'S':'v1'},'sk':{'S':'2'}}}}]}" +
                              size);
  EXPECT_EQ(batch.text,
            quoted("{'UnprocessedItems':{},'ItemCollectionMetrics':{'readings':[") + metrics + quoted("]}}"));
}

TEST_F(DynamoDbApiTest, ATableWithoutALocalIndexHasNoItemCollectionMetrics) {
  ok("CreateTable",
     "{'TableName':'plain','BillingMode':'PAY_PER_REQUEST',"
     "'AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'}],"
     "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}]}");
  EXPECT_EQ(ok("PutItem", "{'TableName':'plain','Item':{'pk':{'S':'a'}},'ReturnItemCollectionMetrics':'SIZE'}").text,
            "{}");
}

// --- UpdateTable

class UpdateTable : public DynamoDbApiTest {
 protected:
  static std::string create(const std::string& index, const std::string& key, const std::string& type = "S") {
    return "{'TableName':'readings','AttributeDefinitions':[{'AttributeName':'" + key + "','AttributeType':'" + type +
           "'}],'GlobalSecondaryIndexUpdates':[{'Create':{'IndexName':'" + index + "','KeySchema':[{'AttributeName':'" +
           key + "','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}}]}";
  }
  static std::string erase(const std::string& index) {
    return "{'TableName':'readings','GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'" + index + "'}}]}";
  }

  /// What DescribeTable says of an index; null: nothing.
  json::value described(std::string_view index) {
    const Answer answer = ok("DescribeTable", "{'TableName':'readings'}");
    for (const json::value& each : answer.at("/Table/GlobalSecondaryIndexes").as_array()) {
      if (each.at("IndexName").as_string() == index) return each;
    }
    return nullptr;
  }
  void wait_for(std::string_view index) {
    while (described(index).at("IndexStatus").as_string() != "ACTIVE") std::this_thread::yield();
  }

  /// While it lives, the writer of v1's shard does nothing else, so that no index is filled.
  class HeldWriter {
   public:
    explicit HeldWriter(store::Store& store) {
      store::ItemWrite write;
      write.partition_key = "v1";
      write.sort_key = "held";
      write.decide = [begun = begun_, release = release_](auto) {
        begun->set_value();
        release->get_future().wait();
        return store::ItemWrite::Decision{};
      };
      write.done = [](const model::Status&) {};
      EXPECT_TRUE(store.find_table("readings")->write(std::move(write)).ok());
      begun_->get_future().wait();
    }
    ~HeldWriter() { release_->set_value(); }

   private:
    using Event = std::shared_ptr<std::promise<void>>;
    const Event begun_ = std::make_shared<std::promise<void>>();
    const Event release_ = std::make_shared<std::promise<void>>();
  };
};

TEST_F(UpdateTable, AddsAGlobalIndexWithWhatIsThere) {
  create_readings();
  put("v1", "1", "'driver':{'S':'ann'}");
  put("v2", "1", "'driver':{'S':'ann'}");
  put("v3", "1", "'driver':{'N':'7'}");
  put("v4", "1");
  const Answer answer = ok("UpdateTable", create("by-driver", "driver"));
  EXPECT_EQ(answer.at("/TableDescription/TableStatus").as_string(), "UPDATING");
  wait_for("by-driver");
  EXPECT_FALSE(described("by-driver").as_object().contains("Backfilling"));
  put("v5", "1", "'driver':{'S':'ann'}");
  EXPECT_EQ(query("'IndexName':'by-driver','KeyConditionExpression':'driver = :d',"
                  "'ExpressionAttributeValues':{':d':{'S':'ann'}}")
                .size(),
            3u);
  EXPECT_EQ(invalid("PutItem", "{'TableName':'readings','Item':{'pk':{'S':'v6'},'sk':{'S':'1'},'driver':{'N':'1'}}}")
                .find("One or more parameter values were invalid: Type mismatch for Index Key driver"),
            0u);
}

TEST_F(UpdateTable, AnIndexThatIsFilledIsCreatingAndAnswersNothing) {
  create_readings();
  const HeldWriter held(*store_);
  const Answer answer = ok("UpdateTable", create("by-driver", "driver"));
  EXPECT_EQ(answer.at("/TableDescription/GlobalSecondaryIndexes/2/IndexStatus").as_string(), "CREATING");
  EXPECT_EQ(described("by-driver").at("IndexStatus").as_string(), "CREATING");
  EXPECT_TRUE(described("by-driver").at("Backfilling").as_bool());
  EXPECT_EQ(described("by-depot").at("IndexStatus").as_string(), "ACTIVE");
  EXPECT_EQ(ok("DescribeTable", "{'TableName':'readings'}").at("/Table/TableStatus").as_string(), "ACTIVE");
  constexpr std::string_view kFilling = "Cannot read from backfilling global secondary index: by-driver";
  EXPECT_EQ(invalid("Query",
                    "{'TableName':'readings','IndexName':'by-driver','KeyConditionExpression':'driver = :d',"
                    "'ExpressionAttributeValues':{':d':{'S':'ann'}}}"),
            kFilling);
  EXPECT_EQ(invalid("Scan", "{'TableName':'readings','IndexName':'by-driver'}"), kFilling);
}

TEST_F(UpdateTable, OneIndexIsCreatedOrDeletedAtATime) {
  create_readings();
  constexpr std::string_view kAtOnce =
      "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table";
  EXPECT_EQ(fails("UpdateTable",
                  "{'TableName':'readings','GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'by-depot'}},"
                  "{'Delete':{'IndexName':'depot-keys'}}]}",
                  "LimitExceededException")
                .message(),
            kAtOnce);
  const HeldWriter held(*store_);
  ok("UpdateTable", create("by-driver", "driver"));
  EXPECT_EQ(fails("UpdateTable", create("by-route", "route"), "LimitExceededException").message(), kAtOnce);
  ok("UpdateTable", erase("by-driver"));
  ok("UpdateTable", create("by-route", "route"));
}

TEST_F(UpdateTable, RemovesAGlobalIndex) {
  create_readings();
  put("v1", "1", "'depot':{'S':'LON'},'speed':{'N':'1'}");
  const Answer answer = ok("UpdateTable", erase("by-depot"));
  EXPECT_EQ(answer.at("/TableDescription/GlobalSecondaryIndexes/0/IndexStatus").as_string(), "DELETING");
  EXPECT_TRUE(described("by-depot").is_null());
  EXPECT_EQ(invalid("Query",
                    "{'TableName':'readings','IndexName':'by-depot','KeyConditionExpression':'depot = :d',"
                    "'ExpressionAttributeValues':{':d':{'S':'LON'}}}"),
            "The table does not have the specified index: by-depot");
  put("v1", "2", "'depot':{'S':'LON'},'speed':{'N':'2'}");
  EXPECT_EQ(query("'IndexName':'depot-keys','KeyConditionExpression':'depot = :d',"
                  "'ExpressionAttributeValues':{':d':{'S':'LON'}}"),
            (Keys{"1", "2"}));
}

TEST_F(UpdateTable, RefusesInDynamoDbsWords) {
  create_readings();
  EXPECT_EQ(invalid("UpdateTable", "{'TableName':'readings'}"),
            "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates or "
            "SSESpecification or ReplicaUpdates is required");
  EXPECT_EQ(invalid("UpdateTable", "{'TableName':'readings','GlobalSecondaryIndexUpdates':[{}]}"),
            "One or more parameter values were invalid: One of GlobalSecondaryIndexUpdate.Update, "
            "GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null");
  EXPECT_EQ(invalid("UpdateTable",
                    "{'TableName':'readings','GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'abc'}},"
                    "{'Delete':{'IndexName':'abc'}}]}"),
            "One or more parameter values were invalid: Only one global secondary index update per index is allowed "
            "simultaneously. Index: abc");
  EXPECT_EQ(invalid("UpdateTable", create("by-depot", "depot")), "Attempting to create an index which already exists");
  EXPECT_EQ(invalid("UpdateTable", erase("by-speed")),
            "Cannot delete an index that is not a GlobalSecondaryIndex: by-speed");
  EXPECT_EQ(fails("UpdateTable", erase("nothing"), "ResourceNotFoundException").message(),
            "Requested resource not found");
  EXPECT_EQ(fails("UpdateTable", "{'TableName':'none','GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'abc'}}]}",
                  "ResourceNotFoundException")
                .message(),
            "Requested resource not found: Table: none not found");
  EXPECT_EQ(
      invalid("UpdateTable",
              "{'TableName':'readings','GlobalSecondaryIndexUpdates':[{'Create':{'IndexName':'by-driver',"
              "'KeySchema':[{'AttributeName':'driver','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}}]}"),
      "One or more parameter values were invalid: AttributeDefinitions is not specified for index: by-driver");
  EXPECT_EQ(
      invalid("UpdateTable", "{'TableName':'readings','GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'a;'}}]}")
          .find("2 validation errors detected: Value 'a;' at "
                "'globalSecondaryIndexUpdates.1.member.delete.indexName' failed to satisfy constraint: "),
      0u);
}

}  // namespace
}  // namespace drover::server

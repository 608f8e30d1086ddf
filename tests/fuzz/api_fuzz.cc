// Goal: no request makes the API crash, hang, stay silent, or answer with anything but its own errors.
// Method: the input's first byte chooses an operation, the rest is the body of a request to one API, whose table (with
// a
//         global and a local index) is made anew when an input has deleted it. Each answer must come, be 200 or 400,
//         and be a JSON object.
// Run:     clang++ -fsanitize=fuzzer,address with the server, store, partitioner and model libraries; tests/unit/server
//          runs it on random mutations of real requests.
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "drover/model/check.h"
#include "drover/store/store.h"
#include "dynamodb/api.h"

namespace drover::server {
namespace {

constexpr std::string_view kTargets[] = {
    "DynamoDB_20120810.Query",       "DynamoDB_20120810.GetItem",        "DynamoDB_20120810.PutItem",
    "DynamoDB_20120810.UpdateItem",  "DynamoDB_20120810.DeleteItem",     "DynamoDB_20120810.BatchGetItem",
    "DynamoDB_20120810.Scan",        "DynamoDB_20120810.BatchWriteItem", "DynamoDB_20120810.CreateTable",
    "DynamoDB_20120810.DeleteTable", "DynamoDB_20120810.DescribeTable",  "DynamoDB_20120810.ListTables",
    "DynamoDB_20120810.UpdateTable"};

constexpr std::string_view kCreateTable =
    R"({"TableName":"fuzzed","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[
    {"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"},
    {"AttributeName":"depot","AttributeType":"S"},{"AttributeName":"speed","AttributeType":"N"}],
    "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
    "GlobalSecondaryIndexes":[{"IndexName":"by-depot","Projection":{"ProjectionType":"ALL"},"KeySchema":[
      {"AttributeName":"depot","KeyType":"HASH"},{"AttributeName":"speed","KeyType":"RANGE"}]}],
    "LocalSecondaryIndexes":[{"IndexName":"by-speed","Projection":{"ProjectionType":"KEYS_ONLY"},"KeySchema":[
      {"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"speed","KeyType":"RANGE"}]}]})";

class FuzzedApi {
 public:
  void call(std::string_view target, std::string_view body) {
    const std::size_t tables = store_->table_names().size();
    if (store_->find_table("fuzzed") == nullptr || tables > kTablesMax) make_anew();
    const HttpResponse response = answer(target, body);
    DROVER_CHECK(response.status == 200 || response.status == 400, "an answer or the client's error");
    boost::json::error_code error;
    const boost::json::value json = boost::json::parse(response.body, error);
    DROVER_CHECK(!error && json.is_object(), "every answer is a JSON object");
  }

 private:
  static constexpr std::size_t kTablesMax = 16;

  void make_anew() {
    for (const std::string& table : store_->table_names()) {
      DROVER_CHECK(store_->delete_table(table).ok(), "a listed table can be deleted");
    }
    DROVER_CHECK(answer("DynamoDB_20120810.CreateTable", kCreateTable).status == 200, "the table is made");
  }

  HttpResponse answer(std::string_view target, std::string_view body) {
    HttpRequest request;
    request.method = "POST";
    request.target = "/";
    request.body = body;
    request.content_type = "application/x-amz-json-1.0";
    request.amz_target = target;
    std::promise<HttpResponse> promise;
    api_->handle(request, [&promise](HttpResponse&& response) { promise.set_value(std::move(response)); });
    return promise.get_future().get();
  }

  std::unique_ptr<store::Store> store_ = store::Store::open({.workers = 1, .shards_per_table = 2});
  std::unique_ptr<DynamoDbApi> api_ = DynamoDbApi::make(*store_);
};

}  // namespace
}  // namespace drover::server

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static drover::server::FuzzedApi api;
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data + 1), size - 1);
  api.call(drover::server::kTargets[(data[0] - unsigned{'0'}) % std::size(drover::server::kTargets)], body);
  return 0;
}

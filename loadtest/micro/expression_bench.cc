#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <future>
#include <memory>
#include <string>
#include <string_view>

#include "drover/store/store.h"
#include "dynamodb/api.h"
#include "expression/evaluate.h"
#include "expression/parser.h"

// What the API costs per call without HTTP: the whole way of the Query that matters ("the ten newest readings"), from
// the request's JSON to the answer's, over collections of two sizes; and the parts of the expression language by
// themselves.
namespace drover::server {
namespace {

constexpr int kVehicles = 16;
constexpr int kBatchItems = 25;

HttpRequest make_request(std::string_view target, std::string_view body) {
  HttpRequest request;
  request.method = "POST";
  request.target = "/";
  request.body = body;
  request.content_type = "application/x-amz-json-1.0";
  request.amz_target = target;
  return request;
}

// A table of readings behind an API.
class Fleet {
 public:
  explicit Fleet(int readings_per_vehicle) {
    call("DynamoDB_20120810.CreateTable", R"({"TableName":"telemetry","BillingMode":"PAY_PER_REQUEST",
        "AttributeDefinitions":[{"AttributeName":"vehicleId","AttributeType":"S"},
                                {"AttributeName":"recordedAt","AttributeType":"S"}],
        "KeySchema":[{"AttributeName":"vehicleId","KeyType":"HASH"},{"AttributeName":"recordedAt","KeyType":"RANGE"}]})");
    for (int vehicle = 0; vehicle < kVehicles; ++vehicle) {
      for (int first = 0; first < readings_per_vehicle; first += kBatchItems) put_batch(vehicle, first);
    }
    store_->drain(60'000);
  }

  std::string call(std::string_view target, std::string_view body) {
    std::promise<std::string> promise;
    api_->handle(make_request(target, body),
                 [&](HttpResponse&& response) { promise.set_value(std::move(response.body)); });
    return promise.get_future().get();
  }

  DynamoDbApi& api() { return *api_; }

 private:
  void put_batch(int vehicle, int first) {
    std::string body = R"({"RequestItems":{"telemetry":[)";
    for (int i = first; i < first + kBatchItems; ++i) {
      char item[400];
      std::snprintf(
          item, sizeof item,
          R"(%s{"PutRequest":{"Item":{"vehicleId":{"S":"VEH#V-%d"},"recordedAt":{"S":"TS#2026-06-23T%02d:%02d:%02d.%03dZ"},)"
          R"("speedKph":{"N":"%d.%d"},"coolantC":{"N":"%d.5"},"fuelPct":{"N":"%d.1"}}}})",
          i > first ? "," : "", vehicle, i / 3'600'000 % 24, i / 60'000 % 60, i / 1000 % 60, i % 1000, i % 120, i % 10,
          80 + i % 20, i % 100);
      body += item;
    }
    call("DynamoDB_20120810.BatchWriteItem", body + "]}}");
  }

  std::unique_ptr<store::Store> store_ = store::Store::open({});
  std::unique_ptr<DynamoDbApi> api_ = DynamoDbApi::make(*store_);
};

void measure(benchmark::State& state, Fleet& fleet, const std::string& parameters) {
  const std::string body = R"({"TableName":"telemetry",)" + parameters + "}";
  const HttpRequest request = make_request("DynamoDB_20120810.Query", body);
  std::uint64_t bytes = 0;
  for (auto _ : state) {
    fleet.api().handle(request, [&bytes](HttpResponse&& response) { bytes += response.body.size(); });
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}

constexpr const char* kNewest =
    R"("KeyConditionExpression":"vehicleId = :v","ExpressionAttributeValues":{":v":{"S":"VEH#V-7"}},
    "ScanIndexForward":false,"Limit":10)";

void BM_NewestTen(benchmark::State& state) {
  Fleet fleet(static_cast<int>(state.range(0)));
  measure(state, fleet, kNewest);
}
BENCHMARK(BM_NewestTen)->Arg(1'000)->Arg(50'000);

void BM_NewestTenInATimeSlice(benchmark::State& state) {
  Fleet fleet(1'000);
  measure(state, fleet,
          R"("KeyConditionExpression":"vehicleId = :v AND recordedAt BETWEEN :a AND :b","ExpressionAttributeValues":{
          ":v":{"S":"VEH#V-7"},":a":{"S":"TS#2026-06-23T00:00:00.100Z"},":b":{"S":"TS#2026-06-23T00:00:00.800Z"}},
          "ScanIndexForward":false,"Limit":10)");
}
BENCHMARK(BM_NewestTenInATimeSlice);

void BM_NewestTenFiltered(benchmark::State& state) {
  Fleet fleet(1'000);
  measure(
      state, fleet,
      R"json("KeyConditionExpression":"vehicleId = :v","FilterExpression":"speedKph > :s AND attribute_exists(fuelPct)",
          "ExpressionAttributeValues":{":v":{"S":"VEH#V-7"},":s":{"N":"50"}},"ScanIndexForward":false,"Limit":10)json");
}
BENCHMARK(BM_NewestTenFiltered);

void BM_ParseKeyCondition(benchmark::State& state) {
  expression::Placeholders placeholders;
  for (const char* name : {":v", ":a", ":b"}) placeholders.values[name].value = model::AttributeValue::string("x");
  for (auto _ : state) {
    benchmark::DoNotOptimize(expression::parse_condition("vehicleId = :v AND recordedAt BETWEEN :a AND :b",
                                                         "KeyConditionExpression", placeholders));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_ParseKeyCondition);

void BM_EvaluateFilter(benchmark::State& state) {
  expression::Placeholders placeholders;
  placeholders.values[":s"].value = model::AttributeValue::of_number(model::Decimal(50));
  const auto condition =
      expression::parse_condition("speedKph > :s AND attribute_exists(fuelPct)", "FilterExpression", placeholders);
  const model::Item item{{"speedKph", model::AttributeValue::of_number(model::Decimal(61))},
                         {"fuelPct", model::AttributeValue::of_number(model::Decimal(54))}};
  for (auto _ : state) benchmark::DoNotOptimize(expression::matches(*condition, item));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_EvaluateFilter);

}  // namespace
}  // namespace drover::server

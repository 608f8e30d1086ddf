#include "drover/server/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/json/parse.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/client.h"
#include "drover/model/time.h"
#include "table_sink.h"
#include "tests/unit/ingest/mock_kafka.h"

namespace drover::server {
namespace {

namespace json = boost::json;
namespace http = boost::beast::http;
using ingest::test::MockKafka;
using testing::HasSubstr;

/// Waits until `is_so`, for at most half a minute; whether it is.
bool eventually(const std::function<bool()>& is_so) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

model::TableSchema telemetry_table() {
  model::TableSchema table;
  table.name = "telemetry";
  table.key.partition_key = {"vehicleId", model::KeyType::kString};
  table.key.sort_key = model::KeyAttribute{"recordedAt", model::KeyType::kString};
  table.time_sort_key = model::TimeSortKey{};
  table.inherit = {"depotCode"};
  model::IndexSchema depot;
  depot.name = "depot";
  depot.key.partition_key = {"depotCode", model::KeyType::kString};
  depot.key.sort_key = table.key.sort_key;
  table.indexes.push_back(depot);
  return table;
}

ingest::Mapping fleet_topic() {
  ingest::Mapping topic;
  topic.topic = "fleet";
  topic.table = "telemetry";
  topic.id_path = ingest::JsonPath::parse("vehicleId").value();
  topic.time_path = ingest::JsonPath::parse("recordedAt").value();
  topic.partition_key = ingest::KeyTemplate::parse("VEH#{vehicleId}").value();
  topic.sort_key = ingest::KeyTemplate::parse("TS#{recordedAt}").value();
  topic.meta = ingest::MetaMapping{};
  topic.meta->path = ingest::JsonPath::parse("kind").value();
  topic.meta->equals = "meta";
  return topic;
}

/// Without Kafka, on free ports.
Config api_alone() {
  Config config;
  config.api.port = 0;
  config.admin.port = 0;
  config.stop_timeout_ms = 5'000;
  config.kafka.stop_timeout_ms = 2'000;
  config.tables = {telemetry_table()};
  return config;
}

Config reading_from(const std::string& brokers) {
  Config config = api_alone();
  config.kafka.brokers = brokers;
  config.kafka.handles = 1;
  config.topics = {fleet_topic()};
  return config;
}

std::string url(const Address& address) {
  return "http://" + address.host + ":" + std::to_string(address.port);
}

struct Answer {
  unsigned status = 0;
  std::string body;
};

Answer get(const Address& address, const std::string& path, http::verb verb = http::verb::get) {
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket socket(context);
  socket.connect({boost::asio::ip::make_address(address.host), address.port});
  http::request<http::string_body> request{verb, path, 11};
  request.set(http::field::host, address.host);
  http::write(socket, request);
  boost::beast::flat_buffer buffer;
  http::response<http::string_body> response;
  http::read(socket, buffer, response);
  return {response.result_int(), response.body()};
}

json::object call(Pipeline& pipeline, const std::string& operation, const char* request) {
  auto client = cli::Client::connect(url(pipeline.api_address()));
  if (!client.ok()) throw std::runtime_error(client.status().message());
  auto answer = client->call(operation, json::parse(request).as_object());
  if (!answer.ok()) throw std::runtime_error(answer.status().message());
  return std::move(answer).value();
}

json::array query_vehicle(Pipeline& pipeline, const std::string& key) {
  const std::string request = R"({"TableName": "telemetry", "KeyConditionExpression": "vehicleId = :v",
      "ExpressionAttributeValues": {":v": {"S": ")" +
                              key + R"("}}})";
  return call(pipeline, "Query", request.c_str()).at("Items").as_array();
}

TEST(Pipeline, RecordsOfKafkaAreAnsweredByQueriesOfTheTableAndItsIndex) {
  MockKafka kafka;
  kafka.create_topic("fleet", 2);
  kafka.produce("fleet", 0, {R"({"kind": "meta", "vehicleId": "V-7741", "plate": "LN-12", "depotCode": "DEP-LON-3"})"});
  kafka.produce("fleet", 0, {R"({"vehicleId": "V-7741", "recordedAt": "2026-06-23T09:00:01Z", "speedKph": 50})"});
  const auto pipeline = Pipeline::make(reading_from(kafka.bootstrap())).value();
  ASSERT_TRUE(pipeline->start().ok());
  ASSERT_TRUE(eventually([&] { return pipeline->store().stats().rows_stored == 2; }));
  ASSERT_TRUE(pipeline->store().drain(10'000));

  const json::array items = query_vehicle(*pipeline, "VEH#V-7741");
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].at("recordedAt").at("S").as_string(), "META");
  EXPECT_EQ(items[1].at("recordedAt").at("S").as_string(), "TS#2026-06-23T09:00:01.000Z");
  EXPECT_EQ(items[1].at("depotCode").at("S").as_string(), "DEP-LON-3");
  const json::object of_depot = call(*pipeline, "Query", R"({"TableName": "telemetry", "IndexName": "depot",
      "KeyConditionExpression": "depotCode = :d", "ExpressionAttributeValues": {":d": {"S": "DEP-LON-3"}}})");
  EXPECT_EQ(of_depot.at("Count"), json::value(2));
  EXPECT_TRUE(pipeline->stop().ok());
}

TEST(Pipeline, ABrokenClockMovesNothingAndAReadingTooOldDoesNotComeBack) {
  MockKafka kafka;
  kafka.create_topic("fleet", 2);
  const auto reading = [](std::int64_t time_ms) {
    return R"({"vehicleId":"V-7741","recordedAt":")" +
           model::format_time(model::TimeNs{time_ms * 1'000'000}, model::TimePrecision::kMillis) + "\"}";
  };
  constexpr std::int64_t kHourMs = 3'600'000;
  const std::int64_t now_ms = model::system_clock_ms();
  const std::string newest = reading(now_ms);
  kafka.produce("fleet", 0, {reading(now_ms + 100 * 365 * 24 * kHourMs), reading(now_ms - 2 * kHourMs), newest});
  Config config = reading_from(kafka.bootstrap());
  config.retention["telemetry"].retain_ms = kHourMs;
  config.topics[0].ahead_ms_max = kHourMs;
  const auto pipeline = Pipeline::make(config).value();
  ASSERT_TRUE(pipeline->start().ok());
  ASSERT_TRUE(eventually([&] { return pipeline->store().stats().rows_stored == 1; }));
  const json::array items = query_vehicle(*pipeline, "VEH#V-7741");
  ASSERT_EQ(items.size(), 1u);
  EXPECT_THAT(newest, HasSubstr(std::string(items[0].at("recordedAt").at("S").as_string()).substr(3)));
  const std::string scraped = get(pipeline->admin_address(), "/metrics").body;
  EXPECT_THAT(scraped, HasSubstr("drover_records_rejected_total{topic=\"fleet\",reason=\"ahead_of_time\"} 1\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_records_rejected_total{topic=\"fleet\",reason=\"expired\"} 1\n"));
}

TEST(Pipeline, ADurableOneGoesOnWhereItStopped) {
  MockKafka kafka;
  kafka.create_topic("fleet", 2);
  kafka.produce("fleet", 0, {R"({"kind": "meta", "vehicleId": "V-7741", "plate": "LN-12", "depotCode": "DEP-LON-3"})"});
  kafka.produce("fleet", 0, {R"({"vehicleId": "V-7741", "recordedAt": "2026-06-23T09:00:01Z", "speedKph": 50})"});
  std::string folder = (std::filesystem::temp_directory_path() / "drover-pipeline-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  Config config = reading_from(kafka.bootstrap());
  config.store_directory = folder + "/store";
  {
    auto made = Pipeline::make(config);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const auto pipeline = std::move(made).value();
    ASSERT_TRUE(pipeline->start().ok());
    ASSERT_TRUE(eventually([&] { return pipeline->store().stats().rows_stored == 2; }));
    call(*pipeline, "PutItem", R"({"TableName": "telemetry",
        "Item": {"vehicleId": {"S": "VEH#V-1"}, "recordedAt": {"S": "META"}, "plate": {"S": "X"}}})");
    ASSERT_TRUE(pipeline->stop().ok());
    EXPECT_EQ(pipeline->checkpoint_stats().written, 1u);
  }
  kafka.produce("fleet", 0, {R"({"vehicleId": "V-7741", "recordedAt": "2026-06-23T09:00:02Z", "speedKph": 51})"});
  config.kafka.group = "another";  // the mock cluster's group does not take its member back; positions are the store's
  {
    auto made = Pipeline::make(config);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const auto pipeline = std::move(made).value();
    EXPECT_EQ(pipeline->store().recovery().writes, 0u);  // the last cut contains them
    ASSERT_TRUE(pipeline->start().ok());
    ASSERT_TRUE(eventually([&] { return query_vehicle(*pipeline, "VEH#V-7741").size() == 3; }));
    EXPECT_EQ(query_vehicle(*pipeline, "VEH#V-7741")[2].at("depotCode").at("S").as_string(), "DEP-LON-3");
    EXPECT_EQ(query_vehicle(*pipeline, "VEH#V-1").size(), 1u);
    EXPECT_EQ(pipeline->store().stats().rows_repeated, 0u);
    EXPECT_THAT(get(pipeline->admin_address(), "/metrics").body, HasSubstr("drover_store_writable 1\n"));
  }
  std::filesystem::remove_all(folder);
}

TEST(Pipeline, TheAdminAddressShowsTheWork) {
  MockKafka kafka;
  kafka.create_topic("fleet", 1);
  for (int i = 0; i < 300; ++i) {
    const std::string second = std::to_string(1'782'205'200 + i);
    kafka.produce("fleet", 0, {R"({"vehicleId": "HOT", "recordedAt": )" + second + R"(000, "speedKph": 50})"});
  }
  const auto pipeline = Pipeline::make(reading_from(kafka.bootstrap())).value();
  ASSERT_TRUE(pipeline->start().ok());
  const Address admin = pipeline->admin_address();
  ASSERT_TRUE(eventually([&] { return pipeline->store().stats().rows_stored == 300; }));
  ASSERT_TRUE(eventually([&] { return get(admin, "/readyz").status == 200; })) << get(admin, "/readyz").body;

  EXPECT_EQ(get(admin, "/healthz").status, 200u);
  EXPECT_THAT(get(admin, "/").body, HasSubstr("/metrics"));
  EXPECT_THAT(get(admin, "/metrics").body, HasSubstr("drover_records_stored_total 300\n"));
  EXPECT_THAT(get(admin, "/metrics?x=1").body,
              HasSubstr("drover_records_consumed_total{topic=\"fleet\",partition=\"0\"} 300\n"));
  EXPECT_EQ(get(admin, "/nothing").status, 404u);
  EXPECT_EQ(get(admin, "/metrics", http::verb::post).status, 405u);

  const json::value heat = json::parse(get(admin, "/heat").body);
  const json::value& table = heat.at("spaces").at(0);
  EXPECT_EQ(table.at("table").as_string(), "telemetry");
  EXPECT_EQ(table.at("index").as_string(), "");
  EXPECT_EQ(table.at("largest_collection").at("key").as_string(), "VEH#HOT");
  EXPECT_EQ(table.at("largest_collection").at("items"), json::value(300));
  ASSERT_FALSE(table.at("hottest_keys").as_array().empty());
  EXPECT_EQ(table.at("hottest_keys").at(0).at("key").as_string(), "VEH#HOT");
  EXPECT_EQ(table.at("hottest_keys").at(0).at("share_of_shard"), json::value(1.0));
  double records = 0;
  std::int64_t segments = 0;
  for (const json::value& shard : table.at("shards").as_array()) {
    records += shard.at("records").to_number<double>();
    segments +=
        shard.at("segments").at(1).to_number<std::int64_t>() - shard.at("segments").at(0).to_number<std::int64_t>();
    EXPECT_GE(shard.at("records_per_second").to_number<double>(), 0);
  }
  EXPECT_EQ(records, 300);
  EXPECT_EQ(segments, model::kSegments);
}

TEST(Pipeline, WithoutABrokerItAnswersAndSaysThatItIsNotReady) {
  const auto pipeline = Pipeline::make(reading_from("127.0.0.1:1")).value();
  ASSERT_TRUE(pipeline->start().ok());
  EXPECT_TRUE(query_vehicle(*pipeline, "VEH#1").empty());
  ASSERT_TRUE(eventually([&] { return !pipeline->ingest_stats().last_error.empty(); }));
  const Answer ready = get(pipeline->admin_address(), "/readyz");
  EXPECT_EQ(ready.status, 503u);
  const json::value said = json::parse(ready.body);
  EXPECT_EQ(said.at("ready"), json::value(false));
  EXPECT_EQ(said.at("connected"), json::value(false));
  EXPECT_FALSE(said.at("reason").as_string().empty());
  EXPECT_EQ(get(pipeline->admin_address(), "/healthz").status, 200u);
}

TEST(Pipeline, TheApiAloneIsReadyAtOnce) {
  const auto pipeline = Pipeline::make(api_alone()).value();
  ASSERT_TRUE(pipeline->start().ok());
  EXPECT_EQ(get(pipeline->admin_address(), "/readyz").status, 200u);
}

TEST(Pipeline, ADeletedTablesRecordsAreCountedAndTheRestGoesOn) {
  MockKafka kafka;
  kafka.create_topic("fleet", 1);
  const auto pipeline = Pipeline::make(reading_from(kafka.bootstrap())).value();
  ASSERT_TRUE(pipeline->start().ok());
  call(*pipeline, "DeleteTable", R"({"TableName": "telemetry"})");
  kafka.produce("fleet", 0, {R"({"vehicleId": "V-1", "recordedAt": "2026-06-23T09:00:01Z"})"});
  EXPECT_TRUE(eventually([&] { return pipeline->ingest_stats().rows_dropped == 1; }));

  // Made anew with the same keys, it takes what comes from then on; with other keys it would not.
  call(*pipeline, "CreateTable", R"({"TableName": "telemetry", "BillingMode": "PAY_PER_REQUEST",
      "AttributeDefinitions": [{"AttributeName": "vehicleId", "AttributeType": "S"},
                               {"AttributeName": "recordedAt", "AttributeType": "S"}],
      "KeySchema": [{"AttributeName": "vehicleId", "KeyType": "HASH"}, {"AttributeName": "recordedAt", "KeyType": "RANGE"}]})");
  kafka.produce("fleet", 0, {R"({"vehicleId": "V-1", "recordedAt": "2026-06-23T09:00:02Z"})"});
  EXPECT_TRUE(eventually([&] { return query_vehicle(*pipeline, "VEH#V-1").size() == 1; }));
}

TEST(Pipeline, ATakenPortIsAnErrorAndNothingRuns) {
  const auto first = Pipeline::make(api_alone()).value();
  ASSERT_TRUE(first->start().ok());
  Config config = api_alone();
  config.admin.port = first->admin_address().port;
  const auto second = Pipeline::make(config).value();
  const model::Status status = second->start();
  EXPECT_EQ(status.code(), model::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("--set admin.port=N"));
  EXPECT_FALSE(cli::Client::connect(url(second->api_address())).ok()) << "its API has been closed again";
}

TEST(Pipeline, AWrongLibrdkafkaPropertyIsInvalid) {
  Config config = reading_from("127.0.0.1:1");
  config.kafka.librdkafka["no.such.property"] = "x";
  const model::Status status = Pipeline::make(config).value()->start();
  EXPECT_EQ(status.code(), model::StatusCode::kInvalid);
  EXPECT_THAT(status.message(), HasSubstr("no.such.property"));
}

TEST(Pipeline, OneTableTwiceWithOtherKeysIsAnError) {
  Config config = api_alone();
  config.tables.push_back(telemetry_table());
  config.tables.back().key.partition_key.name = "vin";
  const model::Status status = Pipeline::make(config).value()->start();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("table telemetry"));
}

TEST(Pipeline, ATableOnDiskGetsTheGlobalIndexesThatTheConfigHasMore) {
  std::string folder = (std::filesystem::temp_directory_path() / "drover-pipeline-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  Config config = api_alone();
  config.store_directory = folder + "/store";
  const auto start = [&] {
    auto pipeline = Pipeline::make(config).value();
    const model::Status status = pipeline->start();
    EXPECT_TRUE(status.ok()) << status.message();
    return pipeline;
  };
  call(*start(), "PutItem", R"({"TableName": "telemetry",
      "Item": {"vehicleId": {"S": "VEH#V-1"}, "recordedAt": {"S": "META"}, "plate": {"S": "X"}}})");
  model::IndexSchema plate;
  plate.name = "plate";
  plate.key.partition_key = {"plate", model::KeyType::kString};
  config.tables[0].indexes.insert(config.tables[0].indexes.begin(), plate);
  {
    const auto pipeline = start();
    const auto table = pipeline->store().find_table("telemetry");
    ASSERT_TRUE(eventually([&] { return !table->is_filling("plate"); }));
    int found = 0;
    EXPECT_TRUE(table->read("plate", "X", {}, true, [&](const store::StoredItem&) { return ++found; }).ok());
    EXPECT_EQ(found, 1);
  }
  start();
  config.tables[0].indexes.erase(config.tables[0].indexes.begin());
  EXPECT_NE(start()->store().find_table("telemetry")->schema().find_index("plate"), nullptr) << "it stays";
  config.tables[0].indexes[0].projection = model::ProjectionType::kKeysOnly;
  EXPECT_FALSE(Pipeline::make(config).value()->start().ok());
  std::filesystem::remove_all(folder);
}

TEST(Pipeline, StopsInTimeAlsoWhenTheBrokerHasGone) {
  MockKafka kafka;
  kafka.create_topic("fleet", 1);
  kafka.produce("fleet", 0, {R"({"vehicleId": "V-1", "recordedAt": "2026-06-23T09:00:01Z"})"});
  const auto pipeline = Pipeline::make(reading_from(kafka.bootstrap())).value();
  ASSERT_TRUE(pipeline->start().ok());
  ASSERT_TRUE(eventually([&] { return pipeline->store().stats().rows_stored == 1; }));
  kafka.set_broker_up(false);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(pipeline->stop().ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_TRUE(pipeline->stop().ok()) << "a second stop has nothing to do";
}

TEST(Pipeline, RemovesWhatHasExpiredByTheAttributeThatTheConfigNames) {
  Config config = api_alone();
  config.retention["telemetry"].ttl_attribute = "expiresAt";
  const auto pipeline = Pipeline::make(config).value();
  ASSERT_TRUE(pipeline->start().ok());
  const std::int64_t second_ago = model::system_clock_ms() / 1000 - 1;
  const std::string item = R"({"TableName":"telemetry","Item":{"vehicleId":{"S":"VEH#1"},"recordedAt":{"S":"A"},)"
                           R"("expiresAt":{"N":")" +
                           std::to_string(second_ago) + R"("}}})";
  call(*pipeline, "PutItem", item.c_str());
  EXPECT_TRUE(eventually([&] {
    return !call(*pipeline, "GetItem",
                 R"({"TableName":"telemetry","Key":{"vehicleId":{"S":"VEH#1"},"recordedAt":{"S":"A"}}})")
                .contains("Item");
  }));
  EXPECT_THAT(get(pipeline->admin_address(), "/metrics").body,
              HasSubstr("drover_items_expired_total{table=\"telemetry\"} 1\n"));
}

/// A table with three shards, each of which can be told to be full or gone.
class FakeTable final : public store::Table {
 public:
  explicit FakeTable(model::TableSchema schema) : schema_(std::move(schema)) {}

  const model::TableSchema& schema() const override { return schema_; }
  std::int64_t created_ms() const override { return 0; }
  model::Retention retention() const override { return {}; }
  bool is_filling(std::string_view) const override { return false; }
  std::vector<partitioner::RoutedBatch> route(std::shared_ptr<const model::RowBatch> rows) const override {
    std::vector<partitioner::RoutedBatch> parts;
    for (std::uint16_t shard = 0; shard < 3; ++shard) parts.push_back({rows, {shard}, partitioner::ShardId{shard}, 1});
    return parts;
  }
  model::Status submit(partitioner::RoutedBatch&& batch) override {
    const std::uint16_t shard = batch.shard.value;
    if (!status[shard].ok()) return status[shard];
    const partitioner::RoutedBatch taken = std::move(batch);
    submitted.push_back(shard);
    return {};
  }
  model::Status write(store::ItemWrite&&) override { return {}; }
  model::Status read(std::string_view, std::string_view, const store::KeyRange&, bool,
                     const store::Visit&) const override {
    return {};
  }
  model::Status scan(std::string_view, std::uint32_t, std::uint32_t, const std::optional<ScanPosition>&,
                     const store::Visit&) const override {
    return {};
  }
  Size size(std::string_view) const override { return {}; }

  std::array<model::Status, 3> status;
  std::vector<std::uint16_t> submitted;

 private:
  const model::TableSchema schema_;
};

class FakeStore final : public store::Store {
 public:
  model::AttributeNames& names() override { return names_; }
  model::Result<std::shared_ptr<store::Table>> create_table(const model::TableSchema&) override { return table; }
  model::Status delete_table(std::string_view) override { return {}; }
  model::Status change_retention(std::string_view, const std::function<model::Status(model::Retention&)>&) override {
    return {};
  }
  bool expire_step() override { return true; }
  model::Status create_index(std::string_view, const model::IndexSchema&) override { return {}; }
  model::Status delete_index(std::string_view, std::string_view) override { return {}; }
  std::shared_ptr<store::Table> find_table(std::string_view name) const override {
    return table != nullptr && table->schema().name == name ? table : nullptr;
  }
  std::vector<std::string> table_names() const override { return {}; }
  store::StoreStats stats() const override { return {}; }
  bool idle() const override { return true; }
  bool drain(std::int64_t) override { return true; }
  const store::Recovery& recovery() const override { return recovery_; }
  model::Result<std::unique_ptr<store::Cut>> cut(std::int64_t) override { return model::invalid("in memory"); }
  model::Status compact() override { return {}; }
  model::Status back_up(const std::string&) override { return {}; }
  Room room() const override { return {}; }

  std::shared_ptr<store::Table> table;

 private:
  model::AttributeNames names_;
  store::Recovery recovery_;
};

class TableSinkTest : public testing::Test {
 protected:
  std::unique_ptr<ingest::RowSink::Pending> route() {
    return sink_.route("telemetry", std::make_shared<const model::RowBatch>());
  }

  FakeStore store_;
  TableSink sink_{store_, {telemetry_table()}};
  std::shared_ptr<FakeTable> table_ = std::make_shared<FakeTable>(telemetry_table());

  void SetUp() override { store_.table = table_; }
};

using TableSinkRoute = TableSinkTest;

TEST_F(TableSinkRoute, HandsEveryShardItsPart) {
  EXPECT_TRUE(route()->offer().ok());
  EXPECT_THAT(table_->submitted, testing::ElementsAre(0, 1, 2));
}

TEST_F(TableSinkRoute, AFullShardKeepsItsPartAloneAndGetsItOfferedAgain) {
  table_->status[1] = {model::StatusCode::kFull, "full"};
  const auto pending = route();
  EXPECT_EQ(pending->offer().code(), model::StatusCode::kFull);
  EXPECT_EQ(pending->offer().code(), model::StatusCode::kFull);
  EXPECT_THAT(table_->submitted, testing::ElementsAre(0, 2)) << "each of the others got its part once";
  table_->status[1] = {};
  EXPECT_TRUE(pending->offer().ok());
  EXPECT_THAT(table_->submitted, testing::ElementsAre(0, 2, 1));
}

TEST_F(TableSinkRoute, ATableThatIsGoneTakesNothing) {
  table_->status[0] = {model::StatusCode::kStopping, "gone"};
  EXPECT_EQ(route()->offer().code(), model::StatusCode::kStopping);
  store_.table = nullptr;
  EXPECT_EQ(route()->offer().code(), model::StatusCode::kStopping);
}

TEST_F(TableSinkRoute, ATableOfTheSameNameWithOtherKeysTakesNothing) {
  model::TableSchema other = telemetry_table();
  other.key.partition_key.type = model::KeyType::kNumber;
  const auto table = std::make_shared<FakeTable>(other);
  store_.table = table;
  EXPECT_EQ(route()->offer().code(), model::StatusCode::kStopping);
  EXPECT_TRUE(table->submitted.empty());
}

}  // namespace
}  // namespace drover::server

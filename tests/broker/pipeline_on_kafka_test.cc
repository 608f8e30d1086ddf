#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "drover/server/pipeline.h"
#include "tests/support/kafka_broker.h"
#include "tests/support/tables.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/ingest/decoding.h"

namespace drover::server {
namespace {

using drover::test::KafkaBroker;
using drover::test::ProducedRecord;
using testing::ElementsAre;

constexpr std::chrono::seconds kPatience{60};
constexpr const char* kVehicle = "VEH#V-7741";

template <typename Predicate>
bool eventually(Predicate&& predicate) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!predicate()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

ProducedRecord reading(int second, int speed, std::int64_t timestamp_ms) {
  const std::string two_digits = (second < 10 ? "0" : "") + std::to_string(second);
  return {"V-7741",
          R"({"vehicleId":"V-7741","recordedAt":"2026-06-23T09:00:)" + two_digits + R"(Z","speedKph":)" +
              std::to_string(speed) + "}",
          timestamp_ms};
}

class PipelineOnKafka : public testing::Test {
 protected:
  void SetUp() override { kafka->create_topic("telemetry", 2); }

  std::unique_ptr<Pipeline> start(const std::string& store_directory = {}) {
    Config config;
    config.store_directory = store_directory;
    config.kafka.brokers = kafka->bootstrap();
    config.tables = {ingest::test::telemetry_table(model::TimePrecision::kSeconds)};
    config.topics = {ingest::test::telemetry_mapping()};
    config.api.port = config.admin.port = 0;
    std::unique_ptr<Pipeline> pipeline = Pipeline::make(std::move(config)).value();
    const model::Status status = pipeline->start();
    EXPECT_TRUE(status.ok()) << status.message();
    return pipeline;
  }

  static std::vector<model::Item> readings(Pipeline& pipeline) {
    return drover::test::read_items(*pipeline.store().find_table("telemetry"), pipeline.store().names(), "", kVehicle);
  }
  static std::uint64_t consumed(const Pipeline& pipeline) {
    std::uint64_t records = 0;
    for (const ingest::PartitionStats& partition : pipeline.ingest_stats().partitions) records += partition.records;
    return records;
  }
  /// Waits until so many records are read and applied.
  static bool wait_for(Pipeline& pipeline, std::uint64_t records) {
    return eventually([&] { return consumed(pipeline) >= records && pipeline.store().idle(); });
  }

  std::unique_ptr<KafkaBroker> kafka = KafkaBroker::start({{"group.initial.rebalance.delay.ms", "0"}});
};

// A C and a Java producer hash keys differently, so one vehicle's records can lie in two partitions. The later log time
// wins, whichever partition is read first.
TEST_F(PipelineOnKafka, OneVehicleOverTwoPartitionsIsOneCollection) {
  constexpr std::int64_t kStartMs = 1'700'000'000'000;
  std::vector<ProducedRecord> even;
  std::vector<ProducedRecord> odd;
  for (int second = 0; second < 60; second += 2) {
    even.push_back(reading(second, 10, kStartMs + second * 1000));
    odd.push_back(reading(second + 1, 10, kStartMs + second * 1000 + 1000));
  }
  even.push_back(reading(7, 99, kStartMs + 100'000));  // later than the other partition's reading of the same second
  odd.push_back(reading(8, 55, kStartMs + 200'000));
  even.push_back(reading(8, 44, kStartMs + 150'000));  // earlier than that
  kafka->produce("telemetry", 0, even);
  kafka->produce("telemetry", 1, odd);
  const auto pipeline = start();
  ASSERT_TRUE(wait_for(*pipeline, even.size() + odd.size()));
  const std::vector<model::Item> items = readings(*pipeline);
  ASSERT_EQ(items.size(), 60U);
  for (std::size_t second = 0; second < items.size(); ++second) {
    const int speed = second == 7 ? 99 : second == 8 ? 55 : 10;
    EXPECT_EQ(items[second].at("speedKph"), drover::test::number(speed)) << second;
  }
}

TEST_F(PipelineOnKafka, ARestartReadsTheTopicAgainToTheSameItems) {
  std::vector<ProducedRecord> records;
  for (int second = 0; second < 60; ++second) records.push_back(reading(second, second, 1'700'000'000'000 + second));
  kafka->produce("telemetry", 0, records);
  std::vector<model::Item> before;
  {
    const auto pipeline = start();
    ASSERT_TRUE(wait_for(*pipeline, records.size()));
    before = readings(*pipeline);
    ASSERT_TRUE(pipeline->stop().ok());
  }
  ASSERT_EQ(before.size(), 60U);
  const auto pipeline = start();
  ASSERT_TRUE(wait_for(*pipeline, records.size()));
  EXPECT_EQ(readings(*pipeline), before);
}

// Goal: what a topic that was made anew holds is read, whatever its offsets say; and what Kafka let go of is counted.
TEST_F(PipelineOnKafka, ATopicMadeAnewIsReadWholeAndAGapIsCounted) {
  const drover::test::TemporaryDirectory directory;
  const auto fill = [&](int first, int count) {
    std::vector<ProducedRecord> records;
    for (int i = first; i < first + count; ++i) records.push_back(reading(i, i, 1'700'000'000'000 + i));
    kafka->produce("telemetry", 0, records);
  };
  const auto stored = [](Pipeline& pipeline, std::size_t count) {
    return eventually([&] { return pipeline.store().idle() && readings(pipeline).size() == count; });
  };
  fill(0, 10);
  {
    const auto pipeline = start(directory.path());
    ASSERT_TRUE(stored(*pipeline, 10));
    ASSERT_TRUE(pipeline->stop().ok());
  }
  kafka->delete_topic("telemetry");
  kafka->create_topic("telemetry", 2);
  fill(20, 30);
  {
    const auto pipeline = start(directory.path());
    ASSERT_TRUE(stored(*pipeline, 40));
    EXPECT_EQ(pipeline->ingest_stats().renewals, 1U);
    EXPECT_EQ(pipeline->ingest_stats().records_missed, 0U);
    ASSERT_TRUE(pipeline->stop().ok());
  }
  // Another start finds it as it was.
  fill(50, 5);
  {
    const auto pipeline = start(directory.path());
    ASSERT_TRUE(stored(*pipeline, 45));
    EXPECT_EQ(consumed(*pipeline), 5U);
    EXPECT_EQ(pipeline->ingest_stats().renewals, 0U);
    ASSERT_TRUE(pipeline->stop().ok());
  }
  fill(55, 4);
  kafka->delete_records("telemetry", 0, 37);
  const auto pipeline = start(directory.path());
  ASSERT_TRUE(stored(*pipeline, 47));
  EXPECT_EQ(pipeline->ingest_stats().renewals, 0U);
  EXPECT_EQ(pipeline->ingest_stats().records_missed, 2U);
}

TEST_F(PipelineOnKafka, BadRecordsAreCountedAndTheVehicleGoesOn) {
  kafka->produce("telemetry", 0,
                 {reading(1, 1, 0), {"V-7741", "{\"vehicleId\":"}, {"V-7741", "\xff"}, reading(2, 2, 0)});
  const auto pipeline = start();
  ASSERT_TRUE(wait_for(*pipeline, 4));
  EXPECT_EQ(readings(*pipeline).size(), 2U);
  const ingest::IngestStats stats = pipeline->ingest_stats();
  const auto& by_reason = stats.rejects.at(0).by_reason;
  EXPECT_EQ(by_reason[static_cast<std::size_t>(ingest::RejectReason::kNotJson)], 2U);
}

}  // namespace
}  // namespace drover::server

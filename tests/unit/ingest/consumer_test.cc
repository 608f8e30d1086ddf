#include "drover/ingest/consumer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "decoding.h"
#include "mock_kafka.h"
#include "recording_sink.h"

namespace drover::ingest::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::chrono::seconds kPatience{60};

/// Looks again until it is so; false: it never was.
template <typename Predicate>
bool eventually(Predicate&& predicate) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!predicate()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::vector<std::optional<std::string>> readings(std::size_t count) {
  std::vector<std::optional<std::string>> readings;
  for (std::size_t i = 0; i < count; ++i) {
    readings.push_back(R"({"vehicleId":"V-7741","recordedAt":"2026-06-23T09:00:01.000Z","n":)" + std::to_string(i) +
                       "}");
  }
  return readings;
}

std::vector<std::uint64_t> first_offsets(std::size_t count) {
  std::vector<std::uint64_t> offsets(count);
  std::iota(offsets.begin(), offsets.end(), 0);
  return offsets;
}

/// By either way of fetching.
class ConsumerTest : public testing::TestWithParam<Fetch> {
 protected:
  std::unique_ptr<Consumer> open(RowSink& sink, std::uint32_t handles = 1,
                                 const std::vector<std::string>& topics = {"telemetry"},
                                 const std::vector<model::SourcePosition>& positions = {}) {
    ConsumerOptions options;
    // The mock cluster's group does not take a member back that was there before a restart.
    if (!positions.empty()) options.group += "-" + std::to_string(++restarts);
    options.brokers = kafka.bootstrap();
    options.handles = handles;
    options.fetch = fetch;
    options.librdkafka = librdkafka;
    std::vector<Topic> mapped;
    for (const std::string& topic : topics) {
      mapped.push_back({telemetry_mapping(), telemetry_table()});
      mapped.back().mapping.topic = topic;
    }
    return std::move(Consumer::open(options, mapped, names, sink, positions)).value();
  }

  /// Reads a topic of so many records and tells where that ends.
  std::vector<model::SourcePosition> read_once(std::size_t records) {
    kafka.create_topic("telemetry", 1);
    kafka.produce("telemetry", 0, readings(records));
    RecordingSink sink;
    const auto consumer = open(sink);
    consumer->start();
    EXPECT_TRUE(sink.wait_for_rows(records));
    consumer->hold();
    std::vector<model::SourcePosition> positions = consumer->positions();
    consumer->release();
    return positions;
  }

  int restarts = 0;
  MockKafka kafka;
  Fetch fetch = GetParam();
  model::AttributeNames names;
  /// The mock broker waits out a session wherever two members have to rejoin.
  std::map<std::string, std::string> librdkafka = {{"heartbeat.interval.ms", "200"}, {"session.timeout.ms", "3000"}};
};

TEST_P(ConsumerTest, EachPartitionArrivesWholeAndInItsOrder) {
  kafka.create_topic("telemetry", 4);
  for (std::int32_t partition = 0; partition < 4; ++partition) kafka.produce("telemetry", partition, readings(2000));
  RecordingSink sink;
  const auto consumer = open(sink, 2);
  consumer->start();
  ASSERT_TRUE(sink.wait_for_rows(8000));
  for (std::uint16_t source = 1; source <= 4; ++source) EXPECT_EQ(sink.offsets()[source], first_offsets(2000));
}

TEST_P(ConsumerTest, SourcesAreNumberedByTopicAndPartition) {
  kafka.create_topic("b", 2);
  kafka.create_topic("a", 1);
  RecordingSink sink;
  const auto consumer = open(sink, 1, {"b", "a"});
  kafka.produce("b", 1, readings(20));
  kafka.produce("a", 0, readings(30));
  kafka.produce("b", 0, readings(10));
  consumer->start();
  ASSERT_TRUE(sink.wait_for_rows(60));
  EXPECT_EQ(sink.offsets(),
            (RecordingSink::Offsets{{1, first_offsets(10)}, {2, first_offsets(20)}, {3, first_offsets(30)}}));
}

TEST_P(ConsumerTest, AStartKnowsTheRecordThatWasReadLastAndGoesOnBehindIt) {
  const std::vector<model::SourcePosition> positions = read_once(10);
  ASSERT_EQ(positions.size(), 1U);
  EXPECT_EQ(positions[0].next_offset, 10);
  EXPECT_EQ(positions[0].last.offset.value, 9);
  RecordingSink sink;
  const auto consumer = open(sink, 1, {"telemetry"}, positions);
  consumer->start();
  // Nothing new: what was read stays as it was.
  ASSERT_TRUE(eventually([&] { return consumer->stats().connected; }));
  consumer->hold();
  EXPECT_EQ(consumer->positions(), positions);
  consumer->release();
  kafka.produce("telemetry", 0, readings(5));
  ASSERT_TRUE(sink.wait_for_rows(5));
  EXPECT_EQ(sink.offsets(), (RecordingSink::Offsets{{1, {10, 11, 12, 13, 14}}}));
  EXPECT_EQ(consumer->stats().renewals, 0U);
  EXPECT_EQ(consumer->stats().records_missed, 0U);
}

TEST_P(ConsumerTest, ATopicWithAnotherRecordInItsPlaceIsReadWholeAsANewSource) {
  std::vector<model::SourcePosition> positions = read_once(10);
  positions[0].next_offset = 6;
  positions[0].last = {model::Offset{5}, positions[0].last.hash};
  RecordingSink sink;
  const auto consumer = open(sink, 1, {"telemetry"}, positions);
  consumer->start();
  ASSERT_TRUE(sink.wait_for_rows(10));
  EXPECT_EQ(sink.offsets(), (RecordingSink::Offsets{{2, first_offsets(10)}}));
  EXPECT_EQ(consumer->stats().renewals, 1U);
  consumer->hold();
  const std::vector<model::SourcePosition> now = consumer->positions();
  consumer->release();
  ASSERT_EQ(now.size(), 1U);
  EXPECT_EQ(now[0].source, model::SourceId{2});
  EXPECT_EQ(now[0].next_offset, 10);
}

TEST_P(ConsumerTest, ATopicThatIsShorterThanWhatWasReadIsReadWholeAsANewSource) {
  const std::vector<model::SourcePosition> positions = read_once(10);
  for (const std::int64_t last : {10, 50}) {
    std::vector<model::SourcePosition> beyond = positions;
    beyond[0].next_offset = last + 1;
    beyond[0].last.offset.value = last;
    RecordingSink sink;
    const auto consumer = open(sink, 1, {"telemetry"}, beyond);
    consumer->start();
    ASSERT_TRUE(sink.wait_for_rows(10)) << last;
    EXPECT_EQ(sink.offsets(), (RecordingSink::Offsets{{2, first_offsets(10)}}));
    EXPECT_EQ(consumer->stats().renewals, 1U);
  }
}

TEST_P(ConsumerTest, MoreHandlesThanPartitionsAreFine) {
  kafka.create_topic("telemetry", 1);
  kafka.produce("telemetry", 0, readings(10));
  RecordingSink sink;
  const auto consumer = open(sink, 3);
  consumer->start();
  EXPECT_TRUE(sink.wait_for_rows(10));
}

TEST_P(ConsumerTest, AFullSinkStopsOnlyThePartitionsThatFeedIt) {
  kafka.create_topic("telemetry", 2);
  kafka.produce("telemetry", 0, readings(100));
  RecordingSink sink;
  sink.set_full(1, true);
  const auto consumer = open(sink);
  consumer->start();
  ASSERT_TRUE(sink.wait_until_refused(1));
  kafka.produce("telemetry", 0, readings(100));
  for (std::size_t rows = 500; rows <= 2000; rows += 500) {
    kafka.produce("telemetry", 1, readings(500));
    ASSERT_TRUE(sink.wait_for_rows_of(2, rows));
  }
  EXPECT_TRUE(sink.offsets()[1].empty());
  ASSERT_EQ(consumer->stats().partitions.size(), 2U);
  EXPECT_TRUE(consumer->stats().partitions[0].paused);
  EXPECT_FALSE(consumer->stats().partitions[1].paused);

  sink.set_full(1, false);
  ASSERT_TRUE(sink.wait_for_rows_of(1, 200));
  EXPECT_EQ(sink.offsets()[1], first_offsets(200));
  EXPECT_EQ(sink.offsets()[2], first_offsets(2000));
  EXPECT_TRUE(eventually([&] { return !consumer->stats().partitions[0].paused; }));
}

// A member whose sink is full longer than the session lasts is still alive for the group.
TEST_P(ConsumerTest, AFullSinkDoesNotLoseTheAssignment) {
  librdkafka["max.poll.interval.ms"] = "3000";
  kafka.create_topic("telemetry", 1);
  kafka.produce("telemetry", 0, readings(10));
  RecordingSink sink;
  sink.set_full(1, true);
  const auto consumer = open(sink);
  consumer->start();
  ASSERT_TRUE(sink.wait_until_refused(1));
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(4);
  while (std::chrono::steady_clock::now() < until) ASSERT_TRUE(sink.wait_until_refused(1));
  EXPECT_EQ(consumer->stats().rebalances, 1U);
  sink.set_full(1, false);
  EXPECT_TRUE(sink.wait_for_rows(10));
}

TEST_P(ConsumerTest, BadRecordsAreCountedByReasonAndTheOthersGoOn) {
  kafka.create_topic("telemetry", 1);
  std::vector<std::optional<std::string>> records = readings(5);
  records.insert(records.begin() + 2, {std::nullopt, "", "null", "{", "{}"});
  kafka.produce("telemetry", 0, records);
  RecordingSink sink;
  const auto consumer = open(sink);
  consumer->start();
  ASSERT_TRUE(sink.wait_for_rows(5));
  EXPECT_THAT(sink.offsets()[1], ElementsAre(0, 1, 7, 8, 9));
  const IngestStats stats = consumer->stats();
  ASSERT_EQ(stats.rejects.size(), 1U);
  const auto& by_reason = stats.rejects[0].by_reason;
  EXPECT_EQ(by_reason[static_cast<std::size_t>(RejectReason::kNullValue)], 1U);
  EXPECT_EQ(by_reason[static_cast<std::size_t>(RejectReason::kEmptyValue)], 1U);
  EXPECT_EQ(by_reason[static_cast<std::size_t>(RejectReason::kNotAnObject)], 1U);
  EXPECT_EQ(by_reason[static_cast<std::size_t>(RejectReason::kNotJson)], 1U);
  EXPECT_EQ(by_reason[static_cast<std::size_t>(RejectReason::kNoId)], 1U);
}

TEST_P(ConsumerTest, StatsTellWhatWasReadAndThatNothingWaits) {
  kafka.create_topic("telemetry", 1);
  kafka.produce("telemetry", 0, readings(100));
  RecordingSink sink;
  const auto consumer = open(sink);
  EXPECT_FALSE(consumer->stats().connected);
  consumer->start();
  ASSERT_TRUE(sink.wait_for_rows(100));
  ASSERT_TRUE(eventually([&] { return consumer->stats().connected; }));
  const IngestStats stats = consumer->stats();
  EXPECT_EQ(stats.group, "drover");
  EXPECT_EQ(stats.last_error, "");
  ASSERT_EQ(stats.partitions.size(), 1U);
  const PartitionStats& partition = stats.partitions[0];
  EXPECT_EQ(partition.topic, "telemetry");
  EXPECT_EQ(partition.partition, 0);
  EXPECT_EQ(partition.records, 100U);
  EXPECT_GT(partition.bytes, 100U * 60);
  EXPECT_EQ(partition.next_offset, 100);
  EXPECT_EQ(partition.end_offset, 100);
  EXPECT_EQ(partition.lag_records, 0);
  EXPECT_EQ(partition.lag_seconds, 0);
  EXPECT_GT(partition.last_advance_ms, 0);
}

TEST_P(ConsumerTest, ATableThatIsGoneDropsItsRowsAndCountsThem) {
  kafka.create_topic("telemetry", 1);
  kafka.produce("telemetry", 0, readings(100));
  RecordingSink sink;
  sink.set_gone();
  const auto consumer = open(sink);
  consumer->start();
  EXPECT_TRUE(eventually([&] { return consumer->stats().rows_dropped == 100; }));
}

TEST_P(ConsumerTest, StoppingHandsOverWhatIsDecoded) {
  kafka.create_topic("telemetry", 1);
  kafka.produce("telemetry", 0, readings(100));
  RecordingSink sink;
  sink.set_full(1, true);
  const auto consumer = open(sink);
  consumer->start();
  ASSERT_TRUE(sink.wait_until_refused(1));
  std::thread stopping([&] { consumer->stop(); });
  ASSERT_TRUE(sink.wait_until_refused(1));
  sink.set_full(1, false);
  stopping.join();
  EXPECT_FALSE(sink.offsets()[1].empty());
  EXPECT_TRUE(consumer->stats().partitions.empty());
  EXPECT_EQ(consumer->stats().rows_dropped, 0U);
}

// Goal: partitions go to another group member and come back without a gap, a repeat or a stall, also when rows of them
//       were waiting for a full sink meanwhile.
// Method: a second consumer, as of another process, joins and leaves again while records keep coming and the first
// one's
//         sink is full for one partition; so does a partition move between the first one's two members. What the first
//         one was handed must go on where it stood.
TEST_P(ConsumerTest, PartitionsThatComeBackGoOnWhereTheyStood) {
  kafka.create_topic("telemetry", 3);
  RecordingSink sink;
  const auto consumer = open(sink, 2);
  consumer->start();
  ASSERT_TRUE(eventually([&] { return consumer->stats().partitions.size() == 3; }));
  std::size_t produced = 0;
  for (std::uint16_t blocked = 1; blocked <= 2; ++blocked) {
    sink.set_full(blocked, true);
    for (std::int32_t partition = 0; partition < 3; ++partition) kafka.produce("telemetry", partition, readings(50));
    produced += 50;
    ASSERT_TRUE(sink.wait_until_refused(blocked));
    RecordingSink other_sink;
    {
      const auto other = open(other_sink, 1);
      other->start();
      ASSERT_TRUE(eventually([&] { return other->stats().partitions.size() == 1; }));
      ASSERT_TRUE(eventually([&] { return consumer->stats().partitions.size() == 2; }));
    }
    ASSERT_TRUE(eventually([&] { return consumer->stats().partitions.size() == 3; }));
    sink.set_full(blocked, false);
    for (std::uint16_t source = 1; source <= 3; ++source) ASSERT_TRUE(sink.wait_for_rows_of(source, produced));
  }
  for (std::uint16_t source = 1; source <= 3; ++source) EXPECT_EQ(sink.offsets()[source], first_offsets(produced));
}

TEST_P(ConsumerTest, ABrokerThatComesBackIsReadOn) {
  kafka.create_topic("telemetry", 1);
  kafka.produce("telemetry", 0, readings(10));
  RecordingSink sink;
  const auto consumer = open(sink);
  consumer->start();
  ASSERT_TRUE(sink.wait_for_rows(10));
  kafka.set_broker_up(false);
  ASSERT_TRUE(eventually([&] { return consumer->stats().last_error.starts_with("broker unreachable: "); }));
  EXPECT_TRUE(eventually([&] { return !consumer->stats().connected; }));
  kafka.set_broker_up(true);
  kafka.produce("telemetry", 0, readings(10));
  EXPECT_TRUE(sink.wait_for_rows(20));
  EXPECT_TRUE(eventually([&] { return consumer->stats().last_error.empty() && consumer->stats().connected; }));
}

TEST_P(ConsumerTest, StoppingReturnsInTimeWithTheBrokerGone) {
  kafka.create_topic("telemetry", 1);
  kafka.produce("telemetry", 0, readings(10));
  RecordingSink sink;
  const auto consumer = open(sink, 2);
  consumer->start();
  ASSERT_TRUE(sink.wait_for_rows(10));
  kafka.set_broker_up(false);
  const auto begin = std::chrono::steady_clock::now();
  consumer->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(6));
}

TEST_P(ConsumerTest, ATopicThatDoesNotExistIsNamed) {
  kafka.create_topic("telemetry", 1);
  kafka.produce("telemetry", 0, readings(10));
  kafka.deny_topic("no-such-topic");
  RecordingSink sink;
  const auto consumer = open(sink, 1, {"telemetry", "no-such-topic"});
  consumer->start();
  EXPECT_TRUE(sink.wait_for_rows(10));
  EXPECT_TRUE(eventually([&] { return !consumer->stats().last_error.empty(); }));
  EXPECT_THAT(consumer->stats().last_error, HasSubstr("topic \"no-such-topic\" does not exist"));
}

INSTANTIATE_TEST_SUITE_P(, ConsumerTest, testing::Values(Fetch::kDirect, Fetch::kLibrdkafka),
                         [](const auto& parameter) { return parameter.index == 0 ? "Direct" : "Librdkafka"; });

/// One partition whose first record has been read, so that it is fetched directly from now on.
class DirectFetchTest : public testing::Test {
 protected:
  DirectFetchTest() {
    options.brokers = kafka.bootstrap();
    options.handles = 1;
    options.librdkafka = {{"topic.metadata.refresh.interval.ms", "500"}};
    kafka.create_topic("telemetry", 1);
    kafka.set_leader("telemetry", 0, 1);
  }
  void start() {
    consumer = std::move(Consumer::open(options, {{telemetry_mapping(), telemetry_table()}}, names, sink)).value();
    consumer->start();
    produce_and_wait(1);
  }
  /// Whether all records come, in their order.
  void produce_and_wait(std::size_t records) {
    kafka.produce("telemetry", 0, readings(records));
    produced += records;
    ASSERT_TRUE(sink.wait_for_rows(produced));
    ASSERT_EQ(sink.offsets()[1], first_offsets(produced));
  }
  PartitionStats partition() const {
    const IngestStats stats = consumer->stats();
    return stats.partitions.empty() ? PartitionStats{} : stats.partitions[0];
  }
  bool becomes_direct() {
    return eventually([&] { return partition().direct; });
  }
  std::uint64_t hand_backs() const { return consumer->stats().hand_backs; }

  MockKafka kafka{2};
  model::AttributeNames names;
  RecordingSink sink;
  ConsumerOptions options;
  std::unique_ptr<Consumer> consumer;
  std::size_t produced = 0;
};

TEST_F(DirectFetchTest, APartitionIsFetchedDirectlyOnceItHasGivenRecords) {
  start();
  ASSERT_TRUE(becomes_direct());
  for (int i = 0; i < 5; ++i) produce_and_wait(100);
  EXPECT_EQ(hand_backs(), 0U);
  EXPECT_EQ(partition().end_offset, 501);
  EXPECT_EQ(partition().lag_records, 0);
}

TEST_F(DirectFetchTest, WhateverTheBrokerRefusesLibrdkafkaGoesOnAndThenDirectlyAgain) {
  start();
  std::uint64_t errors = 0;
  for (const rd_kafka_resp_err_t error :
       {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR_UNKNOWN, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR}) {
    ASSERT_TRUE(becomes_direct());
    kafka.fail_next_fetch(error);
    ++errors;
    ASSERT_TRUE(eventually([&] { return hand_backs() == errors; })) << error;
    EXPECT_FALSE(partition().direct);
    produce_and_wait(100);
    // Records that come through librdkafka are what makes it direct again, and not at once.
    ASSERT_TRUE(eventually([&] {
      produce_and_wait(1);
      return partition().direct;
    })) << error;
  }
  EXPECT_EQ(hand_backs(), errors);
}

TEST_F(DirectFetchTest, ALeaderThatMovesIsFollowed) {
  start();
  for (std::int32_t broker = 2; broker >= 1; --broker) {
    ASSERT_TRUE(becomes_direct());
    kafka.set_leader("telemetry", 0, broker);
    for (int i = 0; i < 5; ++i) produce_and_wait(100);
    ASSERT_TRUE(eventually([&] {
      produce_and_wait(1);
      return partition().direct;
    }));
  }
  EXPECT_GE(hand_backs(), 2U);
}

TEST_F(DirectFetchTest, PropertiesThatItWouldNotHonourLeaveFetchingToLibrdkafka) {
  options.librdkafka["fetch.wait.max.ms"] = "100";
  start();
  for (int i = 0; i < 5; ++i) produce_and_wait(100);
  EXPECT_FALSE(partition().direct);
  EXPECT_EQ(hand_backs(), 0U);
}

TEST(Consumer, ABrokerThatIsAwayIsNoErrorOfOpenAndIsSaid) {
  ConsumerOptions options;
  options.brokers = "127.0.0.1:1";
  model::AttributeNames names;
  RecordingSink sink;
  const auto consumer =
      std::move(Consumer::open(options, {{telemetry_mapping(), telemetry_table()}}, names, sink)).value();
  consumer->start();
  EXPECT_TRUE(eventually([&] { return !consumer->stats().last_error.empty(); }));
  EXPECT_THAT(consumer->stats().last_error, HasSubstr("broker unreachable: "));
  EXPECT_THAT(consumer->stats().last_error, HasSubstr("127.0.0.1:1"));
  EXPECT_FALSE(consumer->stats().connected);
}

TEST(Consumer, AWrongPropertyIsNamed) {
  model::AttributeNames names;
  RecordingSink sink;
  const auto complaint = [&](const std::string& name, const std::string& value) {
    ConsumerOptions options;
    options.brokers = "127.0.0.1:1";
    options.librdkafka = {{name, value}};
    const auto consumer = Consumer::open(options, {{telemetry_mapping(), telemetry_table()}}, names, sink);
    return consumer.ok() ? std::string() : consumer.status().message();
  };
  EXPECT_THAT(complaint("fetch.min.byte", "1"), HasSubstr("\"fetch.min.byte\""));
  EXPECT_THAT(complaint("fetch.min.bytes", "many"), HasSubstr("\"fetch.min.bytes\""));
  EXPECT_THAT(complaint("session.timeout.ms", "3600000000"), HasSubstr("session.timeout.ms"));
  EXPECT_EQ(complaint("fetch.min.bytes", "2"), "");
}

}  // namespace
}  // namespace drover::ingest::test

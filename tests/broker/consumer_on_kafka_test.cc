#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>

#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "drover/ingest/consumer.h"
#include "tests/support/kafka_broker.h"
#include "tests/unit/ingest/decoding.h"
#include "tests/unit/ingest/recording_sink.h"

namespace drover::ingest::test {
namespace {

using drover::test::KafkaBroker;
using drover::test::ProducedRecord;
using testing::ElementsAre;

constexpr std::chrono::seconds kPatience{60};

template <typename Predicate>
bool eventually(Predicate&& predicate) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!predicate()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::string reading(std::size_t number) {
  return R"({"vehicleId":"V-7741","recordedAt":"2026-06-23T09:00:01.000Z","n":)" + std::to_string(number) + "}";
}

std::vector<ProducedRecord> readings(std::size_t count) {
  std::vector<ProducedRecord> readings(count);
  for (std::size_t i = 0; i < count; ++i) readings[i].value = reading(i);
  return readings;
}

std::vector<std::uint64_t> first_offsets(std::size_t count) {
  std::vector<std::uint64_t> offsets(count);
  std::iota(offsets.begin(), offsets.end(), 0);
  return offsets;
}

class ConsumerOnKafka : public testing::Test {
 protected:
  std::unique_ptr<Consumer> open(RowSink& sink, std::uint32_t handles = 1) {
    ConsumerOptions options;
    options.brokers = kafka->bootstrap();
    options.handles = handles;
    options.fetch = fetch;
    options.librdkafka = librdkafka;
    return std::move(Consumer::open(options, {{telemetry_mapping(), telemetry_table()}}, names, sink)).value();
  }

  std::unique_ptr<KafkaBroker> kafka = KafkaBroker::start({{"group.initial.rebalance.delay.ms", "0"}});
  std::map<std::string, std::string> librdkafka = {{"heartbeat.interval.ms", "200"}, {"session.timeout.ms", "6000"}};
  Fetch fetch = Fetch::kDirect;
  model::AttributeNames names;
};

class EitherWayOnKafka : public ConsumerOnKafka, public testing::WithParamInterface<Fetch> {
 protected:
  EitherWayOnKafka() { fetch = GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(, EitherWayOnKafka, testing::Values(Fetch::kDirect, Fetch::kLibrdkafka),
                         [](const auto& parameter) { return parameter.index == 0 ? "Direct" : "Librdkafka"; });

TEST_P(EitherWayOnKafka, EachPartitionArrivesWholeAndInItsOrder) {
  kafka->create_topic("telemetry", 4);
  for (std::int32_t partition = 0; partition < 4; ++partition) kafka->produce("telemetry", partition, readings(50'000));
  RecordingSink sink;
  const auto consumer = open(sink, 2);
  consumer->start();
  ASSERT_TRUE(sink.wait_for_rows(200'000));
  for (std::uint16_t source = 1; source <= 4; ++source) EXPECT_EQ(sink.offsets()[source], first_offsets(50'000));
  EXPECT_TRUE(eventually([&] {
    const IngestStats stats = consumer->stats();
    const auto read = [](const PartitionStats& partition) {
      return partition.end_offset == 50'000 && partition.lag_records == 0;
    };
    return stats.connected && std::all_of(stats.partitions.begin(), stats.partitions.end(), read);
  }));
  EXPECT_EQ(kafka->committed_offset("drover", "telemetry", 0), -1);
}

TEST_P(EitherWayOnKafka, AFullSinkHoldsBackOnlyThePartitionThatFeedsItAndResumes) {
  kafka->create_topic("telemetry", 2);
  kafka->produce("telemetry", 0, readings(30'000));
  RecordingSink sink;
  sink.set_full(1, true);
  const auto consumer = open(sink);
  consumer->start();
  ASSERT_TRUE(sink.wait_until_refused(1));
  for (std::size_t rows = 10'000; rows <= 50'000; rows += 10'000) {
    kafka->produce("telemetry", 1, readings(10'000));
    ASSERT_TRUE(sink.wait_for_rows_of(2, rows));
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(8);  // longer than a session
  while (std::chrono::steady_clock::now() < until) ASSERT_TRUE(sink.wait_until_refused(1));
  EXPECT_TRUE(sink.offsets()[1].empty());
  EXPECT_EQ(consumer->stats().rebalances, 1U);
  sink.set_full(1, false);
  ASSERT_TRUE(sink.wait_for_rows_of(1, 30'000));
  EXPECT_EQ(sink.offsets()[1], first_offsets(30'000));
  EXPECT_EQ(sink.offsets()[2], first_offsets(50'000));
}

TEST_P(EitherWayOnKafka, ABrokerThatCrashesAndComesBackIsReadOnWithoutGapOrRepeat) {
  kafka->create_topic("telemetry", 1);
  kafka->produce("telemetry", 0, readings(1'000));
  RecordingSink sink;
  const auto consumer = open(sink);
  consumer->start();
  ASSERT_TRUE(sink.wait_for_rows(1'000));
  kafka->kill();
  ASSERT_TRUE(eventually([&] { return consumer->stats().last_error.starts_with("broker unreachable: "); }));
  ASSERT_TRUE(eventually([&] { return !consumer->stats().connected; }));
  kafka->restart();
  kafka->produce("telemetry", 0, readings(1'000));
  ASSERT_TRUE(sink.wait_for_rows(2'000));
  EXPECT_EQ(sink.offsets()[1], first_offsets(2'000));
  EXPECT_TRUE(eventually([&] { return consumer->stats().connected && consumer->stats().last_error.empty(); }));
}

TEST_P(EitherWayOnKafka, StoppingReturnsInTimeWithTheBrokerGone) {
  kafka->create_topic("telemetry", 2);
  kafka->produce("telemetry", 0, readings(1'000));
  RecordingSink sink;
  const auto consumer = open(sink, 2);
  consumer->start();
  ASSERT_TRUE(sink.wait_for_rows(1'000));
  kafka->kill();
  const auto begin = std::chrono::steady_clock::now();
  consumer->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(6));
}

// Each producer's codec is undone and applied anew by the broker, in Java's own framing.
TEST_F(ConsumerOnKafka, EveryCodecIsFetchedDirectly) {
  const std::vector<std::string> codecs = {"uncompressed", "gzip", "snappy", "lz4", "zstd"};
  for (const std::string& codec : codecs) {
    kafka->create_topic("telemetry", 1, {{"compression.type", codec}});
    RecordingSink sink;
    const auto consumer = open(sink);
    consumer->start();
    std::size_t produced = 0;
    for (const std::size_t records : {1, 20'000, 20'000}) {
      kafka->produce("telemetry", 0, readings(records));
      produced += records;
      ASSERT_TRUE(sink.wait_for_rows(produced)) << codec;
      ASSERT_TRUE(eventually([&] { return consumer->stats().partitions[0].direct; })) << codec;
    }
    EXPECT_EQ(sink.offsets()[1], first_offsets(produced)) << codec;
    EXPECT_EQ(consumer->stats().hand_backs, 0U) << codec;
    consumer->stop();
    kafka->delete_topic("telemetry");
  }
}

// Goal: nothing is lost, repeated or reordered when the broker goes while much has been fetched and not been read.
// Method: the sink is full as the broker is killed; what waits then is read, then what librdkafka and the next direct
//         connection bring.
TEST_P(EitherWayOnKafka, ABrokerThatCrashesInTheMiddleIsReadOnWithoutGapOrRepeat) {
  kafka->create_topic("telemetry", 2);
  for (std::int32_t partition = 0; partition < 2; ++partition)
    kafka->produce("telemetry", partition, readings(100'000));
  RecordingSink sink;
  sink.set_full(1, true);
  sink.set_full(2, true);
  const auto consumer = open(sink);
  consumer->start();
  for (std::size_t produced = 110'000; produced <= 130'000; produced += 10'000) {
    ASSERT_TRUE(sink.wait_until_refused(1));
    ASSERT_TRUE(sink.wait_until_refused(2));
    kafka->kill();
    sink.set_full(1, false);
    kafka->restart();
    sink.set_full(2, false);
    for (std::int32_t partition = 0; partition < 2; ++partition) {
      ASSERT_TRUE(sink.wait_for_rows_of(static_cast<std::uint16_t>(partition + 1), produced - 10'000));
      sink.set_full(static_cast<std::uint16_t>(partition + 1), true);
      kafka->produce("telemetry", partition, readings(10'000));
    }
  }
  for (std::uint16_t source = 1; source <= 2; ++source) {
    sink.set_full(source, false);
    ASSERT_TRUE(sink.wait_for_rows_of(source, 130'000));
    EXPECT_EQ(sink.offsets()[source], first_offsets(130'000));
  }
}

TEST_F(ConsumerOnKafka, ATopicThatIsMadeAnewIsReadFromItsBeginning) {
  kafka->create_topic("telemetry", 1);
  kafka->produce("telemetry", 0, readings(1'000));
  RecordingSink sink;
  const auto consumer = open(sink);
  consumer->start();
  ASSERT_TRUE(sink.wait_for_rows(1'000));
  ASSERT_TRUE(eventually([&] { return consumer->stats().partitions[0].direct; }));
  kafka->delete_topic("telemetry");
  ASSERT_TRUE(eventually([&] { return consumer->stats().last_error.find("does not exist") != std::string::npos; }));
  kafka->create_topic("telemetry", 1);
  kafka->produce("telemetry", 0, readings(100));
  EXPECT_TRUE(sink.wait_for_rows(1'100));
  EXPECT_EQ(sink.offsets()[1].back(), 99U);
}

// Goal: partitions that go to another group member and come back neither stall nor lose, repeat or reorder records,
// also
//       with rows of them waiting for a full sink at that moment; by either rebalance protocol.
// Method: a second consumer joins and leaves in cycles while records come; every second cycle begins with a full sink.
class RebalancesOnKafka : public ConsumerOnKafka, public testing::WithParamInterface<std::pair<const char*, Fetch>> {};

TEST_P(RebalancesOnKafka, PartitionsThatComeBackGoOnWhereTheyStood) {
  constexpr int kCycles = 12;
  librdkafka["partition.assignment.strategy"] = GetParam().first;
  fetch = GetParam().second;
  kafka->create_topic("telemetry", 4);
  RecordingSink sink;
  const auto consumer = open(sink, 2);
  consumer->start();
  ASSERT_TRUE(eventually([&] { return consumer->stats().partitions.size() == 4; }));
  std::size_t produced = 0;
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    const auto blocked = static_cast<std::uint16_t>(1 + cycle % 4);
    sink.set_full(blocked, cycle % 2 == 0);
    for (std::int32_t partition = 0; partition < 4; ++partition) kafka->produce("telemetry", partition, readings(100));
    produced += 100;
    if (cycle % 2 == 0) {
      ASSERT_TRUE(sink.wait_until_refused(blocked)) << cycle;
    }
    RecordingSink other_sink;
    const auto other = open(other_sink, 1);
    other->start();
    ASSERT_TRUE(eventually([&] { return !other->stats().partitions.empty(); })) << cycle;
    ASSERT_TRUE(eventually([&] { return consumer->stats().partitions.size() < 4; })) << cycle;
    other->stop();
    ASSERT_TRUE(eventually([&] { return consumer->stats().partitions.size() == 4; })) << cycle;
    sink.set_full(blocked, false);
    for (std::uint16_t source = 1; source <= 4; ++source) ASSERT_TRUE(sink.wait_for_rows_of(source, produced)) << cycle;
  }
  for (std::uint16_t source = 1; source <= 4; ++source) EXPECT_EQ(sink.offsets()[source], first_offsets(produced));
}

INSTANTIATE_TEST_SUITE_P(, RebalancesOnKafka,
                         testing::Values(std::pair("range", Fetch::kDirect),
                                         std::pair("cooperative-sticky", Fetch::kDirect),
                                         std::pair("range", Fetch::kLibrdkafka)),
                         [](const auto& parameter) {
                           if (parameter.index == 0) return "EagerDirect";
                           return parameter.index == 1 ? "CooperativeDirect" : "EagerLibrdkafka";
                         });

/// Sends transactions of ten records each; `commit` false: they are aborted.
void send_transactions(const KafkaBroker& kafka, const std::vector<bool>& commit) {
  char error[512];
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set(conf, "bootstrap.servers", kafka.bootstrap().c_str(), error, sizeof error);
  rd_kafka_conf_set(conf, "transactional.id", "test", error, sizeof error);
  const std::unique_ptr<rd_kafka_t, decltype(&rd_kafka_destroy)> producer(
      rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error), rd_kafka_destroy);
  ASSERT_NE(producer, nullptr) << error;
  ASSERT_EQ(rd_kafka_init_transactions(producer.get(), 30'000), nullptr);
  for (const bool committed : commit) {
    ASSERT_EQ(rd_kafka_begin_transaction(producer.get()), nullptr);
    for (std::size_t i = 0; i < 10; ++i) {
      const std::string value = reading(i);
      ASSERT_EQ(rd_kafka_producev(producer.get(), RD_KAFKA_V_TOPIC("telemetry"), RD_KAFKA_V_PARTITION(0),
                                  RD_KAFKA_V_VALUE(const_cast<char*>(value.data()), value.size()),
                                  RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END),
                RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    ASSERT_EQ(rd_kafka_flush(producer.get(), 30'000), RD_KAFKA_RESP_ERR_NO_ERROR);
    ASSERT_EQ(committed ? rd_kafka_commit_transaction(producer.get(), 30'000)
                        : rd_kafka_abort_transaction(producer.get(), 30'000),
              nullptr);
  }
}

TEST_F(ConsumerOnKafka, AbortedTransactionsAreNotReadAndLeaveNoLag) {
  kafka->create_topic("telemetry", 1);
  ASSERT_NO_FATAL_FAILURE(send_transactions(*kafka, {true, false, true, false}));
  RecordingSink sink;
  const auto consumer = open(sink);
  consumer->start();
  ASSERT_TRUE(sink.wait_for_rows(20));
  std::vector<std::uint64_t> expected;  // each transaction ends in a control record
  for (const std::uint64_t begin : {0, 22}) {
    for (std::uint64_t i = 0; i < 10; ++i) expected.push_back(begin + i);
  }
  EXPECT_EQ(sink.offsets()[1], expected);
  EXPECT_TRUE(eventually([&] {
    const IngestStats stats = consumer->stats();
    return stats.partitions.size() == 1 && stats.partitions[0].end_offset == 44 && stats.partitions[0].lag_records == 0;
  }));
}

TEST_F(ConsumerOnKafka, AbortedTransactionsGiveADirectPartitionBackForGood) {
  kafka->create_topic("telemetry", 1);
  kafka->produce("telemetry", 0, readings(10));
  RecordingSink sink;
  const auto consumer = open(sink);
  consumer->start();
  ASSERT_TRUE(sink.wait_for_rows(10));
  ASSERT_TRUE(eventually([&] { return consumer->stats().partitions[0].direct; }));
  ASSERT_NO_FATAL_FAILURE(send_transactions(*kafka, {true, true}));
  ASSERT_TRUE(sink.wait_for_rows(30));
  EXPECT_TRUE(consumer->stats().partitions[0].direct);  // committed ones are like any records
  ASSERT_NO_FATAL_FAILURE(send_transactions(*kafka, {false, true}));
  ASSERT_TRUE(sink.wait_for_rows(40));
  EXPECT_EQ(consumer->stats().hand_backs, 1U);
  EXPECT_FALSE(consumer->stats().partitions[0].direct);
  std::vector<std::uint64_t> expected = first_offsets(10);
  for (const std::uint64_t begin : {10, 21, 43}) {
    for (std::uint64_t i = 0; i < 10; ++i) expected.push_back(begin + i);
  }
  EXPECT_EQ(sink.offsets()[1], expected);
}

TEST_F(ConsumerOnKafka, ARecordLargerThanAnyItemIsRefusedAndTheNextOnesCome) {
  kafka->create_topic("telemetry", 1, {{"max.message.bytes", "6000000"}});
  kafka->produce("telemetry", 0, {{"", reading(0)}, {"", std::string(5'000'000, 'x')}, {"", reading(2)}});
  RecordingSink sink;
  const auto consumer = open(sink);
  consumer->start();
  ASSERT_TRUE(sink.wait_for_rows(2));
  EXPECT_THAT(sink.offsets()[1], ElementsAre(0, 2));
  EXPECT_EQ(consumer->stats().rejects[0].by_reason[static_cast<std::size_t>(RejectReason::kTooLarge)], 1U);
}

TEST_F(ConsumerOnKafka, ATopicThatIsMadeLaterIsReadThen) {
  RecordingSink sink;
  const auto consumer = open(sink);
  consumer->start();
  ASSERT_TRUE(eventually([&] { return consumer->stats().last_error.find("does not exist") != std::string::npos; }));
  kafka->create_topic("telemetry", 1);
  kafka->produce("telemetry", 0, readings(10));
  EXPECT_TRUE(sink.wait_for_rows(10));
  EXPECT_EQ(consumer->stats().last_error, "");
}

}  // namespace
}  // namespace drover::ingest::test

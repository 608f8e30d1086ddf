#pragma once

#include <librdkafka/rdkafka.h>
// Needs rdkafka.h in front of it.
#include <librdkafka/rdkafka_mock.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "drover/model/check.h"

namespace drover::ingest::test {

/// librdkafka's mock cluster: brokers (one, if not said) within this process, with groups and a small log per
/// partition.
class MockKafka {
 public:
  explicit MockKafka(int brokers = 1) {
    owner_ = new_producer("");
    cluster_ = rd_kafka_mock_cluster_new(owner_, brokers);
    bootstrap_ = rd_kafka_mock_cluster_bootstraps(cluster_);
    producer_ = new_producer(bootstrap_);
  }
  MockKafka(const MockKafka&) = delete;
  MockKafka& operator=(const MockKafka&) = delete;
  ~MockKafka() {
    rd_kafka_destroy(producer_);
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(owner_);
  }

  const std::string& bootstrap() const { return bootstrap_; }

  void create_topic(const std::string& topic, int partitions) {
    DROVER_CHECK(rd_kafka_mock_topic_create(cluster_, topic.c_str(), partitions, 1) == 0, "a new topic");
  }

  /// The broker says that there is no such topic (left alone, it would make one when asked).
  void deny_topic(const std::string& topic) {
    rd_kafka_mock_topic_set_error(cluster_, topic.c_str(), RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  }

  /// Returns when the broker has them. No value: Kafka's null.
  void produce(const std::string& topic, std::int32_t partition,
               const std::vector<std::optional<std::string>>& values) {
    for (const auto& value : values) {
      const void* const data = value ? value->data() : nullptr;
      const std::size_t size = value ? value->size() : 0;
      const rd_kafka_resp_err_t error = rd_kafka_producev(
          producer_, RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(partition),
          RD_KAFKA_V_VALUE(const_cast<void*>(data), size), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
      DROVER_CHECK(error == 0, "the producer's queue has room");
    }
    DROVER_CHECK(rd_kafka_flush(producer_, 30'000) == 0, "the mock broker takes records");
  }

  /// The next Fetch of anyone fails with this.
  void fail_next_fetch(rd_kafka_resp_err_t error) {
    constexpr std::int16_t kFetch = 1;
    rd_kafka_mock_push_request_errors(cluster_, kFetch, 1, error);
  }

  void set_leader(const std::string& topic, std::int32_t partition, std::int32_t broker) {
    rd_kafka_mock_partition_set_leader(cluster_, topic.c_str(), partition, broker);
  }

  void set_broker_up(bool up) {
    if (up) {
      rd_kafka_mock_broker_set_up(cluster_, 1);
    } else {
      rd_kafka_mock_broker_set_down(cluster_, 1);
    }
  }

 private:
  /// Without an address it only carries the cluster.
  static rd_kafka_t* new_producer(const std::string& bootstrap) {
    char error[512];
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    if (!bootstrap.empty()) rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap.c_str(), error, sizeof error);
    rd_kafka_conf_set(conf, "linger.ms", "0", error, sizeof error);
    rd_kafka_conf_set(conf, "log_level", "0", error, sizeof error);
    rd_kafka_t* const producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
    DROVER_CHECK(producer != nullptr, "a producer");
    return producer;
  }

  rd_kafka_t* owner_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
  rd_kafka_t* producer_ = nullptr;
  std::string bootstrap_;
};

}  // namespace drover::ingest::test

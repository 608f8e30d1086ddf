#include "loadtest/support/kafka_feed.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <array>
#include <atomic>
#include <map>

namespace drover::loadtest {
namespace {

constexpr int kCreateTimeoutMs = 10'000;
constexpr int kFlushTimeoutMs = 60'000;
constexpr std::size_t kPartitionsMax = 64;

using Handle = std::unique_ptr<rd_kafka_t, decltype(&rd_kafka_destroy)>;

model::Status unavailable(const std::string& what, const char* why) {
  return {model::StatusCode::kUnavailable, what + ": " + why};
}

model::Result<Handle> make_producer(const std::map<std::string, std::string>& properties, void* opaque = nullptr,
                                    void (*on_delivery)(rd_kafka_t*, const rd_kafka_message_t*, void*) = nullptr) {
  char error[256];
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  for (const auto& [name, value] : properties) {
    if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), error, sizeof error) != RD_KAFKA_CONF_OK) {
      rd_kafka_conf_destroy(conf);
      return model::invalid(error);
    }
  }
  rd_kafka_conf_set_opaque(conf, opaque);
  if (on_delivery != nullptr) rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  rd_kafka_t* handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
  if (handle == nullptr) {
    rd_kafka_conf_destroy(conf);
    return model::invalid(error);
  }
  return Handle(handle, &rd_kafka_destroy);
}

class Feed final : public KafkaFeed {
 public:
  explicit Feed(std::string topic) : topic_(std::move(topic)) {}

  model::Status connect(const Options& options) {
    auto handle = make_producer({{"bootstrap.servers", options.brokers},
                                 {"compression.codec", options.codec},
                                 {"enable.idempotence", "true"},  // a retry must not put META behind its readings
                                 {"partitioner", "murmur2_random"},
                                 {"linger.ms", "20"},
                                 {"batch.num.messages", "10000"},
                                 {"batch.size", "1000000"},
                                 {"queue.buffering.max.messages", "200000"},
                                 {"log_level", "0"}},
                                this, &Feed::on_delivery);
    if (!handle) return handle.status();
    handle_ = std::move(*handle);
    rd_kafka_topic_t* topic = rd_kafka_topic_new(handle_.get(), topic_.c_str(), nullptr);
    if (topic == nullptr) return model::invalid(rd_kafka_err2str(rd_kafka_last_error()));
    kafka_topic_.reset(topic);
    return {};
  }

  void send(std::string_view key, std::string_view value) override {
    while (rd_kafka_produce(kafka_topic_.get(), RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY,
                            const_cast<char*>(value.data()),  // copied, not written to
                            value.size(), key.data(), key.size(), nullptr) != 0) {
      rd_kafka_poll(handle_.get(), 10);
    }
    if (++sent_ % 1'024 == 0) rd_kafka_poll(handle_.get(), 0);
  }

  model::Status flush() override {
    const rd_kafka_resp_err_t error = rd_kafka_flush(handle_.get(), kFlushTimeoutMs);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return unavailable("producing to " + topic_, rd_kafka_err2str(error));
    if (failed_ > 0) return unavailable("producing to " + topic_, "some records were refused");
    return {};
  }

  std::vector<std::int64_t> delivered() const override {
    std::vector<std::int64_t> ends;
    for (const auto& end : delivered_) {
      const std::int64_t offset = end.load(std::memory_order_relaxed);  // a number to watch: nothing follows from it
      if (offset > 0) ends.resize(static_cast<std::size_t>(&end - delivered_.data()) + 1);
      if (offset > 0) ends.back() = offset;
    }
    return ends;
  }
  std::int64_t waiting() override {
    rd_kafka_poll(handle_.get(), 0);
    return rd_kafka_outq_len(handle_.get());
  }

 private:
  static void on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
    auto& feed = *static_cast<Feed*>(opaque);
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      ++feed.failed_;
      return;
    }
    feed.delivered_[static_cast<std::size_t>(message->partition)].store(message->offset + 1, std::memory_order_relaxed);
  }

  std::string topic_;
  Handle handle_{nullptr, &rd_kafka_destroy};
  std::unique_ptr<rd_kafka_topic_t, decltype(&rd_kafka_topic_destroy)> kafka_topic_{nullptr, &rd_kafka_topic_destroy};
  std::uint64_t sent_ = 0;
  std::atomic<std::uint64_t> failed_{0};
  std::array<std::atomic<std::int64_t>, kPartitionsMax> delivered_{};
};

}  // namespace

struct EmbeddedKafka::Impl {
  Handle handle{nullptr, &rd_kafka_destroy};
  rd_kafka_mock_cluster_t* cluster = nullptr;
};

EmbeddedKafka::EmbeddedKafka(const std::string& topic, std::int32_t partitions) : impl_(std::make_unique<Impl>()) {
  auto handle = make_producer({{"client.id", "embedded-kafka"}, {"log_level", "0"}});
  DROVER_CHECK(handle.ok(), "librdkafka makes a handle with its default properties");
  impl_->handle = std::move(*handle);
  impl_->cluster = rd_kafka_mock_cluster_new(impl_->handle.get(), 1);
  DROVER_CHECK(impl_->cluster != nullptr, "librdkafka makes a mock cluster on loopback");
  rd_kafka_mock_topic_create(impl_->cluster, topic.c_str(), partitions, 1);
  brokers_ = rd_kafka_mock_cluster_bootstraps(impl_->cluster);
}

EmbeddedKafka::~EmbeddedKafka() {
  rd_kafka_mock_cluster_destroy(impl_->cluster);
}

model::Result<std::unique_ptr<KafkaFeed>> KafkaFeed::open(const Options& options) {
  auto feed = std::make_unique<Feed>(options.topic);
  if (model::Status status = feed->connect(options); !status.ok()) return status;
  return std::unique_ptr<KafkaFeed>(std::move(feed));
}

model::Status create_topic(const std::string& brokers, const std::string& topic, std::int32_t partitions) {
  auto handle = make_producer({{"bootstrap.servers", brokers}, {"log_level", "0"}});
  if (!handle) return handle.status();
  char error[256];
  rd_kafka_NewTopic_t* new_topic = rd_kafka_NewTopic_new(topic.c_str(), partitions, 1, error, sizeof error);
  if (new_topic == nullptr) return model::invalid(error);
  rd_kafka_queue_t* queue = rd_kafka_queue_new(handle->get());
  rd_kafka_CreateTopics(handle->get(), &new_topic, 1, nullptr, queue);
  rd_kafka_event_t* event = rd_kafka_queue_poll(queue, kCreateTimeoutMs);
  model::Status status;
  if (event == nullptr) {
    status = unavailable("creating topic " + topic, "no answer from Kafka at that address");
  } else if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    status = unavailable("creating topic " + topic, rd_kafka_event_error_string(event));
  } else {
    std::size_t count = 0;
    const auto** results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    const rd_kafka_resp_err_t code = rd_kafka_topic_result_error(results[0]);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR && code != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) {
      status = unavailable("creating topic " + topic, rd_kafka_topic_result_error_string(results[0]));
    }
  }
  if (event != nullptr) rd_kafka_event_destroy(event);
  rd_kafka_queue_destroy(queue);
  rd_kafka_NewTopic_destroy(new_topic);
  return status;
}

}  // namespace drover::loadtest

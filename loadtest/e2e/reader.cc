// Reads a topic with librdkafka alone and throws the messages away: what any consumer must pay before its own work
// begins.
//
// Two programs are made of this file. drover-reader-plain runs on glibc's allocator; with its default options it is
// what one usually writes, and what librdkafka's own examples do: one handle, a message at a time from the consumer's
// queue. (Its prefetch is not left at the default, though, which starves it.) drover-reader-ceiling runs on jemalloc;
// with
// `--handles 2 --partition-queues --fetch-bytes 1048576` it is librdkafka at its best, and uses what Drover uses.
//
// The clock starts at the first record and stops at the last one. Prints one line of JSON.

#include <librdkafka/rdkafka.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "loadtest/support/measure.h"

namespace drover::loadtest {
namespace {

constexpr std::size_t kBatch = 8'192;
constexpr int kIdleWaitMs = 5;

struct Options {
  std::string brokers;
  std::string topic;
  std::string group = "drover-reader";
  std::int64_t records = 0;
  int handles = 1;
  bool partition_queues = false;
  int fetch_bytes = 4 * 1024 * 1024;
};

/// What all handles have read together.
class Progress {
 public:
  explicit Progress(std::int64_t records) : left_(records) {}

  void read(std::int64_t records) {
    if (!started_.exchange(true)) watch_.start();
    if (left_.fetch_sub(records) - records <= 0) std::call_once(stopped_, [this] { watch_.stop(); });
  }
  bool done() const { return left_.load() <= 0; }
  const Stopwatch& watch() const { return watch_; }

 private:
  std::atomic<bool> started_{false};
  std::atomic<std::int64_t> left_;
  std::once_flag stopped_;
  Stopwatch watch_;
};

/// One member of the consumer group and the thread that polls it.
class Handle {
 public:
  Handle(const Options& options, Progress& progress) : options_(options), progress_(progress) {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", options.brokers);
    set(conf, "group.id", options.group);
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "enable.auto.commit", "false");
    set(conf, "fetch.message.max.bytes", std::to_string(options.fetch_bytes));
    set(conf, "queued.min.messages", "500000");
    set(conf, "log_level", "3");
    rd_kafka_conf_set_opaque(conf, this);
    rd_kafka_conf_set_rebalance_cb(conf, &Handle::on_rebalance);
    char error[256];
    handle_ = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
    if (handle_ == nullptr) fail(error);
    rd_kafka_poll_set_consumer(handle_);
    rd_kafka_topic_partition_list_t* topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, options.topic.c_str(), RD_KAFKA_PARTITION_UA);
    rd_kafka_subscribe(handle_, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    main_queue_ = rd_kafka_queue_get_consumer(handle_);
    thread_ = std::thread([this] { run(); });
  }

  ~Handle() {
    thread_.join();
    release_queues();
    rd_kafka_queue_destroy(main_queue_);
    rd_kafka_consumer_close(handle_);
    rd_kafka_destroy(handle_);
  }

 private:
  [[noreturn]] static void fail(const char* why) {
    std::fprintf(stderr, "%s\n", why);
    std::exit(1);
  }
  static void set(rd_kafka_conf_t* conf, const char* name, const std::string& value) {
    char error[256];
    if (rd_kafka_conf_set(conf, name, value.c_str(), error, sizeof error) != RD_KAFKA_CONF_OK) fail(error);
  }

  static void on_rebalance(rd_kafka_t* handle, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t* partitions,
                           void* opaque) {
    auto& self = *static_cast<Handle*>(opaque);
    self.release_queues();
    if (code != RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
      rd_kafka_assign(handle, nullptr);
      return;
    }
    for (int i = 0; self.options_.partition_queues && i < partitions->cnt; ++i) {
      const rd_kafka_topic_partition_t& partition = partitions->elems[i];
      rd_kafka_queue_t* queue = rd_kafka_queue_get_partition(handle, partition.topic, partition.partition);
      rd_kafka_queue_forward(queue, nullptr);
      self.partition_queues_.push_back(queue);
    }
    rd_kafka_assign(handle, partitions);
  }

  void release_queues() {
    for (rd_kafka_queue_t* queue : partition_queues_) rd_kafka_queue_destroy(queue);
    partition_queues_.clear();
  }

  std::size_t drain(rd_kafka_queue_t* queue, int wait_ms) {
    const ssize_t got = rd_kafka_consume_batch_queue(queue, wait_ms, messages_.data(), messages_.size());
    std::int64_t records = 0;
    for (ssize_t i = 0; i < got; ++i) {
      if (messages_[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR) ++records;
      rd_kafka_message_destroy(messages_[i]);
    }
    if (records > 0) progress_.read(records);
    return static_cast<std::size_t>(got > 0 ? got : 0);
  }

  void run() {
    while (!progress_.done()) {
      if (options_.partition_queues) {
        drain_partition_queues();
      } else {
        drain_one_by_one();
      }
    }
  }

  void drain_partition_queues() {
    std::size_t got = 0;
    for (rd_kafka_queue_t* queue : partition_queues_) got += drain(queue, 0);
    drain(main_queue_, got > 0 ? 0 : kIdleWaitMs);
  }

  void drain_one_by_one() {
    std::int64_t records = 0;
    while (records < static_cast<std::int64_t>(kBatch)) {
      rd_kafka_message_t* message = rd_kafka_consumer_poll(handle_, records > 0 ? 0 : kIdleWaitMs);
      if (message == nullptr) break;
      if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) ++records;
      rd_kafka_message_destroy(message);
    }
    if (records > 0) progress_.read(records);
  }

  const Options& options_;
  Progress& progress_;
  rd_kafka_t* handle_ = nullptr;
  rd_kafka_queue_t* main_queue_ = nullptr;
  std::vector<rd_kafka_queue_t*> partition_queues_;
  std::vector<rd_kafka_message_t*> messages_ = std::vector<rd_kafka_message_t*>(kBatch);
  std::thread thread_;
};

int run(const Options& options) {
  Progress progress(options.records);
  {
    std::vector<std::unique_ptr<Handle>> handles(static_cast<std::size_t>(options.handles));
    for (auto& handle : handles) handle = std::make_unique<Handle>(options, progress);
  }
  std::printf("{\"records\": %lld, \"seconds\": %.6f, \"cpu_s\": %.6f, \"peak_rss_bytes\": %lld}\n",
              static_cast<long long>(options.records), progress.watch().wall_s(), progress.watch().cpu_s(),
              static_cast<long long>(peak_rss_bytes()));
  return 0;
}

}  // namespace
}  // namespace drover::loadtest

int main(int argc, char** argv) {
  drover::loadtest::Options options;
  CLI::App app("Reads a topic with librdkafka alone and throws the messages away.");
  app.add_option("--brokers", options.brokers)->required();
  app.add_option("--topic", options.topic)->required();
  app.add_option("--records", options.records, "Stop after so many")->required();
  app.add_option("--group", options.group, "Consumer group");
  app.add_option("--handles", options.handles, "librdkafka handles, each with one thread");
  app.add_flag("--partition-queues", options.partition_queues, "One queue per Kafka partition, read in batches");
  app.add_option("--fetch-bytes", options.fetch_bytes, "fetch.message.max.bytes");
  CLI11_PARSE(app, argc, argv);
  return drover::loadtest::run(options);
}

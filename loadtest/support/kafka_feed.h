#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "drover/model/status.h"

namespace drover::loadtest {

/// Creates a topic. One that exists is no error.
model::Status create_topic(const std::string& brokers, const std::string& topic, std::int32_t partitions);

/// A Kafka cluster inside this process (librdkafka's mock) with one topic. It keeps some megabytes of each partition
/// and drops what is older, so whoever feeds it must not run far ahead of who reads.
class EmbeddedKafka {
 public:
  EmbeddedKafka(const std::string& topic, std::int32_t partitions);
  ~EmbeddedKafka();
  const std::string& brokers() const { return brokers_; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::string brokers_;
};

/// Produces records to one topic, each to the partition of its key.
///
/// Threads: send() and flush() from one at a time; delivered() and waiting() from any.
class KafkaFeed {
 public:
  struct Options {
    std::string brokers;
    std::string topic;
    std::string codec = "lz4";
  };
  static model::Result<std::unique_ptr<KafkaFeed>> open(const Options& options);
  virtual ~KafkaFeed() = default;

  /// Waits while the queue is full.
  virtual void send(std::string_view key, std::string_view value) = 0;
  /// Waits until everything is delivered. kUnavailable if that takes more than a minute.
  virtual model::Status flush() = 0;

  /// Per partition, one behind the newest record that the broker has taken.
  virtual std::vector<std::int64_t> delivered() const = 0;
  /// Records that the broker has not taken yet. (Serves delivery reports, without which they would seem to wait.)
  virtual std::int64_t waiting() = 0;
};

}  // namespace drover::loadtest

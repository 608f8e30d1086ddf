#pragma once

#include <librdkafka/rdkafka.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

/// Owners of librdkafka's objects: each is destroyed once, by whoever holds it.
namespace drover::ingest {

template <auto destroy>
struct Destroy {
  template <typename T>
  void operator()(T* object) const {
    destroy(object);
  }
};
template <typename T, auto destroy>
using Holder = std::unique_ptr<T, Destroy<destroy>>;

using Conf = Holder<rd_kafka_conf_t, rd_kafka_conf_destroy>;
using PartitionList = Holder<rd_kafka_topic_partition_list_t, rd_kafka_topic_partition_list_destroy>;
using Message = Holder<rd_kafka_message_t, rd_kafka_message_destroy>;
using Error = Holder<rd_kafka_error_t, rd_kafka_error_destroy>;

/// One queue of librdkafka's that writes to a file descriptor when something comes into it while it is empty.
///
/// The queue behind it is the partition's own and outlives this: a later holder for the same partition gets the same
/// one. So this one must end (and take its wake-up with it) before the next begins.
class Queue {
 public:
  Queue() = default;
  Queue(rd_kafka_queue_t* queue, int wakeup_fd) : queue_(queue) {
    static constexpr std::uint64_t kOne = 1;  // what an eventfd takes
    rd_kafka_queue_io_event_enable(queue, wakeup_fd, &kOne, sizeof kOne);
  }
  explicit operator bool() const { return queue_ != nullptr; }
  rd_kafka_queue_t* get() const { return queue_.get(); }

 private:
  static void destroy(rd_kafka_queue_t* queue) {
    rd_kafka_queue_io_event_enable(queue, -1, nullptr, 0);
    rd_kafka_queue_destroy(queue);
  }
  Holder<rd_kafka_queue_t, destroy> queue_;
};

/// The messages of one fetch from a queue. They keep whole fetch buffers alive: let them go soon.
class MessageBatch {
 public:
  explicit MessageBatch(std::size_t messages_max) : messages_(messages_max) {}
  MessageBatch(const MessageBatch&) = delete;
  MessageBatch& operator=(const MessageBatch&) = delete;
  ~MessageBatch() { clear(); }

  /// Takes what is there, without waiting.
  void fetch(const Queue& queue) {
    clear();
    const auto count = rd_kafka_consume_batch_queue(queue.get(), 0, messages_.data(), messages_.size());
    size_ = count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  void clear() {
    for (rd_kafka_message_t* message : messages()) rd_kafka_message_destroy(message);
    size_ = 0;
  }
  std::span<rd_kafka_message_t* const> messages() const { return {messages_.data(), size_}; }

 private:
  std::vector<rd_kafka_message_t*> messages_;
  std::size_t size_ = 0;
};

}  // namespace drover::ingest

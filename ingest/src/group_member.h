#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "drover/ingest/consumer.h"
#include "drover/ingest/decoder.h"
#include "drover/model/sync.h"
#include "fetcher.h"
#include "leaders.h"
#include "rdkafka.h"
#include "sources.h"

namespace drover::ingest {

/// A file descriptor that wakes the poll thread.
class Wakeup {
 public:
  Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;
  ~Wakeup();

  int fd() const { return fd_; }
  void wake();
  /// Until it is woken, or one of `others` is ready.
  void wait(int timeout_ms, std::vector<pollfd>& others);

 private:
  int fd_;
};

/// What a member knows of the world, for readiness: written by the poll thread, read by any.
class Health {
 public:
  void broker_failed(std::string error);
  void brokers_up(bool up);
  void topic_failed(const std::string& topic, std::string error);
  void topic_assigned(const std::string& topic);
  void failed(std::string error);

  bool connected() const;
  /// Empty: none.
  std::string last_error() const;

 private:
  mutable model::Mutex mutex_;
  bool up_ GUARDED_BY(mutex_) = false;
  std::string broker_error_ GUARDED_BY(mutex_);                         ///< Until a broker is up.
  std::map<std::string, std::string> topic_errors_ GUARDED_BY(mutex_);  ///< Until the topic is assigned.
  std::string error_ GUARDED_BY(mutex_);                                ///< For good.
};

/// One member of the consumer group: one librdkafka handle and the thread that polls it.
///
/// Life: open(), start(), stop(), leave(); the last one is left to a thread that may outlive the consumer
/// (rd_kafka_destroy can wait for a broker that is gone; librdkafka #4519), so it touches nothing but the handle.
class GroupMember {
 public:
  struct Shared {
    const ConsumerOptions& options;
    const std::vector<Topic>& topics;
    model::AttributeNames& names;
    RowSink& sink;
    Sources& sources;
  };

  /// `shared` outlives stop(). kInvalid: librdkafka refuses a property.
  static model::Result<std::shared_ptr<GroupMember>> open(std::uint32_t index, const Shared& shared);
  GroupMember(std::uint32_t index, const Shared& shared);
  ~GroupMember();

  void start();
  /// Stops polling and hands over what is decoded, until `deadline_ns` of the steady clock at most.
  void request_stop(std::int64_t deadline_ns);
  void join();
  /// Leaves the group and destroys the handle. May block for long if the broker is gone.
  void leave();

  /// Tells the group how far its partitions have become durable. Any thread, until leave().
  void commit(const std::vector<model::SourcePosition>& positions);
  void add_partitions(std::vector<PartitionStats>& partitions, std::int64_t now_ms) const;
  bool has_partitions() const;
  const Health& health() const { return health_; }

 private:
  /// One assigned partition, or one that was revoked while rows of it were still to be handed over.
  struct Lane {
    Lane() = default;
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;
    ~Lane() {
      if (holds_source) source->release();
    }

    Source* source = nullptr;
    Queue queue;  ///< None once revoked.
    bool holds_source = false;
    std::int64_t assigned_offset = -1;    ///< Where fetching was told to begin; negative: at an end of the log.
    std::int64_t skip_below = -1;         ///< Records that the source's last holder read after this lane was assigned.
    std::unique_ptr<FetchStream> direct;  ///< Fetches in librdkafka's place, where the partition is paused.
    std::int64_t direct_from_ns = 0;      ///< Not before that time of the steady clock.
    std::int64_t direct_pause_ns = 0;     ///< How long librdkafka was to fetch when it was given back last.
    std::unique_ptr<RowSink::Pending> pending;
    std::uint64_t pending_rows = 0;
    std::int64_t log_time_ms = 0;  ///< The source's, as of the last batch.
  };
  enum class Progress { kMade, kNothingToDo, kBlocked };

  model::Status make_handle();
  void run();
  bool serve_main_queue();
  void sort_lanes();
  Progress advance_through_gate(Lane& lane);
  void wait(int timeout_ms);
  Progress advance(Lane& lane);
  Progress advance_queue(Lane& lane);
  Progress advance_direct(Lane& lane);
  void fetch_direct(Lane& lane);
  void hand_back(Lane& lane, FetchStream::Outcome outcome);
  static void end_direct(Lane& lane);
  bool hand_over(Lane& lane);
  void take(Lane& lane);
  void view_messages(Lane& lane);
  bool is_proven(Lane& lane, const rd_kafka_message_t& message);
  void begin_anew(Lane& lane);
  void note_queue_errors();
  void hand_over_the_rest();
  void remove_done_lanes();

  static void on_rebalance(rd_kafka_t* handle, rd_kafka_resp_err_t event, rd_kafka_topic_partition_list_t* partitions,
                           void* self);
  void assign(rd_kafka_topic_partition_list_t* partitions);
  void revoke(rd_kafka_topic_partition_list_t* partitions);
  static void on_error(rd_kafka_t* handle, int code, const char* reason, void* self);
  static int on_stats(rd_kafka_t* handle, char* json, std::size_t size, void* self);
  void note_message_error(const rd_kafka_message_t& message);

  const std::uint32_t index_;
  const Shared shared_;
  const bool may_fetch_directly_;
  Wakeup wakeup_;
  Health health_;
  std::int64_t initial_offset_ = RD_KAFKA_OFFSET_BEGINNING;

  Holder<rd_kafka_t, rd_kafka_destroy> handle_;
  Queue main_queue_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::int64_t stop_deadline_ns_ =
      0;  ///< Written before stopping_ is stored (release), read after it was loaded (acquire).
  std::atomic<bool> leaving_{false};

  // Poll thread only, but for lanes_, which others read under lanes_mutex_; the poll thread changes it under the same.
  mutable model::Mutex lanes_mutex_;
  std::vector<std::unique_ptr<Decoder>> decoders_;  ///< By topic.
  Leaders leaders_;
  Fetcher fetcher_;
  std::vector<pollfd> descriptors_;
  MessageBatch messages_;
  std::vector<model::RecordView> views_;
  Sources::Rejects batch_rejects_{};
  OnReject on_reject_;
  std::list<Lane> lanes_;  ///< Behind what its streams use.
};

}  // namespace drover::ingest

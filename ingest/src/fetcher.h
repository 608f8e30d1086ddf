#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "buffer_pool.h"
#include "decompressor.h"
#include "drover/model/record.h"
#include "fetch_protocol.h"
#include "record_batch_reader.h"

namespace drover::ingest {

struct BrokerAddress {
  std::string host;
  std::uint16_t port = 0;
  friend auto operator<=>(const BrokerAddress&, const BrokerAddress&) = default;
};

class FetchStream;

/// Fetches the records of Kafka partitions from the brokers that lead them, over one plain connection to each: at most
/// one request is on its way there, for every partition that has room.
///
/// It knows nothing but Fetch. Whatever else happens (a lost connection, another leader, an offset that is gone,
/// transactions) ends the stream and is its user's to solve; nothing is tried twice here.
/// Threads: one, for it and its streams, which it outlives. Nothing waits, but for the look-up of a new broker's name.
class Fetcher {
 public:
  /// Answers that a stream holds at most: one that is being read and the one behind it.
  static constexpr std::size_t kAnswersMax = 2;
  static constexpr std::int32_t kPartitionSizeBytesMax = 1024 * 1024;  ///< Of an answer; or one record batch.
  static constexpr std::int32_t kAnswerSizeBytesMax = 8 * 1024 * 1024;

  explicit Fetcher(std::string client_id);
  ~Fetcher();

  /// Begins at `offset`. A broker that can't be reached shows as the stream's end.
  std::unique_ptr<FetchStream> open(const BrokerAddress& leader, std::string topic, std::int32_t partition,
                                    std::int64_t offset);
  /// Sends and receives what it can without waiting; whether records came or a stream ended.
  bool serve();
  /// What to wait for until serve() has something to do.
  void append_descriptors(std::vector<pollfd>& descriptors) const;

 private:
  friend class FetchStream;
  class Connection;

  void close_unused();

  const std::string client_id_;
  Decompressor decompressor_;
  BufferPool answers_;
  BufferPool decompressed_;
  std::map<BrokerAddress, std::unique_ptr<Connection>> connections_;
};

/// The records of one partition, in their order. Destroying it ends the fetching.
class FetchStream {
 public:
  enum class Outcome : std::uint8_t {
    kRecords,  ///< There is at least one.
    kNothing,  ///< Nothing has come yet.
    kFailed,   ///< Over: the broker is away or refuses. Another stream may do better, later.
    kUnusual,  ///< Over: what lies there is not for this reader, nor for another of its kind.
  };

  FetchStream(Fetcher& fetcher, std::string topic, std::int32_t partition, std::int64_t offset);
  FetchStream(const FetchStream&) = delete;
  FetchStream& operator=(const FetchStream&) = delete;
  ~FetchStream();

  /// Views the next records, `records_max` at most, in place of what `views` held. They are valid until the next call.
  Outcome read(std::size_t records_max, std::vector<model::RecordView>& views);
  /// One behind what read() has viewed or skipped.
  std::int64_t next_offset() const { return reader_.next_offset(); }
  /// One behind the newest record that the broker told of; -1: it hasn't yet.
  std::int64_t end_offset() const { return end_offset_; }

 private:
  friend class Fetcher::Connection;

  /// The bytes of one answer. Owners: the streams that have records in it.
  struct Answer {
    Answer(Buffer&& answer_bytes, BufferPool& lender) : bytes(std::move(answer_bytes)), pool(lender) {}
    Answer(const Answer&) = delete;
    Answer& operator=(const Answer&) = delete;
    ~Answer() { pool.give(std::move(bytes)); }
    Buffer bytes;
    BufferPool& pool;
  };
  struct Part {
    std::shared_ptr<const Answer> answer;
    std::string_view records;
  };

  bool has_room() const { return outcome_ == Outcome::kNothing && !asked_ && parts_.size() < Fetcher::kAnswersMax; }
  void take(const FetchAnswer::Partition& partition, const std::shared_ptr<const Answer>& answer);
  void end(Outcome outcome);

  Fetcher& fetcher_;
  const std::string topic_;
  const std::int32_t partition_;
  RecordBatchReader reader_;
  std::deque<Part> parts_;
  bool reading_ = false;       ///< The reader has the first part.
  std::int64_t fetch_offset_;  ///< Of the next request.
  std::int64_t end_offset_ = -1;
  Outcome outcome_ = Outcome::kNothing;        ///< Behind the last part.
  Fetcher::Connection* connection_ = nullptr;  ///< None once ended.
  bool asked_ = false;                         ///< In the request that is on its way.
  bool served_ = false;                        ///< The last answer had records of it.
};

}  // namespace drover::ingest

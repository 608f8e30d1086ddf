#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "drover/ingest/decoder.h"
#include "drover/ingest/mapping.h"
#include "drover/ingest/stats.h"
#include "drover/model/batch.h"
#include "drover/model/status.h"
#include "drover/model/version.h"

namespace drover::ingest {

/// Where decoded rows go. What could not be handed over is kept by the lane and offered again, in order.
class RowSink {
 public:
  virtual ~RowSink() = default;

  /// Rows of one source on their way; opaque to ingest. Destroyed when everything has been handed over.
  class Pending {
   public:
    virtual ~Pending() = default;
    /// Offers what is left. kOk: all handed over. kFull: offer again later. kStopping: the table is gone.
    virtual model::Status offer() = 0;
  };
  /// Routes the rows of `table`; call offer() on the result until it is kOk.
  virtual std::unique_ptr<Pending> route(const std::string& table, std::shared_ptr<const model::RowBatch> rows) = 0;
};

/// Who fetches the records. Everything else is librdkafka's in either case.
enum class Fetch : std::uint8_t {
  kDirect,      ///< Drover, from each partition's leader, where no property asks for more; librdkafka otherwise.
  kLibrdkafka,  ///< librdkafka, always.
};

struct ConsumerOptions {
  std::string brokers;
  std::string group = "drover";
  std::map<std::string, std::string> librdkafka;  ///< Passed through; wins over Drover's own choices.
  Fetch fetch = Fetch::kDirect;
  std::uint32_t handles = 2;  ///< librdkafka handles (group members), each with one poll thread.
  std::size_t batch_records_max = model::kBatchRecordsMax;
  std::int64_t stop_timeout_ms = 5'000;  ///< Leaving the group, at most; the broker may be gone.
};

/// Whether librdkafka has the property and takes the value; kInvalid with librdkafka's words if not.
model::Status validate_property(const std::string& name, const std::string& value);

struct Topic {
  Mapping mapping;
  model::TableSchema table;
};

/// Reads topics as a member of a consumer group and hands their rows to a sink, each Kafka partition in its order.
///
/// While the sink says kFull for a partition's rows, that partition is not polled (its fetched records wait, bounded);
/// others go on. Heartbeats and rebalances are served meanwhile.
/// Reading begins at the positions that open() is given, elsewhere at the earliest offset; a rebalance goes on where
/// this process stood. What the group is told by commit() is for others to look at.
/// Threads: start(), stop() from one thread; hold() to commit() from one thread, which may be another; stats() from
/// any.
class Consumer {
 public:
  /// kInvalid: a librdkafka property is wrong (the message names it). A broker that is away is no error here: it shows
  /// in stats().last_error, and consuming begins when it comes.
  static model::Result<std::unique_ptr<Consumer>> open(ConsumerOptions options, std::vector<Topic> topics,
                                                       model::AttributeNames& names, RowSink& sink,
                                                       const std::vector<model::SourcePosition>& positions = {});
  virtual ~Consumer() = default;

  virtual void start() = 0;
  /// Stops polling, hands over what is decoded, leaves the group. Returns within stop_timeout_ms and a second.
  virtual void stop() = 0;
  virtual IngestStats stats() const = 0;

  /// Returns when nothing is being handed over, and nothing will be until release(). Heartbeats go on.
  virtual void hold() = 0;
  virtual void release() = 0;
  /// Up to where everything has been handed over. Requires: held.
  virtual std::vector<model::SourcePosition> positions() const = 0;
  /// Tells the group that records up to `positions` will not be read again. Returns at once.
  virtual void commit(const std::vector<model::SourcePosition>& positions) = 0;
};

}  // namespace drover::ingest

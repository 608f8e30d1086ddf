#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "drover/ingest/decoder.h"

namespace drover::ingest {

struct PartitionStats {
  std::string topic;
  std::int32_t partition = 0;
  std::uint64_t records = 0;      ///< Consumed.
  std::uint64_t bytes = 0;        ///< Of their values.
  std::int64_t next_offset = -1;  ///< -1: nothing consumed yet.
  std::int64_t end_offset = -1;   ///< One behind the newest record the broker told of; -1: unknown.
  std::int64_t lag_records = 0;
  double lag_seconds = 0;            ///< Age of the record consumed last while records wait, else 0.
  std::int64_t last_advance_ms = 0;  ///< When a record was consumed last, ms since 1970.
  bool paused = false;               ///< Not polled, since an inbox it feeds is full.
  bool direct = false;               ///< Fetched by Drover itself, not by librdkafka.
};

struct IngestStats {
  std::string group;
  std::vector<PartitionStats> partitions;  ///< Assigned ones only.
  struct TopicRejects {
    std::string topic;
    std::array<std::uint64_t, static_cast<std::size_t>(RejectReason::kCount)> by_reason{};
  };
  std::vector<TopicRejects> rejects;
  std::uint64_t rebalances = 0;
  std::uint64_t hand_backs = 0;      ///< Times that a partition fetched directly was given back to librdkafka.
  std::uint64_t renewals = 0;        ///< Kafka partitions whose topic was found made anew at the start.
  std::uint64_t records_missed = 0;  ///< Offsets that Kafka no longer had at the start, of what was not read yet.
  std::uint64_t rows_dropped = 0;    ///< Their table was deleted.
  bool connected = false;            ///< At least one broker has answered and partitions are assigned.
  std::string last_error;            ///< Of the broker connection, for /readyz; empty if none.
};

}  // namespace drover::ingest

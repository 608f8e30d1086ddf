#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record_batches.h"

namespace drover::ingest::test {

/// One partition of an answer to Fetch.
struct AnsweredPartition {
  std::string topic = "telemetry";
  std::int32_t partition = 0;
  std::int16_t error = 0;
  std::int64_t high_watermark = 0;
  std::int32_t aborted_transactions = -1;  ///< -1: Kafka's null.
  std::string records = "";
};

/// An answer to Fetch, version 10, without the size in front.
inline std::string answer_bytes(std::int32_t correlation_id, const std::vector<AnsweredPartition>& partitions,
                                std::int16_t error = 0) {
  std::string bytes = big_endian_bytes(correlation_id) + big_endian_bytes<std::int32_t>(0) + big_endian_bytes(error) +
                      big_endian_bytes<std::int32_t>(0) +
                      big_endian_bytes(static_cast<std::int32_t>(partitions.size()));
  for (const AnsweredPartition& partition : partitions) {
    bytes += big_endian_bytes(static_cast<std::int16_t>(partition.topic.size())) + partition.topic +
             big_endian_bytes<std::int32_t>(1) + big_endian_bytes(partition.partition) +
             big_endian_bytes(partition.error) + big_endian_bytes(partition.high_watermark) +
             big_endian_bytes(partition.high_watermark) + big_endian_bytes<std::int64_t>(0) +
             big_endian_bytes(partition.aborted_transactions);
    if (partition.aborted_transactions > 0) bytes.append(16 * partition.aborted_transactions, '\0');
    bytes += big_endian_bytes(static_cast<std::int32_t>(partition.records.size())) + partition.records;
  }
  return bytes;
}

}  // namespace drover::ingest::test

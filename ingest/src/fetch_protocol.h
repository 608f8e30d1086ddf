#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drover::ingest {

/// The bytes of Kafka's Fetch, version 10: the first with zstd (Kafka 2.1), and one that 4.x still takes.
struct FetchRequest {
  struct Partition {
    std::string_view topic;
    std::int32_t partition = 0;
    std::int64_t offset = 0;
  };

  std::int32_t correlation_id = 0;
  std::string_view client_id;
  std::int32_t wait_ms_max = 0;            ///< How long the broker may hold the answer back while there is nothing.
  std::int32_t answer_size_bytes_max = 0;  ///< One record batch may pass it, and the next one.
  std::int32_t partition_size_bytes_max = 0;
};

/// The request with its size in front, for committed records only.
std::string encode(const FetchRequest& request, const std::vector<FetchRequest::Partition>& partitions);

struct FetchAnswer {
  struct Partition {
    std::string_view topic;
    std::int32_t partition = 0;
    std::int16_t error = 0;
    std::int64_t high_watermark = -1;
    bool has_aborted_transactions = false;  ///< Some of the records may belong to them.
    std::string_view records;
  };

  std::int32_t correlation_id = 0;
  std::int32_t throttle_ms = 0;  ///< How long the broker wants to hear nothing.
  std::int16_t error = 0;
  std::vector<Partition> partitions;
};

/// Views an answer, `bytes` being what follows its size; nothing if it is malformed.
std::optional<FetchAnswer> parse_fetch_answer(std::string_view bytes);

}  // namespace drover::ingest

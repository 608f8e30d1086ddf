#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "fetcher.h"
#include "rdkafka.h"

namespace drover::ingest {

/// Which broker leads which partition, asked of the cluster through librdkafka. Threads: one.
class Leaders {
 public:
  /// The leader's address as of now; nothing if it isn't known. Asks at most once a second for all partitions together,
  /// and waits a second for the answer at most.
  std::optional<BrokerAddress> find(rd_kafka_t* handle, const std::string& topic, std::int32_t partition,
                                    std::int64_t now_ns);

 private:
  void ask(rd_kafka_t* handle);

  std::int64_t asked_ns_ = -1;
  std::map<std::pair<std::string, std::int32_t>, BrokerAddress> leaders_;
};

}  // namespace drover::ingest

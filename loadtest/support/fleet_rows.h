#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "drover/ingest/decoder.h"
#include "drover/model/batch.h"
#include "drover/model/names.h"
#include "drover/server/config.h"
#include "drover/store/store.h"

namespace drover::loadtest {

/// Makes batches of rows as a poll thread does: a Kafka partition's records at a time, by the decoder.
///
/// Threads: one at a time.
class FleetRows {
 public:
  FleetRows(const server::Config& config, model::AttributeNames& names);

  void add(std::uint32_t vehicle, std::string_view value);

  /// All since the last call, in the order of their last records.
  std::vector<std::shared_ptr<const model::RowBatch>> take();

 private:
  static constexpr std::uint32_t kPartitions = 4;
  struct Partition {
    ingest::SourceState state;
    std::int64_t next_offset = 0;
    std::vector<std::string> values;
  };

  void decode(Partition& partition);

  std::unique_ptr<ingest::Decoder> decoder_;
  std::array<Partition, kPartitions> partitions_;
  std::vector<std::shared_ptr<const model::RowBatch>> batches_;
};

/// Hands all of them to the table, waiting while it is full, and lets go of each.
void submit(store::Table& table, std::vector<std::shared_ptr<const model::RowBatch>> batches);

}  // namespace drover::loadtest

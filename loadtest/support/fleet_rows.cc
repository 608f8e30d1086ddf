#include "loadtest/support/fleet_rows.h"

#include <chrono>
#include <thread>
#include <utility>

#include "drover/model/limits.h"
#include "loadtest/fleet/fleet.h"

namespace drover::loadtest {

FleetRows::FleetRows(const server::Config& config, model::AttributeNames& names)
    : decoder_(ingest::make_json_decoder(config.topics.front(), config.tables.front(), names)) {
  for (std::uint32_t i = 0; i < kPartitions; ++i) {
    partitions_[i].state.source = model::SourceId{static_cast<std::uint16_t>(i + 1)};
  }
}

void FleetRows::add(std::uint32_t vehicle, std::string_view value) {
  Partition& partition = partitions_[vehicle % kPartitions];
  partition.values.emplace_back(value);
  if (partition.values.size() == model::kBatchRecordsMax) decode(partition);
}

std::vector<std::shared_ptr<const model::RowBatch>> FleetRows::take() {
  for (Partition& partition : partitions_) decode(partition);
  return std::exchange(batches_, {});
}

void FleetRows::decode(Partition& partition) {
  std::vector<model::RecordView> records;
  for (const std::string& value : partition.values) {
    model::RecordView& view = records.emplace_back();
    view.value = value;
    view.offset = model::Offset{partition.next_offset};
    // When the broker got it: that goes on, whatever the order of the readings.
    view.timestamp_ms = kFleetBeginMs + partition.next_offset / 1'000;
    ++partition.next_offset;
  }
  auto batch = std::make_shared<model::RowBatch>();
  decoder_->decode({partition.state.source, records}, partition.state, kFleetBeginMs + partition.next_offset, *batch,
                   [](const ingest::Reject&) {});
  partition.values.clear();
  if (!batch->rows.empty()) batches_.push_back(std::move(batch));
}

void submit(store::Table& table, std::vector<std::shared_ptr<const model::RowBatch>> batches) {
  for (auto& batch : batches) {
    for (partitioner::RoutedBatch& routed : table.route(std::move(batch))) {
      // NOLINTNEXTLINE(bugprone-use-after-move): moved from only on success
      while (!table.submit(std::move(routed)).ok()) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
}

}  // namespace drover::loadtest

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "drover/ingest/stats.h"
#include "drover/metrics/operations.h"
#include "drover/model/clock.h"
#include "drover/store/stats.h"

namespace drover::metrics {

/// Where a scrape reads from: the stages' own counters.
struct Sources {
  std::function<ingest::IngestStats()> ingest;
  std::function<store::StoreStats()> store;
  std::function<ApiStats()> api;
  std::function<store::CheckpointStats()> checkpoints;
  std::string version;
  std::int64_t (*steady_clock_ns)() = &model::steady_clock_ns;
};

/// Renders one scrape in Prometheus' text format, through a prometheus-cpp Collectable. The number of series depends on
/// topics, partitions, shards and tables, never on vehicles.
///
/// Threads: scrape() from any.
class Collector {
 public:
  explicit Collector(Sources sources);
  ~Collector();
  std::string scrape() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drover::metrics

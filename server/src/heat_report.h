#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "drover/partitioner/heat.h"
#include "drover/store/store.h"

namespace drover::server {

/// The /heat page: what each shard has done since its start and how fast since the report before this one, and which
/// keys were the hottest.
///
/// Threads: one at a time.
class HeatReport {
 public:
  /// `store` outlives this.
  explicit HeatReport(const store::Store& store);

  std::string json();

 private:
  using ShardKey = std::tuple<std::string, std::string, std::uint16_t>;  // table, index, shard

  const store::Store& store_;
  std::int64_t last_report_ns_;
  std::map<ShardKey, partitioner::ShardHeat> last_heat_;
};

}  // namespace drover::server

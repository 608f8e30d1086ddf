#include "heat_window.h"

#include <algorithm>
#include <utility>

namespace drover::metrics {

HeatWindow::Mark HeatWindow::mark(const store::StoreStats& stats, std::int64_t now_ns) {
  Mark mark{.time_ns = now_ns, .writer_time_ns = {}};
  for (const store::SpaceStats& space : stats.spaces) {
    for (const store::ShardStats& shard : space.shards) {
      mark.writer_time_ns[{space.table, space.index, shard.shard}] = shard.heat.writer_time_ns;
    }
  }
  return mark;
}

void HeatWindow::advance(const store::StoreStats& stats, std::int64_t now_ns) {
  now_ns_ = now_ns;
  if (!started_) {
    started_ = true;
    older_ = newer_ = mark(stats, now_ns);
  } else if (now_ns - newer_.time_ns >= kWindowNs) {
    older_ = std::exchange(newer_, mark(stats, now_ns));
  }
}

double HeatWindow::ratio(const store::SpaceStats& space, const store::ShardStats& shard) const {
  const auto before = older_.writer_time_ns.find({space.table, space.index, shard.shard});
  const std::int64_t window_ns = now_ns_ - older_.time_ns;
  if (before == older_.writer_time_ns.end() || window_ns <= 0 || shard.heat.writer_time_ns < before->second) return 0;
  return std::min(1.0,
                  static_cast<double>(shard.heat.writer_time_ns - before->second) / static_cast<double>(window_ns));
}

}  // namespace drover::metrics

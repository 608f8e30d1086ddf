#pragma once

#include <prometheus/metric_family.h>

#include <vector>

namespace drover::metrics {

/// Appends Prometheus' standard process_* families, as /proc has them. Without /proc, none.
void collect_process(std::vector<prometheus::MetricFamily>& out);

}  // namespace drover::metrics

#pragma once

#include <prometheus/metric_family.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace drover::metrics {

using Labels = std::vector<prometheus::ClientMetric::Label>;

/// One family of a scrape, filled sample by sample.
class Family {
 public:
  Family(prometheus::MetricType type, std::string name, std::string help) {
    family_.type = type;
    family_.name = std::move(name);
    family_.help = std::move(help);
  }

  /// Adds a counter's or a gauge's sample.
  template <typename Number>
  Family& add(Labels labels, Number value) {
    prometheus::ClientMetric& sample = family_.metric.emplace_back();
    sample.label = std::move(labels);
    sample.counter.value = static_cast<double>(value);
    sample.gauge.value = static_cast<double>(value);
    return *this;
  }

  /// Adds a histogram's sample. `counts` has one class per bound and a last one for what is above them all.
  template <typename Bound, std::size_t kBounds>
  Family& add_histogram(Labels labels, const std::array<Bound, kBounds>& bounds,
                        const std::array<std::uint64_t, kBounds + 1>& counts, double sum) {
    prometheus::ClientMetric& sample = family_.metric.emplace_back();
    sample.label = std::move(labels);
    std::uint64_t cumulative = 0;
    for (std::size_t i = 0; i < kBounds; ++i) {
      cumulative += counts[i];
      sample.histogram.bucket.push_back({cumulative, static_cast<double>(bounds[i])});
    }
    sample.histogram.sample_count = cumulative + counts[kBounds];
    sample.histogram.sample_sum = sum;
    return *this;
  }

  void move_to(std::vector<prometheus::MetricFamily>& out) {
    if (!family_.metric.empty()) out.push_back(std::move(family_));
  }

 private:
  prometheus::MetricFamily family_;
};

inline Family counter(std::string name, std::string help) {
  return {prometheus::MetricType::Counter, std::move(name), std::move(help)};
}
inline Family gauge(std::string name, std::string help) {
  return {prometheus::MetricType::Gauge, std::move(name), std::move(help)};
}
inline Family histogram(std::string name, std::string help) {
  return {prometheus::MetricType::Histogram, std::move(name), std::move(help)};
}

}  // namespace drover::metrics

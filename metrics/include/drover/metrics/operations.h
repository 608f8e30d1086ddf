#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace drover::metrics {

/// Upper bounds, in seconds, of the latency classes of queries; a last class takes everything above.
inline constexpr std::array<double, 10> kQueryDurationBounds{0.0001, 0.00025, 0.0005, 0.001, 0.0025,
                                                             0.005,  0.01,    0.05,   0.25,  1};

/// What one API operation did since the start.
struct OperationStats {
  std::string operation;  ///< "Query", …; a closed list.
  std::uint64_t ok = 0;
  std::uint64_t client_errors = 0;
  std::uint64_t throttled = 0;
  std::array<std::uint64_t, kQueryDurationBounds.size() + 1> by_duration{};
  double duration_seconds_sum = 0;
};

/// All operations of one API; counted by the server, rendered here.
struct ApiStats {
  std::vector<OperationStats> operations;
};

}  // namespace drover::metrics

#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdint>

namespace drover::loadtest {

/// CPU seconds, user and system, of this process since its start.
inline double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// The largest resident set that this process has had.
inline std::int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1'024;
}

/// Wall and CPU time between the first record and the last one.
class Stopwatch {
 public:
  void start() {
    wall_start_ = std::chrono::steady_clock::now();
    cpu_start_ = cpu_seconds();
  }
  void stop() {
    wall_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_start_).count();
    stop_cpu();
  }
  /// For CPU time that goes on behind the last record.
  void stop_cpu() { cpu_s_ = cpu_seconds() - cpu_start_; }
  double wall_s() const { return wall_s_; }
  double cpu_s() const { return cpu_s_; }

 private:
  std::chrono::steady_clock::time_point wall_start_;
  double cpu_start_ = 0;
  double wall_s_ = 0;
  double cpu_s_ = 0;
};

}  // namespace drover::loadtest

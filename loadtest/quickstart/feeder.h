#pragma once

#include <atomic>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

#include "drover/server/pipeline.h"
#include "loadtest/fleet/fleet.h"
#include "loadtest/support/kafka_feed.h"

namespace drover::loadtest {

/// Drives the fleet: every vehicle's META, then some history as fast as it goes, then live at a multiple of real time.
///
/// Never runs more than kRunAheadRecordsMax ahead of the pipeline: the embedded Kafka drops what it has no room for (5
/// MB a partition; with lz4 some 700,000 of these records in all), read or not. Threads: one of its own; all members
/// from the owner's.
class Feeder {
 public:
  static constexpr std::int64_t kRunAheadRecordsMax = 400'000;

  struct Options {
    FleetOptions fleet;
    std::int64_t history_ms = 0;  ///< Of fleet time.
    double speedup = 10;
    std::string record_file;  ///< Every record's value is also written here, one a line, and an empty
                              ///< line where the history ends; no name: nowhere.
  };

  Feeder(Options options, KafkaFeed& feed, const server::Pipeline& pipeline);
  ~Feeder();

  /// META and history are with the broker, and live readings wait for go_live().
  bool history_sent() const { return history_sent_.load(); }
  std::int64_t records_sent() const { return records_sent_.load(); }
  void go_live() { live_.store(true); }
  void stop();

 private:
  void run();
  void send(std::string_view key, std::string_view value);
  void send_until(std::int64_t fleet_time_ms);
  bool stopping() const { return stopping_.load(); }

  Options options_;
  KafkaFeed& feed_;
  const server::Pipeline& pipeline_;
  Fleet fleet_;
  std::ofstream record_file_;
  std::atomic<std::int64_t> records_sent_{0};
  std::atomic<bool> history_sent_{false};
  std::atomic<bool> live_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

/// Records that the broker has taken, or is about to, and the pipeline has not consumed yet.
std::int64_t records_ahead(KafkaFeed& feed, const server::Pipeline& pipeline);

}  // namespace drover::loadtest

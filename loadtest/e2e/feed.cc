// Fills a topic with a fleet's records: each vehicle's META first, then readings. Prints one line of JSON.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <thread>

#include "loadtest/fleet/fleet.h"
#include "loadtest/support/kafka_feed.h"

namespace drover::loadtest {
namespace {

struct Options {
  KafkaFeed::Options kafka;
  FleetOptions fleet{.vehicles = 10'000, .hot_share = 0, .hot_interval_ms = 1};
  std::int64_t records = 0;
  std::int32_t partitions = 4;
  double rate = 0;
  std::int64_t later_hours = 0;
};

/// Keeps to a rate by waiting for each thousandth of a second's share.
class Pace {
 public:
  explicit Pace(double per_second) : per_second_(per_second) {}
  void wait(std::int64_t sent) const {
    if (per_second_ <= 0) return;
    std::this_thread::sleep_until(start_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                               std::chrono::duration<double>(static_cast<double>(sent) / per_second_)));
  }

 private:
  double per_second_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

model::Status run(const Options& options) {
  if (model::Status status = create_topic(options.kafka.brokers, options.kafka.topic, options.partitions);
      !status.ok()) {
    return status;
  }
  auto feed = KafkaFeed::open(options.kafka);
  if (!feed) return feed.status();
  FleetOptions fleet_options = options.fleet;
  fleet_options.begin_ms += options.later_hours * 3'600'000;
  Fleet fleet(fleet_options);
  const auto begin = std::chrono::steady_clock::now();
  const Pace pace(options.rate);
  const std::int64_t metas = std::min<std::int64_t>(options.fleet.vehicles, options.records);
  for (std::int64_t sent = 0; sent < options.records; ++sent) {
    if (sent % 256 == 0) pace.wait(sent);
    if (sent < metas) {
      const auto vehicle = static_cast<std::uint32_t>(sent);
      (*feed)->send(fleet.vehicle_id(vehicle), fleet.meta_value(vehicle));
    } else {
      const Reading reading = fleet.next();
      (*feed)->send(fleet.vehicle_id(reading.vehicle), fleet.value(reading));
    }
  }
  if (model::Status status = (*feed)->flush(); !status.ok()) return status;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("{\"records\": %lld, \"seconds\": %.3f}\n", static_cast<long long>(options.records), seconds);
  return {};
}

}  // namespace
}  // namespace drover::loadtest

int main(int argc, char** argv) {
  drover::loadtest::Options options;
  CLI::App app("Fills a topic with a fleet's records.");
  app.add_option("--brokers", options.kafka.brokers)->required();
  app.add_option("--topic", options.kafka.topic)->required();
  app.add_option("--records", options.records, "How many, METAs included")->required();
  app.add_option("--partitions", options.partitions, "Of the topic, if it is created");
  app.add_option("--codec", options.kafka.codec, "none, gzip, snappy, lz4 or zstd");
  app.add_option("--vehicles", options.fleet.vehicles);
  app.add_option("--hot-share", options.fleet.hot_share, "Of all readings, those of V-7741");
  app.add_option("--seed", options.fleet.seed);
  app.add_option("--later-hours", options.later_hours,
                 "Begin the readings so much later, behind those of another feed");
  app.add_option("--rate", options.rate, "Records per second; 0: as fast as possible");
  CLI11_PARSE(app, argc, argv);
  const drover::model::Status status = drover::loadtest::run(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

// Makes a durable store of a fleet's readings, without Kafka: decodes, applies and writes checkpoints as Drover does.
// Prints one line of JSON: how fast that went and what it took of memory. Nothing is timed before the vehicles' METAs
// are there.

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "drover/store/store.h"
#include "loadtest/fleet/fleet.h"
#include "loadtest/support/fleet_config.h"
#include "loadtest/support/fleet_rows.h"
#include "loadtest/support/measure.h"

namespace drover::loadtest {
namespace {

constexpr std::uint64_t kStep = 32'768;  ///< Records that are handed over at a time.
constexpr std::int64_t kRestTimeoutMs = 120'000;

struct Options {
  std::string directory;
  std::uint64_t records = 2'000'000;
  FleetOptions fleet{.vehicles = 1'000, .hot_share = 0, .late_share = 0, .repeated_share = 0};
  std::uint64_t memory_budget_bytes = std::uint64_t{4} << 30;
  std::int64_t checkpoint_interval_ms = 1'000;
};

/// A checkpoint each interval, beside who feeds the store.
class Checkpoints {
 public:
  Checkpoints(store::Store& store, std::int64_t interval_ms)
      : store_(store), thread_([this, interval_ms] {
          while (!stopping_) {
            std::this_thread::sleep_for(std::chrono::milliseconds(interval_ms));
            write();
          }
        }) {}

  /// Batches are submitted with this locked.
  std::mutex& feeding() { return feeding_; }

  /// The last one, of everything. False: one failed.
  bool finish() {
    stopping_ = true;
    thread_.join();
    write();
    return !failed_;
  }

 private:
  void write() {
    std::unique_lock lock(feeding_);
    auto cut = store_.cut(kRestTimeoutMs);
    lock.unlock();
    if (!cut.ok() || !(*cut)->write({}).ok()) failed_ = true;
  }

  store::Store& store_;
  std::mutex feeding_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  std::thread thread_;
};

int run(const Options& options) {
  const server::Config config = fleet_config("", "fleet", model::TimePrecision::kMillis, false);
  const auto store =
      store::Store::open(options.directory, {.memory_budget_bytes = options.memory_budget_bytes}).value();
  const auto table = store->create_table(config.tables.front()).value();
  Checkpoints checkpoints(*store, options.checkpoint_interval_ms);
  FleetRows rows(config, store->names());
  const auto hand_over = [&] {
    auto batches = rows.take();
    const std::lock_guard lock(checkpoints.feeding());
    submit(*table, std::move(batches));
  };

  Fleet fleet(options.fleet);
  for (std::uint32_t vehicle = 0; vehicle < options.fleet.vehicles; ++vehicle) {
    rows.add(vehicle, fleet.meta_value(vehicle));
    if (vehicle % kStep == kStep - 1) hand_over();
  }
  hand_over();
  Stopwatch watch;
  watch.start();
  for (std::uint64_t record = 0; record < options.records; ++record) {
    const Reading reading = fleet.next();
    rows.add(reading.vehicle, fleet.value(reading));
    if (record % kStep == kStep - 1) hand_over();
  }
  hand_over();
  const bool drained = store->drain(kRestTimeoutMs);
  watch.stop();
  const bool kept = checkpoints.finish();
  const store::StoreStats stats = store->stats();
  const std::uint64_t items = table->size("").items;
  if (!drained || !kept || items != options.records + options.fleet.vehicles) {
    std::fprintf(stderr, "%llu items, %s\n", static_cast<unsigned long long>(items),
                 kept ? "all durable" : "a checkpoint failed");
    return 1;
  }
  std::printf(
      "{\"items\": %llu, \"seconds\": %.6f, \"cpu_s\": %.6f, \"peak_rss_bytes\": %lld, \"memory_bytes\": %llu}\n",
      static_cast<unsigned long long>(items), watch.wall_s(), watch.cpu_s(), static_cast<long long>(peak_rss_bytes()),
      static_cast<unsigned long long>(stats.memory_bytes));
  return 0;
}

}  // namespace
}  // namespace drover::loadtest

int main(int argc, char** argv) {
  drover::loadtest::Options options;
  CLI::App app("Makes a durable store of a fleet's readings, without Kafka.");
  app.add_option("--directory", options.directory, "Where; must be new")->required();
  app.add_option("--records", options.records, "Readings; a META of each vehicle comes in front of them, unmeasured");
  app.add_option("--vehicles", options.fleet.vehicles);
  app.add_option("--memory-budget", options.memory_budget_bytes, "As store.memory_budget, in bytes");
  app.add_option("--checkpoint-interval-ms", options.checkpoint_interval_ms);
  CLI11_PARSE(app, argc, argv);
  return drover::loadtest::run(options);
}

// Reads a fleet's topic with the whole of Drover. The clock starts at the first record and stops when the last one can
// be queried; with --directory, what it costs until all of it is durable counts too. Prints one line of JSON.
//
// With --serve it goes on instead, whether durable or not, and answers lines on its input; the input's end ends it:
//   wait N            when N records in all can be queried: {"seconds": since the line came}
//   watch S VEHICLES  in S seconds, while readings of so many vehicles come in steadily: how old the newest one was
//   that
//                     could be queried, looked up each millisecond, and how long checkpoints held ingest

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "drover/model/clock.h"
#include "drover/server/pipeline.h"
#include "loadtest/fleet/fleet.h"
#include "loadtest/support/fleet_config.h"
#include "loadtest/support/measure.h"

namespace drover::loadtest {
namespace {

constexpr auto kFirstRecordTick = std::chrono::milliseconds(1);
constexpr auto kTick = std::chrono::milliseconds(2);
constexpr auto kLook = std::chrono::milliseconds(1);
constexpr std::size_t kStride = 7'741;  ///< Prime to the usual numbers of vehicles.

struct Options {
  std::string brokers;
  std::string topic;
  std::string group = "drover-pipeline";
  std::uint64_t records = 0;
  bool depot_index = false;
  std::string directory;
  std::int64_t checkpoint_interval_ms = 1'000;
  bool die = false;
  bool through_librdkafka = false;
  bool serve = false;
};

std::uint64_t consumed(const server::Pipeline& pipeline) {
  std::uint64_t records = 0;
  for (const ingest::PartitionStats& partition : pipeline.ingest_stats().partitions) records += partition.records;
  return records;
}

std::uint64_t applied(server::Pipeline& pipeline) {
  const store::StoreStats stats = pipeline.store().stats();
  return stats.rows_stored + stats.rows_repeated + stats.rows_conflicting + stats.rows_refused;
}

/// Consumed is counted before the rows are handed over, so an idle store alone does not say that all is there. Adding
/// up the store's counters is dearer and done when it is likely to succeed.
bool can_be_queried(server::Pipeline& pipeline, std::uint64_t records) {
  return consumed(pipeline) >= records && pipeline.store().idle() && applied(pipeline) >= records;
}

/// Of the values read from Kafka.
unsigned long long value_bytes(const server::Pipeline& pipeline) {
  std::uint64_t bytes = 0;
  for (const ingest::PartitionStats& partition : pipeline.ingest_stats().partitions) bytes += partition.bytes;
  return bytes;
}

/// What this process has had written to block devices so far.
unsigned long long device_bytes() {
  std::ifstream io("/proc/self/io");
  unsigned long long bytes = 0;
  for (std::string name; io >> name >> bytes;) {
    if (name == "write_bytes:") return bytes;
  }
  return 0;
}

std::int64_t rss_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total_pages = 0;
  std::int64_t resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

/// 0 if there are none.
double percentile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1];
}

/// When the newest reading of a vehicle was produced, by its record's timestamp.
std::int64_t newest_produced_ms(const store::Table& table, std::string_view vehicle_id) {
  std::int64_t produced_ms = 0;
  (void)table.read("", "VEH#" + std::string(vehicle_id), {}, false, [&produced_ms](const store::StoredItem& item) {
    produced_ms = item.row.version().log_time_ms();
    return false;
  });
  return produced_ms;
}

/// Looks at fixed times; those that came too late follow at once, so that a pause counts for as long as it took.
void watch(server::Pipeline& pipeline, double seconds, std::uint32_t vehicles) {
  using Clock = std::chrono::steady_clock;
  const std::shared_ptr<store::Table> table = pipeline.store().find_table(kTable);
  const Fleet fleet({.vehicles = vehicles});
  std::vector<double> ages_ms;
  std::vector<double> holds_ms;
  std::uint64_t written = pipeline.checkpoint_stats().written;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  for (auto due = Clock::now(); due < end; due += kLook) {
    std::this_thread::sleep_until(due);
    // Of another Kafka partition and another shard each time.
    const auto vehicle = static_cast<std::uint32_t>(ages_ms.size() * kStride % vehicles);
    const std::int64_t produced_ms = newest_produced_ms(*table, fleet.vehicle_id(vehicle));
    ages_ms.push_back(static_cast<double>(model::system_clock_ms() - produced_ms));
    const store::CheckpointStats checkpoints = pipeline.checkpoint_stats();
    if (checkpoints.written == written) continue;
    written = checkpoints.written;
    holds_ms.push_back(static_cast<double>(checkpoints.last_hold_ns) / 1e6);
  }
  std::printf(
      "{\"age_p50_ms\": %.0f, \"age_p99_ms\": %.0f, \"age_p999_ms\": %.0f, \"age_max_ms\": %.0f, "
      "\"checkpoints\": %zu, \"hold_p50_ms\": %.3f, \"hold_p99_ms\": %.3f}\n",
      percentile(ages_ms, 0.5), percentile(ages_ms, 0.99), percentile(ages_ms, 0.999), percentile(ages_ms, 1),
      holds_ms.size(), percentile(holds_ms, 0.5), percentile(holds_ms, 0.99));
}

void wait(server::Pipeline& pipeline, std::uint64_t records) {
  const auto begin = std::chrono::steady_clock::now();
  while (!can_be_queried(pipeline, records)) std::this_thread::sleep_for(kTick);
  std::printf("{\"seconds\": %.6f}\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

void serve(server::Pipeline& pipeline) {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string word;
    std::uint64_t records = 0;
    double seconds = 0;
    std::uint32_t vehicles = 0;
    words >> word;
    if (word == "wait" && words >> records) wait(pipeline, records);
    if (word == "watch" && words >> seconds >> vehicles) watch(pipeline, seconds, vehicles);
    std::fflush(stdout);
  }
}

model::Status run(const Options& options) {
  server::Config config =
      fleet_config(options.brokers, options.topic, model::TimePrecision::kMillis, options.depot_index);
  config.kafka.group = options.group;
  if (options.through_librdkafka) config.kafka.fetch = ingest::Fetch::kLibrdkafka;
  config.api.port = 0;
  config.admin.port = 0;
  config.store_directory = options.directory;
  config.checkpoint_interval_ms = options.checkpoint_interval_ms;
  const std::unique_ptr<server::Pipeline> pipeline = server::Pipeline::make(std::move(config)).value();
  if (model::Status status = pipeline->start(); !status.ok()) return status;

  Stopwatch watch;
  while (consumed(*pipeline) == 0) std::this_thread::sleep_for(kFirstRecordTick);
  watch.start();
  while (!can_be_queried(*pipeline, options.records)) std::this_thread::sleep_for(kTick);
  watch.stop();
  if (!options.directory.empty() && !options.die && !options.serve) {
    const std::int64_t queryable_ms = model::system_clock_ms();
    while (pipeline->checkpoint_stats().last_cut_ms <= queryable_ms) std::this_thread::sleep_for(kTick);
    watch.stop_cpu();
  }

  const store::CheckpointStats checkpoints = pipeline->checkpoint_stats();
  const std::shared_ptr<store::Table> table = pipeline->store().find_table(kTable);
  std::printf(
      "{\"records\": %llu, \"seconds\": %.6f, \"cpu_s\": %.6f, \"peak_rss_bytes\": %lld, \"rss_bytes\": %lld, "
      "\"items\": %llu, \"value_bytes\": %llu, \"device_bytes\": %llu, \"opened_ms\": %lld, \"checkpoints\": %llu, "
      "\"checkpoint_bytes\": %llu, \"hold_ms\": %.3f, \"api_port\": %u, "
      "\"admin_port\": %u}\n",
      static_cast<unsigned long long>(options.records), watch.wall_s(), watch.cpu_s(),
      static_cast<long long>(peak_rss_bytes()), static_cast<long long>(rss_bytes()),
      static_cast<unsigned long long>(table->size("").items), value_bytes(*pipeline), device_bytes(),
      static_cast<long long>(pipeline->store().recovery().took_ms),
      static_cast<unsigned long long>(checkpoints.written), static_cast<unsigned long long>(checkpoints.bytes),
      static_cast<double>(checkpoints.hold_ns_sum) / 1e6, pipeline->api_address().port, pipeline->admin_address().port);
  std::fflush(stdout);
  if (options.die) kill(getpid(), SIGKILL);
  if (options.serve) serve(*pipeline);
  return pipeline->stop();
}

}  // namespace
}  // namespace drover::loadtest

int main(int argc, char** argv) {
  drover::loadtest::Options options;
  CLI::App app("Reads a fleet's topic with the whole of Drover and tells how long it took.");
  app.add_option("--brokers", options.brokers)->required();
  app.add_option("--topic", options.topic)->required();
  app.add_option("--records", options.records, "In the topic, METAs included")->required();
  app.add_option("--group", options.group, "Consumer group");
  app.add_flag("--index", options.depot_index, "With the index of depots");
  app.add_option("--directory", options.directory, "Durable, here");
  app.add_flag("--librdkafka", options.through_librdkafka, "librdkafka fetches the records, as with kafka.fetch");
  app.add_option("--checkpoint-interval-ms", options.checkpoint_interval_ms);
  app.add_flag("--die", options.die, "End by kill -9 as soon as the last record can be queried");
  app.add_flag("--serve", options.serve, "Go on until the input ends; see the source");
  CLI11_PARSE(app, argc, argv);
  const drover::model::Status status = drover::loadtest::run(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

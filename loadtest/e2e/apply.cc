// Applies one and the same set of a fleet's readings to a store, in an order of one's choice, and tells what that cost:
// without Kafka, and with the batches made beforehand, so that what is measured is the store's own work. Prints one
// line of JSON, with a hash of all items: it is the same whatever the order.

#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "drover/model/key.h"
#include "drover/store/store.h"
#include "loadtest/fleet/fleet.h"
#include "loadtest/support/fleet_config.h"
#include "loadtest/support/fleet_rows.h"

namespace drover::loadtest {
namespace {

constexpr std::size_t kWindow = 10'000;     ///< Readings that are shuffled among each other.
constexpr std::int64_t kLateByMs = 60'000;  ///< As in the fleet.
constexpr std::uint32_t kLateOneIn = 10;
constexpr std::int64_t kDrainTimeoutMs = 120'000;

enum class Order { kSorted, kLate, kReversed, kShuffled, kGlobal, kRepeated };
const std::map<std::string, Order> kOrders{{"sorted", Order::kSorted},     {"late", Order::kLate},
                                           {"reversed", Order::kReversed}, {"shuffled", Order::kShuffled},
                                           {"global", Order::kGlobal},     {"repeated", Order::kRepeated}};

struct Options {
  std::size_t records = 2'000'000;
  FleetOptions fleet{.vehicles = 1'000, .hot_share = 0, .late_share = 0, .repeated_share = 0};
  Order order = Order::kSorted;
  std::uint32_t workers = 2;
};

/// In order of time, no two of one vehicle at the same.
std::vector<Reading> sorted_readings(Fleet& fleet, std::size_t count) {
  std::vector<Reading> readings(count);
  std::generate(readings.begin(), readings.end(), [&fleet] { return fleet.next(); });
  return readings;
}

/// Every tenth one arrives a minute late.
void hold_some_back(std::vector<Reading>& readings, std::mt19937_64& random) {
  std::vector<std::pair<std::int64_t, Reading>> arrivals;
  arrivals.reserve(readings.size());
  for (const Reading& reading : readings) {
    arrivals.emplace_back(reading.recorded_at_ms + (random() % kLateOneIn == 0 ? kLateByMs : 0), reading);
  }
  std::stable_sort(arrivals.begin(), arrivals.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::transform(arrivals.begin(), arrivals.end(), readings.begin(),
                 [](const auto& arrival) { return arrival.second; });
}

void put_in_order(std::vector<Reading>& readings, Order order) {
  std::mt19937_64 random(1);
  switch (order) {
    case Order::kSorted:
    case Order::kRepeated:
      break;
    case Order::kLate:
      hold_some_back(readings, random);
      break;
    case Order::kReversed:  // of each vehicle, and the vehicles still take turns
      std::reverse(readings.begin(), readings.end());
      break;
    case Order::kShuffled:
      for (std::size_t begin = 0; begin < readings.size(); begin += kWindow) {
        const std::size_t end = std::min(begin + kWindow, readings.size());
        std::shuffle(readings.begin() + static_cast<std::ptrdiff_t>(begin),
                     readings.begin() + static_cast<std::ptrdiff_t>(end), random);
      }
      break;
    case Order::kGlobal:
      std::shuffle(readings.begin(), readings.end(), random);
      break;
  }
}

/// CPU time of all threads but the calling one: the store's workers.
double workers_cpu_seconds() {
  const auto seconds = [](clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  return seconds(CLOCK_PROCESS_CPUTIME_ID) - seconds(CLOCK_THREAD_CPUTIME_ID);
}

/// Of every item's keys and attributes in the order of a scan. Versions tell the order of arrival and are left out.
struct Contents {
  std::uint64_t items = 0;
  std::uint64_t hash = 0;
};

Contents contents(const store::Table& table) {
  Contents all;
  (void)table.scan("", 0, model::kSegments, std::nullopt, [&all](const store::StoredItem& item) {
    ++all.items;
    for (const std::string_view part : {item.partition_key, item.row.sort_key(), item.row.attributes()}) {
      all.hash = all.hash * 0x9e3779b97f4a7c15U + model::hash_key(part);
    }
    return true;
  });
  return all;
}

int run(const Options& options) {
  const server::Config config = fleet_config("", "fleet", model::TimePrecision::kMillis, false);
  const auto store = store::Store::open({.workers = options.workers});
  const auto table = store->create_table(config.tables.front()).value();
  Fleet fleet(options.fleet);
  FleetRows batches(config, store->names());
  for (std::uint32_t vehicle = 0; vehicle < options.fleet.vehicles; ++vehicle) {
    batches.add(vehicle, fleet.meta_value(vehicle));
  }
  submit(*table, batches.take());
  bool applied = store->drain(kDrainTimeoutMs);

  std::vector<Reading> readings = sorted_readings(fleet, options.records);
  put_in_order(readings, options.order);
  const auto make = [&] {
    for (const Reading& reading : readings) batches.add(reading.vehicle, fleet.value(reading));
    return batches.take();
  };
  if (options.order == Order::kRepeated) {
    submit(*table, make());
    applied = store->drain(kDrainTimeoutMs) && applied;
  }
  auto made = make();
  const double cpu_before_s = workers_cpu_seconds();
  submit(*table, std::move(made));
  applied = store->drain(kDrainTimeoutMs) && applied;
  const double cpu_s = workers_cpu_seconds() - cpu_before_s;

  const Contents all = contents(*table);
  if (!applied || all.items != options.records + options.fleet.vehicles) {
    std::fprintf(stderr, "%llu items of %zu readings and %u METAs\n", static_cast<unsigned long long>(all.items),
                 options.records, options.fleet.vehicles);
    return 1;
  }
  std::printf("{\"records\": %zu, \"cpu_s\": %.6f, \"late\": %llu, \"items\": %llu, \"hash\": \"%016llx\"}\n",
              options.records, cpu_s, static_cast<unsigned long long>(store->stats().rows_late),
              static_cast<unsigned long long>(all.items), static_cast<unsigned long long>(all.hash));
  return 0;
}

}  // namespace
}  // namespace drover::loadtest

int main(int argc, char** argv) {
  drover::loadtest::Options options;
  CLI::App app("Applies a fleet's readings to a store in an order of one's choice and tells what that cost.");
  app.add_option("--order", options.order,
                 "sorted; late (every tenth a minute late); reversed (each vehicle's); shuffled (within 10,000 "
                 "readings); global (all shuffled); repeated (sorted, a second time and with later versions)")
      ->transform(CLI::CheckedTransformer(drover::loadtest::kOrders));
  app.add_option("--records", options.records, "Readings; a META of each vehicle comes in front of them, unmeasured");
  app.add_option("--vehicles", options.fleet.vehicles);
  app.add_option("--workers", options.workers, "Of the store");
  CLI11_PARSE(app, argc, argv);
  return drover::loadtest::run(options);
}

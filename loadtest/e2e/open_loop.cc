// Asks for the newest ten readings of random vehicles at fixed times, whether or not the answers before have come, and
// prints how long after its time each was there. A client that waits for an answer before it asks again (a closed loop)
// would not notice that it was kept waiting: Gil Tene's "coordinated omission".

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "loadtest/fleet/fleet.h"
#include "loadtest/support/dynamodb_client.h"

namespace drover::loadtest {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::uint16_t port = 8'000;
  double rate = 1'000;
  double seconds = 10;
  unsigned connections = 16;
  FleetOptions fleet{.vehicles = 10'000};
};

struct Outcome {
  std::vector<double> latencies_ms;
  std::uint64_t errors = 0;
};

std::string newest_ten(std::string_view vehicle_id) {
  return R"({"TableName":"telemetry","KeyConditionExpression":"vehicleId = :v",)"
         R"("ExpressionAttributeValues":{":v":{"S":"VEH#)" +
         std::string(vehicle_id) + R"("}},"ScanIndexForward":false,"Limit":10})";
}

/// Sends every connections-th query of the schedule over a connection of its own.
Outcome run_connection(const Options& options, const Fleet& fleet, unsigned connection, Clock::time_point begin) {
  Outcome outcome;
  auto client = DynamoDbClient::connect("127.0.0.1", options.port);
  if (!client) return {{}, 1};
  std::minstd_rand random(connection + 1);
  std::uniform_int_distribution<std::uint32_t> vehicle(0, options.fleet.vehicles - 1);
  const auto queries = static_cast<std::uint64_t>(options.rate * options.seconds);
  for (std::uint64_t query = connection; query < queries; query += options.connections) {
    const auto due = begin + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(static_cast<double>(query) / options.rate));
    const std::string request = newest_ten(fleet.vehicle_id(vehicle(random)));
    std::this_thread::sleep_until(due);
    if (!(*client)->call("Query", request)) ++outcome.errors;
    outcome.latencies_ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - due).count());
  }
  return outcome;
}

int run(const Options& options) {
  const Fleet fleet(options.fleet);
  const auto begin = Clock::now() + std::chrono::milliseconds(100);
  std::vector<Outcome> outcomes(options.connections);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < options.connections; ++i) {
    threads.emplace_back([&, i] { outcomes[i] = run_connection(options, fleet, i, begin); });
  }
  for (std::thread& thread : threads) thread.join();

  std::vector<double> all;
  std::uint64_t errors = 0;
  for (const Outcome& outcome : outcomes) {
    all.insert(all.end(), outcome.latencies_ms.begin(), outcome.latencies_ms.end());
    errors += outcome.errors;
  }
  if (all.empty()) {
    std::fprintf(stderr, "nobody answers on port %u\n", options.port);
    return 1;
  }
  std::sort(all.begin(), all.end());
  const auto percentile = [&all](double share) {
    return all[static_cast<std::size_t>(std::ceil(share * static_cast<double>(all.size()))) - 1];
  };
  std::printf("{\"queries\": %zu, \"errors\": %llu, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f}\n",
              all.size(), static_cast<unsigned long long>(errors), percentile(0.5), percentile(0.99), all.back());
  return errors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace drover::loadtest

int main(int argc, char** argv) {
  drover::loadtest::Options options;
  CLI::App app("Asks for the newest ten readings of random vehicles at fixed times.");
  app.add_option("--port", options.port)->required();
  app.add_option("--rate", options.rate, "Queries per second");
  app.add_option("--seconds", options.seconds);
  app.add_option("--connections", options.connections);
  app.add_option("--vehicles", options.fleet.vehicles, "Of the fleet that was fed");
  CLI11_PARSE(app, argc, argv);
  return drover::loadtest::run(options);
}

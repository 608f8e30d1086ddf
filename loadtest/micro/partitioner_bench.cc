#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "drover/model/limits.h"
#include "drover/partitioner/heat.h"
#include "drover/partitioner/router.h"

namespace drover::partitioner {
namespace {

constexpr std::uint64_t kSeed = 7741;
constexpr int kVehicles = 10'000;

/// A batch of readings of random vehicles; routing looks at their hashes only.
std::shared_ptr<const model::RowBatch> make_batch(std::size_t rows) {
  std::mt19937_64 random(kSeed);
  std::uniform_int_distribution<int> vehicle(0, kVehicles - 1);
  auto batch = std::make_shared<model::RowBatch>();
  for (std::size_t i = 0; i < rows; ++i) {
    batch->rows.push_back({model::hash_key("VEH#V-" + std::to_string(vehicle(random))), 0, 0, 0});
  }
  return batch;
}

void BM_Route(benchmark::State& state) {
  const auto batch = make_batch(static_cast<std::size_t>(state.range(0)));
  const ShardMap map = ShardMap::uniform(static_cast<std::uint16_t>(state.range(1)));
  for (auto _ : state) benchmark::DoNotOptimize(route(batch, map));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}
BENCHMARK(BM_Route)->ArgNames({"rows", "shards"})->ArgsProduct({{128, 1024, model::kBatchRecordsMax}, {1, 4, 64}});

void BM_HotKeySketchAdd(benchmark::State& state) {
  std::mt19937_64 random(kSeed);
  std::geometric_distribution<int> skewed(1.0 / static_cast<double>(state.range(0)));
  std::vector<std::string> keys;
  keys.reserve(4096);
  for (int i = 0; i < 4096; ++i) keys.push_back("VEH#V-" + std::to_string(skewed(random)));
  HotKeySketch sketch;
  std::size_t next = 0;
  for (auto _ : state) {
    const std::string& key = keys[next++ % keys.size()];
    sketch.add(model::hash_key(key), key);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}
BENCHMARK(BM_HotKeySketchAdd)->ArgName("vehicles_mean")->Arg(10)->Arg(10'000);

}  // namespace
}  // namespace drover::partitioner

#include <benchmark/benchmark.h>

#include "loadtest/fleet/fleet.h"

namespace drover::loadtest {
namespace {

// The load tests' producer must never be what they measure.
void BM_FleetValue(benchmark::State& state) {
  Fleet fleet({.vehicles = static_cast<std::uint32_t>(state.range(0))});
  std::int64_t bytes = 0;
  for (auto _ : state) {
    const std::string_view value = fleet.value(fleet.next());
    benchmark::DoNotOptimize(value.data());
    bytes += static_cast<std::int64_t>(value.size());
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(bytes);
}
BENCHMARK(BM_FleetValue)->Arg(1'000)->Arg(10'000)->Arg(1'000'000);

}  // namespace
}  // namespace drover::loadtest

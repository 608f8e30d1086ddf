// What applying costs, without Kafka and without decoding: batches of rows as decoding makes them, into a store.

#include <benchmark/benchmark.h>
#include <time.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "drover/model/key.h"
#include "drover/model/time.h"
#include "drover/model/value_view.h"
#include "drover/store/store.h"

namespace drover::store {
namespace {

model::TableSchema schema(bool with_index) {
  model::TableSchema schema;
  schema.name = "telemetry";
  schema.key.partition_key = {"vehicleId", model::KeyType::kString};
  schema.key.sort_key = model::KeyAttribute{"recordedAt", model::KeyType::kString};
  schema.inherit = {"depotCode"};
  if (with_index) {
    model::IndexSchema depot;
    depot.name = "depot";
    depot.key.partition_key = {"depotCode", model::KeyType::kString};
    depot.key.sort_key = model::KeyAttribute{"recordedAt", model::KeyType::kString};
    schema.indexes.push_back(depot);
  }
  return schema;
}

constexpr std::int64_t kFirstMs = 1'780'000'000'000;

/// Readings of a fleet in time order, a vehicle at a time, as one Kafka partition (of four) carries them.
class Stream {
 public:
  Stream(model::AttributeNames& names, std::int64_t vehicles) : names_(&names), vehicles_(vehicles) {}

  std::shared_ptr<const model::RowBatch> metas() {
    auto batch = std::make_shared<model::RowBatch>();
    for (std::int64_t v = 0; v < vehicles_; ++v) {
      model::Bytes attributes;
      model::append_name(attributes, "depotCode", *names_);
      model::append_string_value(attributes, "DEP-LON-" + std::to_string(v % 4));
      add(*batch, v, "META", attributes);
    }
    return batch;
  }

  std::shared_ptr<const model::RowBatch> next(std::size_t records, std::int64_t partition) {
    auto batch = std::make_shared<model::RowBatch>();
    std::int64_t& at = position_[partition];
    for (std::size_t i = 0; i < records; ++i, ++at) {
      const std::int64_t per_partition = vehicles_ / 4;
      const std::int64_t vehicle = at % per_partition * 4 + partition;
      const std::int64_t ms = kFirstMs + at / per_partition * 5000 + at % per_partition * 5000 / per_partition;
      model::Bytes attributes;
      for (const char* name : {"speedKph", "coolantC", "fuelPct"}) {
        model::append_name(attributes, name, *names_);
        char value[32];
        attributes.append(value, model::put_number_value(value, 1 + static_cast<std::int64_t>(random_() % 999), -1));
      }
      add(*batch, vehicle, "TS#" + model::format_time({ms * 1'000'000}, model::TimePrecision::kMillis), attributes);
    }
    return batch;
  }

 private:
  void add(model::RowBatch& batch, std::int64_t vehicle, std::string_view sort_key, std::string_view attributes) {
    const std::string key = "VEH#V-" + std::to_string(10'000'000 + vehicle).substr(1);
    model::Bytes row;
    model::append_row(row, model::Version::of(kFirstMs, model::SourceId{1}, offset_++), 0, sort_key, attributes);
    batch.rows.push_back({model::hash_key(key), static_cast<std::uint32_t>(batch.bytes.size()),
                          static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(row.size())});
    batch.bytes.insert(batch.bytes.end(), key.begin(), key.end());
    batch.bytes.insert(batch.bytes.end(), row.begin(), row.end());
  }

  model::AttributeNames* names_;
  std::int64_t vehicles_;
  std::int64_t position_[4] = {};
  std::uint64_t offset_ = 0;
  std::minstd_rand random_{1};
};

void submit(Table& table, std::shared_ptr<const model::RowBatch> rows) {
  for (partitioner::RoutedBatch& batch : table.route(std::move(rows))) {
    // NOLINTNEXTLINE(bugprone-use-after-move): moved from only on success
    while (!table.submit(std::move(batch)).ok()) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

/// CPU time of all threads but the calling one.
double workers_cpu_seconds() {
  const auto seconds = [](clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  return seconds(CLOCK_PROCESS_CPUTIME_ID) - seconds(CLOCK_THREAD_CPUTIME_ID);
}

/// Arguments: vehicles, with the depot index (0/1). cpu_ns_per_record is the figure: the store's workers alone, without
/// the making of the batches, which is in the time.
void BM_Apply(benchmark::State& state) {
  constexpr std::size_t kRecords = 8192;
  auto store = Store::open({.workers = 2});
  auto table = store->create_table(schema(state.range(1) != 0)).value();
  Stream stream(store->names(), state.range(0));
  submit(*table, stream.metas());
  store->drain(60'000);
  std::int64_t i = 0;
  const double applied_before = workers_cpu_seconds();
  for (auto _ : state) {
    submit(*table, stream.next(kRecords, i++ % 4));
    if (i == state.max_iterations) store->drain(60'000);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRecords));
  state.counters["cpu_ns_per_record"] =
      (workers_cpu_seconds() - applied_before) * 1e9 / (static_cast<double>(state.iterations()) * kRecords);
  table.reset();
}
BENCHMARK(BM_Apply)->ArgsProduct({{10'000, 1'000'000}, {0, 1}})->Iterations(400)->UseRealTime();

}  // namespace
}  // namespace drover::store

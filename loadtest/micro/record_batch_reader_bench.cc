// What it costs to make views of the records of an answer to Fetch: checksum, decompression, and walking the records.
//
// 90,000 readings of 109 bytes with the vehicle's id as the key, batches of 10,000 (librdkafka's producer) or 150 (16
// KB, Java's), read 8,192 at a time; fixed seed.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "drover/model/limits.h"
#include "loadtest/fleet/fleet.h"
#include "record_batch_reader.h"
#include "tests/unit/ingest/record_batches.h"

namespace drover::ingest {
namespace {

constexpr std::int32_t kRecords = 90'000;  // whole batches of either size

std::string answer(Codec codec, std::int32_t batch_records) {
  loadtest::Fleet fleet({.vehicles = 10'000, .hot_share = 0});
  std::string bytes;
  for (std::int32_t offset = 0; offset < kRecords; offset += batch_records) {
    std::vector<test::BatchRecord> records;
    for (std::int32_t i = 0; i < batch_records; ++i) {
      const loadtest::Reading reading = fleet.next();
      records.push_back(
          {i, std::string(fleet.value(reading)), std::string(fleet.vehicle_id(reading.vehicle)), i / 100});
    }
    bytes += test::batch_bytes({.base_offset = offset, .codec = codec}, records);
  }
  return bytes;
}

void BM_ReadRecordBatches(benchmark::State& state) {
  const std::string bytes = answer(static_cast<Codec>(state.range(0)), static_cast<std::int32_t>(state.range(1)));
  Decompressor decompressor;
  BufferPool pool;
  std::vector<model::RecordView> views;
  std::int64_t items = 0;
  for (auto _ : state) {
    RecordBatchReader reader(decompressor, pool, 0);
    reader.feed(bytes);
    while (reader.read(model::kBatchRecordsMax, views) == RecordBatchReader::Outcome::kRecords) {
      benchmark::DoNotOptimize(views.data());
      items += static_cast<std::int64_t>(views.size());
    }
  }
  if (items < kRecords) state.SkipWithError("records were not read");
  state.SetItemsProcessed(items);
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes.size()));
}
BENCHMARK(BM_ReadRecordBatches)->ArgNames({"codec", "batch"})->ArgsProduct({{0, 1, 2, 3, 4}, {150, 10'000}});

}  // namespace
}  // namespace drover::ingest

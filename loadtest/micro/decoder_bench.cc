// What decoding one record costs: the short way that was learned, simdjson's, and records that fit no short way.
//
// 8,192 records of 110 bytes a batch, 10,000 vehicles, seconds in order, three metrics; fixed seed.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "drover/ingest/decoder.h"
#include "drover/ingest/mapping.h"
#include "drover/model/names.h"
#include "drover/model/time.h"

namespace {

using drover::ingest::JsonPath;
using drover::ingest::KeyTemplate;
using drover::ingest::Mapping;

constexpr std::size_t kRecords = drover::model::kBatchRecordsMax;
constexpr std::int64_t kStartMs = 1'782'205'200'000;  // 2026-06-23T09:00:00Z

drover::model::TableSchema telemetry_table() {
  drover::model::TableSchema table;
  table.name = "telemetry";
  table.key.partition_key.name = "vehicleId";
  table.key.sort_key.emplace().name = "recordedAt";
  table.time_sort_key.emplace();
  return table;
}

Mapping telemetry_mapping() {
  Mapping mapping;
  mapping.topic = "telemetry";
  mapping.table = "telemetry";
  mapping.id_path = JsonPath{{"vehicleId"}};
  mapping.time_path = JsonPath{{"recordedAt"}};
  mapping.partition_key = KeyTemplate::parse("VEH#{vehicleId}").value();
  mapping.sort_key = KeyTemplate::parse("TS#{recordedAt}").value();
  return mapping;
}

std::string tenths(std::mt19937& random, int from, int to) {
  const int value = std::uniform_int_distribution<int>(10 * from, 10 * to)(random);
  return std::to_string(value / 10) + "." + std::to_string(value % 10);
}

struct Records {
  explicit Records(const std::string& more_fields) {
    std::mt19937 random(7741);
    std::uniform_int_distribution<int> vehicle(1000, 9999);
    for (std::size_t i = 0; i < kRecords; ++i) {
      const std::int64_t time_ms = kStartMs + static_cast<std::int64_t>(i) * 10;
      values.push_back("{\"vehicleId\":\"V-" + std::to_string(vehicle(random)) + "\",\"recordedAt\":\"" +
                       drover::model::format_time({time_ms * 1'000'000}, drover::model::TimePrecision::kMillis) +
                       "\",\"speedKph\":" + tenths(random, 0, 120) + ",\"coolantC\":" + tenths(random, 70, 110) +
                       ",\"fuelPct\":" + tenths(random, 0, 100) + more_fields + "}");
      size_bytes += values.back().size();
    }
    for (std::size_t i = 0; i < kRecords; ++i) {
      drover::model::RecordView& view = views.emplace_back();
      view.value = values[i];
      view.timestamp_ms = kStartMs + static_cast<std::int64_t>(i);
      view.offset = drover::model::Offset{static_cast<std::int64_t>(i)};
    }
  }

  std::vector<std::string> values;
  std::vector<drover::model::RecordView> views;
  std::size_t size_bytes = 0;
};

void decode(benchmark::State& state, const std::string& more_fields) {
  const Records records(more_fields);
  drover::model::AttributeNames names;
  const auto decoder = drover::ingest::make_json_decoder(telemetry_mapping(), telemetry_table(), names);
  drover::ingest::SourceState source{drover::model::SourceId{1}};
  std::size_t refused = 0;
  const drover::ingest::OnReject on_reject = [&refused](const drover::ingest::Reject&) { ++refused; };
  for (auto _ : state) {
    drover::model::RowBatch batch;
    decoder->decode({source.source, records.views}, source, kStartMs, batch, on_reject);
    benchmark::DoNotOptimize(batch.bytes.data());
  }
  if (refused > 0) state.SkipWithError("records were refused");
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kRecords));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * records.size_bytes));
}

void BM_DecodeLearnedShape(benchmark::State& state) {
  decode(state, "");
}
BENCHMARK(BM_DecodeLearnedShape);

// A list is never learned, so simdjson reads every record.
void BM_DecodeBySimdjson(benchmark::State& state) {
  decode(state, ",\"dtc\":[]");
}
BENCHMARK(BM_DecodeBySimdjson);

void BM_DecodeNestedMap(benchmark::State& state) {
  decode(state, ",\"location\":{\"lat\":51.507351,\"lon\":-0.127758}");
}
BENCHMARK(BM_DecodeNestedMap);

}  // namespace

// What a block of readings takes on disk, and how long that takes: the fleet's readings (loadtest/fleet), as one
// vehicle's collection holds them, and the same as a depot's index holds them.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "columns.h"
#include "drover/model/check.h"
#include "drover/model/key.h"
#include "drover/model/time.h"
#include "drover/model/value_view.h"
#include "integers.h"
#include "loadtest/fleet/fleet.h"

namespace drover::store {
namespace {

/// Where a reading's log time comes from.
enum Clock : std::int64_t {
  kArrival = 0,   ///< The time at which it arrived, as Kafka stamps it.
  kRecorded = 1,  ///< The vehicle's own: of all those before, the latest.
};

struct Workload {
  model::TimePrecision precision = model::TimePrecision::kMillis;
  Clock clock = kArrival;
  bool index = false;
};

model::Bytes row_of(const loadtest::Reading& reading, std::int64_t log_time_ms, std::uint64_t offset,
                    std::string_view vehicle, const Workload& workload) {
  model::Bytes attributes;
  std::uint32_t id = 2;
  for (const std::int64_t tenths : {reading.speed_tenths, reading.coolant_tenths, reading.fuel_tenths}) {
    model::append_varint(attributes, id++);
    char value[model::kNumberValueSizeBytesMax];
    attributes.append(value, model::put_number_value(value, tenths, -1));
  }
  std::string key = "TS#" + model::format_time({reading.recorded_at_ms * 1'000'000}, workload.precision);
  if (workload.index) {
    model::Bytes joined;
    model::append_key_part(joined, key);
    model::append_key_part(joined, "VEH#" + std::string(vehicle));
    key = joined;
  } else {
    model::append_varint(attributes, 1);
    model::append_string_value(attributes, "DEP-LON-3");
  }
  model::Bytes row;
  model::append_row(row, model::Version::of(log_time_ms, model::SourceId{1}, offset), 0, key, attributes);
  return row;
}

/// The rows of a hundred or so collections in sort-key order, `count` of each.
std::vector<std::vector<model::Bytes>> collections(std::size_t count, const Workload& workload) {
  constexpr std::uint32_t kVehicles = 1'000;
  constexpr std::size_t kCollections = 64;
  loadtest::Fleet fleet({.vehicles = kVehicles});
  std::vector<std::map<std::string, model::Bytes>> rows(workload.index ? 1 : kCollections);
  const std::size_t wanted = workload.index ? kCollections * count : count;
  std::int64_t log_time_ms = 0;
  const auto full = [wanted](const auto& collection) { return collection.size() >= wanted; };
  for (std::uint64_t offset = 0; !std::all_of(rows.begin(), rows.end(), full); ++offset) {
    const loadtest::Reading reading = fleet.next();
    log_time_ms = std::max(log_time_ms, workload.clock == kArrival ? fleet.now_ms() : reading.recorded_at_ms);
    if (reading.vehicle >= (workload.index ? kVehicles / 4 : kCollections)) continue;
    auto& collection = rows[workload.index ? 0 : reading.vehicle];
    const model::Bytes row = row_of(reading, log_time_ms, offset, fleet.vehicle_id(reading.vehicle), workload);
    collection.insert_or_assign(std::string(model::RowView(row).sort_key()), row);
  }
  std::vector<std::vector<model::Bytes>> blocks;
  for (const auto& collection : rows) {
    for (auto at = collection.begin(); blocks.size() < kCollections && at != collection.end();) {
      std::vector<model::Bytes>& block = blocks.emplace_back();
      for (; block.size() < count && at != collection.end(); ++at) block.push_back(at->second);
      if (!workload.index) break;
    }
  }
  return blocks;
}

Workload workload_of(const benchmark::State& state) {
  return {state.range(1) == 0 ? model::TimePrecision::kSeconds : model::TimePrecision::kMillis,
          static_cast<Clock>(state.range(2)), state.range(3) != 0};
}

void BM_Encode(benchmark::State& state) {
  const auto blocks = collections(static_cast<std::size_t>(state.range(0)), workload_of(state));
  std::vector<std::vector<model::RowView>> views;
  views.reserve(blocks.size());
  for (const auto& block : blocks) views.emplace_back(block.begin(), block.end());
  std::size_t rows = 0;
  std::size_t bytes = 0;
  std::size_t at = 0;
  model::Bytes encoded;
  for (auto _ : state) {
    const auto& block = views[at++ % views.size()];
    encoded.clear();
    encode_columns(block, encoded);
    rows += block.size();
    bytes += encoded.size();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(rows));
  state.counters["bytes_per_reading"] = static_cast<double>(bytes) / static_cast<double>(rows);
  state.counters["ns_per_reading"] =
      benchmark::Counter(static_cast<double>(rows) * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void BM_Decode(benchmark::State& state) {
  std::vector<model::Bytes> encoded;
  for (const auto& block : collections(static_cast<std::size_t>(state.range(0)), workload_of(state))) {
    encode_columns(std::vector<model::RowView>(block.begin(), block.end()), encoded.emplace_back());
  }
  std::size_t rows = 0;
  std::size_t bytes = 0;
  std::size_t at = 0;
  for (auto _ : state) {
    const model::Status status = decode_columns(encoded[at++ % encoded.size()], [&rows, &bytes](std::string_view row) {
      ++rows;
      bytes += row.size();
    });
    DROVER_CHECK(status.ok(), "the benchmark's own blocks are right");
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(rows));
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
  state.counters["ns_per_reading"] =
      benchmark::Counter(static_cast<double>(rows) * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void workloads(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"rows", "millis", "clock", "index"});
  for (const std::int64_t rows : {2'048, 512, 64}) {
    for (const std::int64_t millis : {1, 0}) benchmark->Args({rows, millis, kArrival, 0});
  }
  benchmark->Args({512, 1, kRecorded, 0});
  benchmark->Args({512, 1, kArrival, 1});
}

// One column of integers at a time: which prediction and packing is the smallest, and what it takes and costs.

enum Part : std::int64_t { kLogTime, kOffset, kTime, kSpeed, kCoolant, kFuel };

struct Values {
  std::vector<std::uint64_t> values;
  std::vector<std::uint64_t> reference;
};

Values values_of(const std::vector<model::Bytes>& block, Part part) {
  Values column;
  for (const model::Bytes& bytes : block) {
    const model::RowView row(bytes);
    const auto log_time_ms = static_cast<std::uint64_t>(row.version().log_time_ms());
    if (part == kLogTime) {
      column.values.push_back(log_time_ms);
    } else if (part == kOffset) {
      column.values.push_back(row.version().offset);
      column.reference.push_back(log_time_ms);
    } else if (part == kTime) {
      column.values.push_back(model::parse_time(row.sort_key().substr(3))->value / 1'000'000);
      column.reference.push_back(log_time_ms);
    } else {
      const char* at = row.attributes().data();
      for (std::int64_t skip = part - kSpeed; skip > 0; --skip) model::take_raw_attribute(at);
      const model::Decimal number = model::take_raw_attribute(at).value.number();
      std::uint64_t tenths = static_cast<std::uint64_t>(number.coefficient());
      for (std::int32_t zeros = number.exponent() + 1; zeros > 0; --zeros) tenths *= 10;
      column.values.push_back(tenths);
    }
  }
  return column;
}

std::string how(char head) {
  static constexpr const char* kPackings[] = {"constant", "fixed", "coded", "runs"};
  static constexpr const char* kAlong[] = {"", ", along a line", ", along the log time"};
  return std::string(kPackings[head & 3]) + ((head & 4) != 0 ? ", by the last" : "") + kAlong[head >> 3];
}

std::vector<std::pair<Values, model::Bytes>> encoded_columns(const benchmark::State& state) {
  std::vector<std::pair<Values, model::Bytes>> columns;
  for (const auto& block : collections(512, {.clock = static_cast<Clock>(state.range(1))})) {
    auto& [values, encoded] = columns.emplace_back();
    values = values_of(block, static_cast<Part>(state.range(0)));
    append_integers(values.values, values.reference, encoded);
  }
  return columns;
}

void BM_EncodeColumn(benchmark::State& state) {
  const auto columns = encoded_columns(state);
  std::map<std::string, int> ways;
  std::size_t at = 0;
  std::size_t rows = 0;
  std::size_t bytes = 0;
  model::Bytes encoded;
  for (auto _ : state) {
    const Values& column = columns[at++ % columns.size()].first;
    encoded.clear();
    append_integers(column.values, column.reference, encoded);
    rows += column.values.size();
    bytes += encoded.size();
  }
  for (const auto& column : columns) ++ways[how(column.second[0])];
  state.SetLabel(std::max_element(ways.begin(), ways.end(), [](const auto& a, const auto& b) {
                   return a.second < b.second;
                 })->first);
  state.SetItemsProcessed(static_cast<std::int64_t>(rows));
  state.counters["bytes_per_reading"] = static_cast<double>(bytes) / static_cast<double>(rows);
}

void BM_DecodeColumn(benchmark::State& state) {
  auto columns = encoded_columns(state);
  for (auto& column : columns) column.second.append(kInputPaddingBytes, '\0');
  std::size_t at = 0;
  std::vector<std::uint64_t> values(512);
  for (auto _ : state) {
    const auto& [column, encoded] = columns[at++ % columns.size()];
    Input in(std::string_view(encoded).substr(0, encoded.size() - kInputPaddingBytes));
    DROVER_CHECK(take_integers(in, values, column.reference), "the benchmark's own columns are right");
    benchmark::DoNotOptimize(values.data());
  }
  state.SetItemsProcessed(state.iterations() * 512);
}

void parts(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"part", "clock"});
  for (const Part part : {kLogTime, kOffset, kTime, kSpeed, kCoolant, kFuel}) benchmark->Args({part, kArrival});
  for (const Part part : {kLogTime, kTime}) benchmark->Args({part, kRecorded});
}
BENCHMARK(BM_EncodeColumn)->Apply(parts);
BENCHMARK(BM_DecodeColumn)->Apply(parts);
BENCHMARK(BM_Encode)->Apply(workloads);
BENCHMARK(BM_Decode)->Apply(workloads);

}  // namespace
}  // namespace drover::store

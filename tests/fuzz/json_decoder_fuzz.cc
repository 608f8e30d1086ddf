// Goal: the ways that a JSON decoder can take give the same rows, byte for byte, or the same refusal, for any input.
// Method: the input is split at NULs into records. Each is decoded, several times in a row so that its own shape is
//         learned, by a decoder that takes every way and by one that takes simdjson's alone; decoders of four mappings
//         are kept from one input to the next, so shapes of earlier inputs meet later ones. A difference aborts.
// Run:     clang++ -fsanitize=fuzzer,address with the ingest and model libraries; tests/unit/ingest runs it on random
//          mutations of real records.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drover/ingest/decoder.h"
#include "drover/model/batch.h"
#include "drover/model/check.h"
#include "drover/model/names.h"
#include "json_decoder.h"

namespace drover::ingest {
namespace {

constexpr int kRepeats = 10;
constexpr std::int64_t kNowMs = 1'782'205'200'000;

model::TableSchema telemetry_table(model::TimePrecision precision) {
  model::TableSchema table;
  table.name = "telemetry";
  table.key.partition_key.name = "vehicleId";
  table.key.sort_key.emplace().name = "recordedAt";
  table.time_sort_key.emplace().precision = precision;
  return table;
}

Mapping every_field() {
  Mapping mapping;
  mapping.topic = mapping.table = "telemetry";
  mapping.id_path = JsonPath{{"vehicleId"}};
  mapping.time_path = JsonPath{{"recordedAt"}};
  mapping.partition_key = KeyTemplate::parse("VEH#{vehicleId}").value();
  mapping.sort_key = KeyTemplate::parse("TS#{recordedAt}").value();
  return mapping;
}

Mapping every_field_and_meta() {
  Mapping mapping = every_field();
  mapping.time_unit = model::TimeUnit::kSeconds;
  mapping.meta.emplace().path = JsonPath{{"kind"}};
  mapping.meta->equals = "META";
  return mapping;
}

Mapping listed() {
  Mapping mapping = every_field();
  mapping.attributes = {{JsonPath{{"location", "lat"}}, "lat"},
                        {JsonPath{{"location", "lon"}}, "lon"},
                        {JsonPath{{"speedKph"}}, "speed"},
                        {JsonPath{{"tags"}}, "tags"}};
  mapping.meta.emplace().path = JsonPath{{"vehicle", "plate"}};
  return mapping;
}

Mapping nested_id() {
  Mapping mapping = every_field();
  mapping.id_path = JsonPath{{"asset", "id"}};
  mapping.partition_key = KeyTemplate::parse("{vehicleId}").value();
  return mapping;
}

Mapping bucketed() {
  Mapping mapping = every_field_and_meta();
  mapping.partition_key = KeyTemplate::parse("VEH#{vehicleId}#{recordedAt:%Y-%m-%dT%H}").value();
  return mapping;
}

/// What one decoding gave.
struct Outcome {
  model::RowBatch batch;
  std::vector<RejectReason> refused;

  bool same_as(const Outcome& other) const {
    const auto same_row = [](const model::RowBatch::Row& a, const model::RowBatch::Row& b) {
      return a.hash == b.hash && a.begin == b.begin && a.partition_key_size == b.partition_key_size &&
             a.row_size == b.row_size;
    };
    return batch.bytes == other.batch.bytes && refused == other.refused &&
           std::equal(batch.rows.begin(), batch.rows.end(), other.batch.rows.begin(), other.batch.rows.end(), same_row);
  }
};

/// One mapping, decoded both ways.
class BothWays {
 public:
  BothWays(const Mapping& mapping, model::TimePrecision precision)
      : all_(make_json_decoder(mapping, telemetry_table(precision), names_, JsonWays::kAll)),
        simdjson_only_(make_json_decoder(mapping, telemetry_table(precision), names_, JsonWays::kSimdjsonOnly)) {}

  void compare(const std::vector<model::RecordView>& records) {
    const Outcome all = decode(*all_, records);
    const Outcome simdjson_only = decode(*simdjson_only_, records);
    if (all.same_as(simdjson_only)) return;
    for (std::size_t i = 0; i < records.size(); i += kRepeats) {
      std::fprintf(stderr, "record: %.*s\n", static_cast<int>(records[i].value->size()), records[i].value->data());
    }
    DROVER_CHECK(false, "both ways give the same rows");
  }

 private:
  static Outcome decode(Decoder& decoder, const std::vector<model::RecordView>& records) {
    Outcome outcome;
    SourceState state{model::SourceId{1}, 0};
    decoder.decode({state.source, records}, state, kNowMs, outcome.batch,
                   [&outcome](const Reject& reject) { outcome.refused.push_back(reject.reason); });
    return outcome;
  }

  model::AttributeNames names_;
  std::unique_ptr<Decoder> all_;
  std::unique_ptr<Decoder> simdjson_only_;
};

}  // namespace
}  // namespace drover::ingest

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using drover::model::TimePrecision;
  static drover::ingest::BothWays mappings[] = {{drover::ingest::every_field(), TimePrecision::kMillis},
                                                {drover::ingest::every_field_and_meta(), TimePrecision::kSeconds},
                                                {drover::ingest::listed(), TimePrecision::kNanos},
                                                {drover::ingest::nested_id(), TimePrecision::kMicros},
                                                {drover::ingest::bucketed(), TimePrecision::kMillis}};
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  std::vector<std::unique_ptr<char[]>> copies;  // of exact size, so that AddressSanitizer sees a byte too far
  std::vector<drover::model::RecordView> records;
  for (std::size_t begin = 0; begin <= input.size();) {
    const std::string_view value = input.substr(begin, input.find('\0', begin) - begin);
    begin += value.size() + 1;
    copies.push_back(std::make_unique<char[]>(value.size()));
    value.copy(copies.back().get(), value.size());
    for (int i = 0; i < drover::ingest::kRepeats; ++i) {
      drover::model::RecordView& record = records.emplace_back();
      record.value = std::string_view(copies.back().get(), value.size());
      record.timestamp_ms = drover::ingest::kNowMs;
      record.offset = drover::model::Offset{static_cast<std::int64_t>(records.size())};
    }
  }
  for (drover::ingest::BothWays& mapping : mappings) mapping.compare(records);
  return 0;
}

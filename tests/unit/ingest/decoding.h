#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drover/ingest/decoder.h"
#include "drover/ingest/mapping.h"
#include "drover/model/names.h"
#include "drover/model/row.h"
#include "tests/support/rows.h"

/// Mappings of the examples, and decoding records to what a test can compare.
namespace drover::ingest::test {

using drover::test::text;

inline constexpr std::int64_t kNowMs = 1'782'205'200'000;  // 2026-06-23T09:00:00Z

inline model::TableSchema telemetry_table(model::TimePrecision precision = model::TimePrecision::kMillis) {
  model::TableSchema table;
  table.name = "telemetry";
  table.key.partition_key.name = "vehicleId";
  table.key.sort_key.emplace().name = "recordedAt";
  table.time_sort_key.emplace().precision = precision;
  return table;
}

/// Every field of the record, and no META.
inline Mapping telemetry_mapping() {
  Mapping mapping;
  mapping.topic = "telemetry";
  mapping.table = "telemetry";
  mapping.id_path = JsonPath{{"vehicleId"}};
  mapping.time_path = JsonPath{{"recordedAt"}};
  mapping.partition_key = KeyTemplate::parse("VEH#{vehicleId}").value();
  mapping.sort_key = KeyTemplate::parse("TS#{recordedAt}").value();
  return mapping;
}

inline std::vector<AttributeMapping> attributes(
    std::initializer_list<std::pair<std::string_view, std::string_view>> paths_and_names) {
  std::vector<AttributeMapping> mapped;
  for (const auto& [path, name] : paths_and_names) mapped.push_back({JsonPath::parse(path).value(), std::string(name)});
  return mapped;
}

struct DecodedItem {
  std::string partition_key;
  std::string sort_key;
  model::Item attributes;
  model::Version version;
  std::uint8_t flags = 0;
};

struct Rejected {
  std::size_t record = 0;
  RejectReason reason = RejectReason::kCount;
  friend bool operator==(const Rejected&, const Rejected&) = default;
};

/// A record with a timestamp and an offset: its position in the batch.
inline std::vector<model::RecordView> views(const std::vector<std::optional<std::string>>& values) {
  std::vector<model::RecordView> views;
  for (const auto& value : values) {
    model::RecordView& view = views.emplace_back();
    if (value) view.value = *value;
    view.timestamp_ms = kNowMs;
    view.offset = model::Offset{static_cast<std::int64_t>(views.size()) - 1};
  }
  return views;
}

/// Decodes with one decoder, which so learns along the calls.
class Decoding {
 public:
  explicit Decoding(const Mapping& mapping = telemetry_mapping(), const model::TableSchema& table = telemetry_table())
      : decoder_(make_json_decoder(mapping, table, names)) {}

  std::vector<DecodedItem> decode_views(const std::vector<model::RecordView>& records) {
    model::RowBatch batch;
    rejected.clear();
    decoder_->decode({state.source, records}, state, kNowMs, batch, [&](const Reject& reject) {
      rejected.push_back({static_cast<std::size_t>(reject.record - records.data()), reject.reason});
    });
    std::vector<DecodedItem> items;
    for (const model::RowBatch::Row& row : batch.rows) {
      const model::RowView view(batch.row_bytes(row));
      items.push_back({std::string(batch.partition_key(row)), std::string(view.sort_key()),
                       drover::test::decode_attributes(view.attributes(), names), view.version(), view.flags()});
      hashes.push_back(row.hash);
    }
    return items;
  }
  std::vector<DecodedItem> decode(const std::vector<std::optional<std::string>>& values) {
    return decode_views(views(values));
  }
  /// The one item of one record.
  DecodedItem decode_one(const std::string& value) {
    std::vector<DecodedItem> items = decode({value});
    return items.size() == 1 ? std::move(items.front()) : DecodedItem{};
  }
  /// Why one record is refused; kCount: it is not.
  RejectReason reason_for(const std::optional<std::string>& value) {
    const std::vector<DecodedItem> items = decode({value});
    return rejected.empty() ? RejectReason::kCount : rejected.front().reason;
  }

  model::AttributeNames names;
  SourceState state{model::SourceId{1}};
  std::vector<Rejected> rejected;      ///< Of the last call.
  std::vector<model::KeyHash> hashes;  ///< Of all calls.

 private:
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace drover::ingest::test

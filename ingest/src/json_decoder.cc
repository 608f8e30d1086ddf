#include "json_decoder.h"

#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "drover/model/time.h"
#include "item_plan.h"
#include "json_reader.h"
#include "learned_shapes.h"
#include "log_time.h"
#include "parallel_decoder.h"
#include "row_writer.h"

namespace drover::ingest {
namespace {

/// More cores bring nothing more: librdkafka gives each poll thread a few million records a second, one core decodes
/// more.
constexpr std::size_t kPartsMax = 4;

/// The times that readings may have now, in the table's canonical form: so text order is time order.
class TimeWindow {
 public:
  TimeWindow() = default;
  TimeWindow(const CompiledMapping& mapping, std::int64_t now_ms) {
    const auto text_at = [&](std::int64_t ms) {
      const auto time = model::time_of_number(ms, 0, model::TimeUnit::kMillis);
      return time ? model::format_time(*time, mapping.precision) : std::string();
    };
    if (mapping.age_ms_max > 0) oldest_ = text_at(now_ms - mapping.age_ms_max);
    if (mapping.ahead_ms_max > 0) newest_ = text_at(now_ms + mapping.ahead_ms_max);
  }

  /// kCount: none.
  RejectReason refuses(std::string_view time) const {
    if (!newest_.empty() && time > newest_) return RejectReason::kAheadOfTime;
    return time < oldest_ ? RejectReason::kExpired : RejectReason::kCount;
  }

 private:
  std::string oldest_;  ///< Empty, as below: no bound.
  std::string newest_;
};

class JsonDecoder : public Decoder {
 public:
  JsonDecoder(const Mapping& mapping, const model::TableSchema& table, model::AttributeNames& names, JsonWays ways)
      : mapping_(mapping, table, names), reader_(mapping_, names), shapes_(mapping_, names), ways_(ways) {}

  void decode(const model::RecordBatch& records, SourceState& state, std::int64_t now_ms, model::RowBatch& out,
              const OnReject& on_reject) override {
    std::size_t values_size_bytes = 0;
    for (const model::RecordView& record : records.records) {
      if (record.value) values_size_bytes += record.value->size();
    }
    RowWriter writer(out, records.records.size(), values_size_bytes, mapping_.row_flags);
    window_ = TimeWindow(mapping_, now_ms);
    for (const model::RecordView& record : records.records) {
      advance_log_time(state, record, now_ms);
      ItemParts parts;
      RejectReason reason = read(record, parts);
      if (reason == RejectReason::kCount && parts.plan->sort_key.field == KeyPattern::Field::kTime) {
        reason = window_.refuses(parts.time);
      }
      if (reason != RejectReason::kCount) [[unlikely]] {
        on_reject({records.source, &record, reason});
        continue;
      }
      writer.append(parts, model::Version::of(state.log_time_ms, records.source,
                                              static_cast<std::uint64_t>(record.offset.value)));
    }
    writer.finish();
  }

 private:
  /// kCount: the parts are good.
  RejectReason read(const model::RecordView& record, ItemParts& parts) {
    if (!record.value) return RejectReason::kNullValue;
    const std::string_view json = *record.value;
    if (ways_ == JsonWays::kAll && shapes_.read(json, parts)) return RejectReason::kCount;
    if (json.empty()) return RejectReason::kEmptyValue;
    if (json.size() > model::kItemSizeBytesMax) return RejectReason::kTooLarge;
    if (!reader_.read(json, parts)) return reader_.reject_reason();
    if (ways_ == JsonWays::kAll) shapes_.learn(json, *parts.plan);
    return RejectReason::kCount;
  }

  const CompiledMapping mapping_;
  JsonReader reader_;
  LearnedShapes shapes_;
  const JsonWays ways_;
  TimeWindow window_;  ///< Of the present batch.
};

}  // namespace

std::string_view wire_name(RejectReason reason) {
  switch (reason) {
    case RejectReason::kNullValue:
      return "null_value";
    case RejectReason::kEmptyValue:
      return "empty_value";
    case RejectReason::kNotJson:
      return "not_json";
    case RejectReason::kNotAnObject:
      return "not_an_object";
    case RejectReason::kTooDeep:
      return "too_deep";
    case RejectReason::kTooLarge:
      return "too_large";
    case RejectReason::kNoId:
      return "no_id";
    case RejectReason::kNoTime:
      return "no_time";
    case RejectReason::kBadTime:
      return "bad_time";
    case RejectReason::kBadNumber:
      return "bad_number";
    case RejectReason::kBadKey:
      return "bad_key";
    case RejectReason::kDuplicateName:
      return "duplicate_name";
    case RejectReason::kAheadOfTime:
      return "ahead_of_time";
    case RejectReason::kExpired:
      return "expired";
    case RejectReason::kCount:
      break;
  }
  return "unknown";
}

std::unique_ptr<Decoder> make_json_decoder(const Mapping& mapping, const model::TableSchema& table,
                                           model::AttributeNames& names, JsonWays ways) {
  return std::make_unique<JsonDecoder>(mapping, table, names, ways);
}

std::unique_ptr<Decoder> make_json_decoder(const Mapping& mapping, const model::TableSchema& table,
                                           model::AttributeNames& names) {
  const auto make_one = [&] { return make_json_decoder(mapping, table, names, JsonWays::kAll); };
  // The poll threads alone keep two cores busy.
  const auto workers = static_cast<std::size_t>(tbb::this_task_arena::max_concurrency());
  if (workers <= 2) return make_one();
  return std::make_unique<ParallelDecoder>(std::min(workers, kPartsMax), make_one);
}

}  // namespace drover::ingest

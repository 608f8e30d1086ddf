#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "drover/ingest/mapping.h"
#include "drover/model/batch.h"
#include "drover/model/names.h"
#include "drover/model/record.h"

namespace drover::ingest {

/// Why a record was refused: a closed list (a metric's label).
enum class RejectReason : std::uint8_t {
  kNullValue,      ///< Kafka's null (a tombstone): ignored, counted.
  kEmptyValue,     ///< Zero bytes.
  kNotJson,        ///< Truncated, not UTF-8, bare NaN, text behind the object, …
  kNotAnObject,    ///< JSON, but not an object.
  kTooDeep,        ///< Nested deeper than an item may be.
  kTooLarge,       ///< The value, or the item it becomes, passes DynamoDB's 400 KB.
  kNoId,           ///< No vehicle id, an empty one, or one that is neither text nor a whole number.
  kNoTime,         ///< No time in a reading.
  kBadTime,        ///< A time that can't be read, has no zone, or is out of range.
  kBadNumber,      ///< A number outside DynamoDB's range or of more than 38 digits.
  kBadKey,         ///< A key longer than DynamoDB allows.
  kDuplicateName,  ///< One attribute twice in one record.
  kAheadOfTime,    ///< A reading whose time lies further ahead of the clock than the mapping allows.
  kExpired,        ///< A reading that is older than what the table retains.
  kCount,
};
std::string_view wire_name(RejectReason reason);  ///< "null_value", "not_json", …

/// A refused record, while its bytes are at hand. (The dead-letter path will be one of these.)
struct Reject {
  model::SourceId source;
  const model::RecordView* record = nullptr;
  RejectReason reason = RejectReason::kNotJson;
};
using OnReject = std::function<void(const Reject&)>;

/// Running state of one source, kept by whoever polls it.
struct SourceState {
  model::SourceId source;
  std::int64_t log_time_ms = 0;  ///< Running maximum of record timestamps.
};

/// Turns the records of one topic into rows of its table, by its mapping.
///
/// Records that look like the ones before (same fields in the same order, as one producer writes them) take a short way
/// that was learned from them; anything else takes simdjson's. Both give the same rows, byte for byte.
/// Threads: one per instance at a time; make one per poll thread.
class Decoder {
 public:
  virtual ~Decoder() = default;

  /// Appends the rows of `records` to `out`, in their order; a refused record is reported and left out.
  /// Versions: (log time, source, offset); a record timestamp that is missing or more than an hour ahead of `now_ms`
  /// takes the running maximum. `now_ms` is also what readings are ahead of, or too old.
  virtual void decode(const model::RecordBatch& records, SourceState& state, std::int64_t now_ms, model::RowBatch& out,
                      const OnReject& on_reject) = 0;
};

/// Requires: validate(mapping, table).ok(). `names` outlives the decoder.
std::unique_ptr<Decoder> make_json_decoder(const Mapping& mapping, const model::TableSchema& table,
                                           model::AttributeNames& names);

}  // namespace drover::ingest

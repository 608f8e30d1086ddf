#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drover/model/names.h"
#include "drover/model/schema.h"
#include "drover/model/status.h"
#include "drover/model/time.h"
#include "drover/model/time_pattern.h"

/// How the records of one topic become items of one table.
namespace drover::ingest {

/// A path into a JSON object: names joined by dots (`location.lat`).
struct JsonPath {
  std::vector<std::string> names;
  static model::Result<JsonPath> parse(std::string_view text);
  std::string text() const;
  friend bool operator==(const JsonPath&, const JsonPath&) = default;
};

/// Which paths become attributes, and under which names.
struct AttributeMapping {
  JsonPath path;
  std::string name;
};

/// What the vehicle's own record (META) looks like and which item it becomes.
struct MetaMapping {
  JsonPath path;       ///< A record is META if this path holds …
  std::string equals;  ///< … this text; empty: if the path is there at all.
  std::string sort_key = "META";
  std::vector<AttributeMapping> attributes;  ///< Empty: all.
};

/// A key template such as `VEH#{vehicleId}`: text and at most one field, `{vehicleId}` or `{recordedAt}` (the fields
/// are named by their meaning: the id and the time of the mapping), in braces. Behind the id may stand a bucket of
/// time,
/// `{recordedAt:%Y-%m}`: a vehicle then has a collection for each month. META, which is of no time, stands under what
/// is in front of it: `VEH#{vehicleId}` for all of `VEH#{vehicleId}#{recordedAt:%Y-%m}`.
struct KeyTemplate {
  std::string prefix;
  std::string field;                           ///< Name inside the braces; empty: a constant key.
  std::string suffix;                          ///< With zeros where a time's digits go.
  std::vector<model::TimeDigits> digits = {};  ///< Of the bucket, in the suffix; empty: there is none.
  static model::Result<KeyTemplate> parse(std::string_view text);
};

/// What becomes of an item that a record tells of again, otherwise.
enum class SameKey : std::uint8_t {
  kReplace,  ///< The later record is all of it.
  kMerge,    ///< Their attributes are united, and of those that both have the later record's counts.
};

struct Mapping {
  std::string topic;
  std::string table;
  JsonPath id_path;    ///< The vehicle's id: a string, or a whole number taken as its digits.
  JsonPath time_path;  ///< ISO text with a zone, or a number of `time_unit`s.
  model::TimeUnit time_unit = model::TimeUnit::kMillis;
  KeyTemplate partition_key;
  KeyTemplate sort_key;
  std::vector<AttributeMapping> attributes;  ///< Empty: every field but the id and the time, under its own name; nested
                                             ///< objects as maps.
  std::optional<MetaMapping> meta;
  /// How far ahead of the clock the time of a reading may lie, and how far behind it (what its table retains), where it
  /// stands in the sort key. 0: any.
  std::int64_t ahead_ms_max = 0;
  std::int64_t age_ms_max = 0;
  SameKey on_same_key = SameKey::kReplace;
};

/// Checks a mapping against its table: templates yield its keys, the time sort key's prefix is the template's, no
/// mapped attribute is a key. kInvalid says which setting to change.
model::Status validate(const Mapping& mapping, const model::TableSchema& table);

}  // namespace drover::ingest

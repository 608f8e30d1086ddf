#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drover/ingest/mapping.h"
#include "drover/model/bytes.h"
#include "drover/model/limits.h"
#include "drover/model/names.h"
#include "drover/model/schema.h"
#include "drover/model/value_view.h"

/// A mapping made ready for decoding: names encoded, paths joined to a tree, templates split.
namespace drover::ingest {

/// One name on the mapped paths of a JSON object.
struct PathNode {
  std::string name;
  std::size_t index = 0;  ///< In its plan; the root is 0.
  bool is_id = false;
  bool is_time = false;
  bool left_out = false;               ///< Not stored where every field is: it makes a key, or bears a key's name.
  std::optional<model::Bytes> stored;  ///< Encoded name of the attribute that it becomes.
  std::vector<PathNode> children;

  const PathNode* find(std::string_view child) const;
};

/// One key of an item: text, and the id or the time in it, or the id and the bucket that the time is in.
struct KeyPattern {
  enum class Field : std::uint8_t { kNone, kId, kTime };
  std::string prefix;
  Field field = Field::kNone;
  std::string suffix;
  std::vector<model::TimeDigits> digits;  ///< Of the time, in the suffix.
};

/// How a record of one kind (a reading, or META) becomes an item.
struct ItemPlan {
  PathNode root;
  std::size_t nodes = 0;             ///< In `root`'s tree.
  bool every_field = false;          ///< Store every field, not only those with PathNode::stored.
  std::size_t names_size_bytes = 0;  ///< Of the names in PathNode::stored.
  KeyPattern partition_key;
  KeyPattern sort_key;  ///< All empty in a table without one.
  bool needs_time = false;
};

struct CompiledMapping {
  /// Requires: validate(mapping, table).ok().
  CompiledMapping(const Mapping& mapping, const model::TableSchema& table, model::AttributeNames& names);

  ItemPlan reading;
  std::optional<ItemPlan> meta;
  JsonPath meta_path;
  std::string meta_equals;
  model::TimeUnit time_unit;
  model::TimePrecision precision;
  std::int64_t ahead_ms_max;
  std::int64_t age_ms_max;
  std::uint8_t row_flags;
  model::KeySchema key;
};

/// What one record says, ready to become a row.
struct ItemParts {
  const ItemPlan* plan = nullptr;
  std::string_view id;
  std::string_view time;                               ///< Canonical; empty if no key needs it.
  std::string_view attributes;                         ///< Encoded as in value_view.h, in the record's order.
  model::NameMask names = model::NameMask::unknown();  ///< Of the attributes.

  std::string_view field(const KeyPattern& key) const {
    if (key.field == KeyPattern::Field::kId) return id;
    return key.field == KeyPattern::Field::kTime ? time : std::string_view{};
  }
  std::size_t size_bytes(const KeyPattern& key) const {
    return key.prefix.size() + field(key).size() + key.suffix.size();
  }
};

/// Whether both keys are within DynamoDB's bounds.
inline bool keys_fit(const ItemParts& parts) {
  return parts.size_bytes(parts.plan->partition_key) <= model::kPartitionKeySizeBytesMax &&
         parts.size_bytes(parts.plan->sort_key) <= model::kSortKeySizeBytesMax;
}

/// Whether a record of that size could become an item beyond DynamoDB's 400 KB. An item counts at most four bytes for a
/// byte of JSON (a list of empty lists), and what the mapping adds.
inline bool may_be_too_large(const ItemPlan& plan, std::size_t json_size_bytes) {
  constexpr std::size_t kKeysSizeBytesMax =
      model::kPartitionKeySizeBytesMax + model::kSortKeySizeBytesMax + 2 * model::kKeyAttributeNameSizeBytesMax;
  return 4 * json_size_bytes + plan.names_size_bytes + kKeysSizeBytesMax > model::kItemSizeBytesMax;
}

}  // namespace drover::ingest

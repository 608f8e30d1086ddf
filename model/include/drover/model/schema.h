#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drover/model/status.h"
#include "drover/model/time.h"

/// What a table is: its keys, its indexes, and what Drover adds to DynamoDB's definition.
namespace drover::model {

enum class KeyType : std::uint8_t { kString, kNumber, kBinary };

struct KeyAttribute {
  std::string name;
  KeyType type = KeyType::kString;
  friend bool operator==(const KeyAttribute&, const KeyAttribute&) = default;
};

struct KeySchema {
  KeyAttribute partition_key;
  std::optional<KeyAttribute> sort_key;
  friend bool operator==(const KeySchema&, const KeySchema&) = default;
};

enum class ProjectionType : std::uint8_t { kAll, kKeysOnly, kInclude };

/// A secondary index. A global one has collections and shards of its own; a local one shares the table's partition key.
struct IndexSchema {
  std::string name;
  KeySchema key;
  bool local = false;
  ProjectionType projection = ProjectionType::kAll;
  std::vector<std::string> included;  ///< Non-key attributes, for kInclude.
  friend bool operator==(const IndexSchema&, const IndexSchema&) = default;
};

/// A sort key that is made from time: `prefix` and then canonical text of fixed precision. Writes and Query bounds are
/// brought to that form, so that text order is time order (`TS#2026-06-23T09:00:01Z` works as a bound at millis).
struct TimeSortKey {
  std::string prefix = "TS#";
  TimePrecision precision = TimePrecision::kMillis;
  friend bool operator==(const TimeSortKey&, const TimeSortKey&) = default;
};

struct TableSchema {
  std::string name;
  KeySchema key;
  std::vector<IndexSchema> indexes;
  std::optional<TimeSortKey> time_sort_key;  ///< Of the table's sort key; an index on the same attribute shares it.
  /// Attributes of the item at `inherit_from` that the writer stamps on the collection's other items at apply.
  std::vector<std::string> inherit;
  std::string inherit_from = "META";

  const IndexSchema* find_index(std::string_view index_name) const;
  friend bool operator==(const TableSchema&, const TableSchema&) = default;
};

/// When a table's items go by themselves. Not a part of its schema, since it may change while the table lives.
struct Retention {
  /// The attribute that holds the second, counted from 1970, in which an item expires. Empty: none does.
  std::string ttl_attribute;
  /// How long a reading stays, counted from the time in its sort key (TimeSortKey). 0: for ever.
  std::int64_t retain_ms = 0;
  friend bool operator==(const Retention&, const Retention&) = default;
};

/// Checks what CreateTable checks of names, keys and indexes; DynamoDB's words. (Attribute definitions are the API's.)
Status validate(const TableSchema& schema);

}  // namespace drover::model

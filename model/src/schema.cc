#include "drover/model/schema.h"

#include <algorithm>
#include <map>
#include <set>

#include "drover/model/limits.h"

namespace drover::model {
namespace {

constexpr std::size_t kNameSizeBytesMin = 3;
constexpr std::size_t kNameSizeBytesMax = 255;
constexpr std::ptrdiff_t kLocalIndexesMax = 5;
constexpr std::size_t kIncludedAttributesMax = 100;

Status wrong_parameter(const std::string& what) {
  return invalid("One or more parameter values were invalid: " + what);
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

/// `what` is "TableName" or "IndexName".
Status check_name(const std::string& what, const std::string& name) {
  if (name.size() < kNameSizeBytesMin || name.size() > kNameSizeBytesMax) {
    return invalid(what + " must be at least 3 characters long and at most 255 characters long");
  }
  if (!std::all_of(name.begin(), name.end(), is_name_character)) {
    return invalid("1 validation error detected: Value '" + name + "' at '" +
                   (what == "TableName" ? "tableName" : "indexName") +
                   "' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+");
  }
  return {};
}

/// Type of each key attribute seen so far: one attribute has one type, wherever it is a key.
using KeyTypes = std::map<std::string, KeyType>;

Status check_key_attribute(const KeyAttribute& attribute, KeyTypes& types) {
  if (attribute.name.empty() || attribute.name.size() > kKeyAttributeNameSizeBytesMax) {
    return wrong_parameter("The name of a key attribute must be 1 to 255 bytes long");
  }
  if (!types.emplace(attribute.name, attribute.type).second && types[attribute.name] != attribute.type) {
    return wrong_parameter("Key attribute " + attribute.name + " is used with two types");
  }
  return {};
}

Status check_key(const KeySchema& key, KeyTypes& types) {
  if (Status status = check_key_attribute(key.partition_key, types); !status.ok()) return status;
  if (!key.sort_key) return {};
  if (key.sort_key->name == key.partition_key.name) {
    return invalid("Both the Hash Key and the Range Key element in the KeySchema have the same name");
  }
  return check_key_attribute(*key.sort_key, types);
}

Status check_projection(const IndexSchema& index) {
  if (index.projection == ProjectionType::kInclude) {
    if (index.included.empty()) {
      return wrong_parameter("ProjectionType is INCLUDE, but NonKeyAttributes is not specified");
    }
    if (index.included.size() > kIncludedAttributesMax) {
      return wrong_parameter("NonKeyAttributes exceeds the per-index limit of 100 for index: " + index.name);
    }
  } else if (!index.included.empty()) {
    return wrong_parameter(std::string("ProjectionType is ") +
                           (index.projection == ProjectionType::kAll ? "ALL" : "KEYS_ONLY") +
                           ", but NonKeyAttributes is specified");
  }
  return {};
}

Status check_local(const IndexSchema& index, const KeySchema& table_key) {
  if (!table_key.sort_key) {
    return wrong_parameter(
        "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex");
  }
  if (!index.key.sort_key) {
    return wrong_parameter("Index KeySchema does not have a range key for index: " + index.name);
  }
  if (index.key.partition_key.name != table_key.partition_key.name) {
    return wrong_parameter(
        "Index KeySchema does not have the same leading hash key as table KeySchema for index: " + index.name +
        ". index hash key: " + index.key.partition_key.name + ", table hash key: " + table_key.partition_key.name);
  }
  return {};
}

Status check_index(const IndexSchema& index, const KeySchema& table_key, KeyTypes& types) {
  if (Status status = check_name("IndexName", index.name); !status.ok()) return status;
  if (Status status = check_key(index.key, types); !status.ok()) return status;
  if (Status status = check_projection(index); !status.ok()) return status;
  return index.local ? check_local(index, table_key) : Status();
}

Status check_indexes(const TableSchema& schema, KeyTypes& types) {
  const auto local = std::count_if(schema.indexes.begin(), schema.indexes.end(), [](const auto& i) { return i.local; });
  const auto all = static_cast<std::ptrdiff_t>(schema.indexes.size());
  if (local > kLocalIndexesMax) {
    return wrong_parameter("LocalSecondaryIndex count exceeds the per-table limit of 5");
  }
  if (all - local > kGlobalIndexesMax) {
    return wrong_parameter("GlobalSecondaryIndex count exceeds the per-table limit of 20");
  }
  std::set<std::string_view> names;
  for (const IndexSchema& index : schema.indexes) {
    if (Status status = check_index(index, schema.key, types); !status.ok()) return status;
    if (!names.insert(index.name).second) return wrong_parameter("Duplicate index name: " + index.name);
  }
  return {};
}

/// What Drover adds to DynamoDB's definition; its own words.
Status check_additions(const TableSchema& schema) {
  const std::optional<KeyAttribute>& sort_key = schema.key.sort_key;
  if (schema.time_sort_key && (!sort_key || sort_key->type != KeyType::kString)) {
    return invalid("Table " + schema.name + ": a time sort key needs a sort key of type S");
  }
  if (schema.inherit.empty()) return {};
  if (!sort_key || sort_key->type != KeyType::kString) {
    return invalid("Table " + schema.name + ": inherit needs a sort key of type S");
  }
  for (const std::string& name : schema.inherit) {
    if (name.empty() || name == schema.key.partition_key.name || name == sort_key->name) {
      return invalid("Table " + schema.name + ": inherit can't name the key attribute '" + name + "'");
    }
  }
  return {};
}

}  // namespace

const IndexSchema* TableSchema::find_index(std::string_view index_name) const {
  const auto found =
      std::find_if(indexes.begin(), indexes.end(), [&](const auto& index) { return index.name == index_name; });
  return found == indexes.end() ? nullptr : &*found;
}

Status validate(const TableSchema& schema) {
  KeyTypes types;
  if (Status status = check_name("TableName", schema.name); !status.ok()) return status;
  if (Status status = check_key(schema.key, types); !status.ok()) return status;
  if (Status status = check_indexes(schema, types); !status.ok()) return status;
  return check_additions(schema);
}

}  // namespace drover::model

#include "dynamodb/keys.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "drover/model/key.h"
#include "drover/model/limits.h"
#include "drover/store/item.h"
#include "dynamodb/errors.h"

namespace drover::server {
namespace {

using expression::KeyCondition;
using model::AttributeValue;
using model::Bytes;
using model::KeyAttribute;
using Operator = KeyCondition::Operator;

enum class Rounding { kDown, kUp };

bool is_time_key(const model::TableSchema& table, std::string_view attribute) {
  return table.time_sort_key && table.key.sort_key && table.key.sort_key->name == attribute;
}

Bytes encode(const model::TableSchema& table, const KeyAttribute& attribute, const AttributeValue& value,
             std::size_t size_bytes_max, Rounding rounding = Rounding::kDown) {
  Bytes out;
  check(model::append_key(out, attribute, value, size_bytes_max));
  if (!is_time_key(table, attribute.name)) return out;
  return model::canonical_time_key(*table.time_sort_key, out, rounding == Rounding::kUp);
}

Bytes encode_partition(const model::TableSchema& table, const KeyAttribute& attribute, const AttributeValue& value) {
  return encode(table, attribute, value, model::kPartitionKeySizeBytesMax);
}
Bytes encode_sort(const model::TableSchema& table, const KeyAttribute& attribute, const AttributeValue& value,
                  Rounding rounding = Rounding::kDown) {
  return encode(table, attribute, value, model::kSortKeySizeBytesMax, rounding);
}

/// Encodes the table's key of an item; `value(attribute)` finds the attribute or throws.
template <typename Value>
EncodedKey encode_table_key(const model::TableSchema& table, Value value) {
  EncodedKey key;
  key.partition_key = encode_partition(table, table.key.partition_key, value(table.key.partition_key));
  if (table.key.sort_key) key.sort_key = encode_sort(table, *table.key.sort_key, value(*table.key.sort_key));
  return key;
}

ApiError key_mismatch() {
  return validation_error("The provided key element does not match the schema");
}

/// The key attribute of a request's key, of the schema's type.
const AttributeValue& key_element(const model::Item& key, const KeyAttribute& attribute) {
  const auto found = key.find(attribute.name);
  if (found == key.end() || found->second.type != expression::attribute_type(attribute.type)) throw key_mismatch();
  return found->second;
}

void check_index_key(const model::IndexSchema& index, const KeyAttribute& attribute, const model::Item& item,
                     std::size_t size_bytes_max, ItemOrigin origin) {
  const auto found = item.find(attribute.name);
  if (found == item.end()) return;
  const AttributeValue& value = found->second;
  const model::AttributeType wanted = expression::attribute_type(attribute.type);
  const bool updated = origin == ItemOrigin::kUpdateExpression;
  if (value.type != wanted && updated) {
    throw validation_error("The update expression attempted to update the secondary index key to unsupported type");
  }
  if (value.type != wanted) {
    throw invalid_parameter("Type mismatch for Index Key " + attribute.name +
                            " Expected: " + std::string(model::wire_name(wanted)) +
                            " Actual: " + std::string(model::wire_name(value.type)) + " IndexName: " + index.name);
  }
  if (attribute.type != model::KeyType::kNumber && value.bytes.empty()) {
    const std::string what = attribute.type == model::KeyType::kString ? "string" : "binary";
    throw validation_error(
        "One or more parameter values are not valid. " +
        std::string(updated ? "The update expression attempted to update a secondary index key to a value that is not "
                              "supported. "
                            : "A value specified for a secondary index key is not supported. ") +
        "The AttributeValue for a key attribute cannot contain an empty " + what + " value." +
        (updated ? "" : " IndexName: " + index.name + ", IndexKey: " + attribute.name));
  }
  Bytes ignored;
  check(model::append_key(ignored, attribute, value, size_bytes_max));
}

/// The smallest bytes that are larger than everything that begins with `prefix`; nothing if there are none.
std::optional<Bytes> behind_prefix(Bytes prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (prefix.empty()) return std::nullopt;
  prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

/// The edges of all entries whose sort key is, or begins with, one value.
struct Edges {
  store::KeyRange::Bound at_or_behind;  // lower bound that keeps them
  store::KeyRange::Bound behind;        // lower bound that leaves them out
  store::KeyRange::Bound before;        // upper bound that leaves them out
  store::KeyRange::Bound up_to;         // upper bound that keeps them
};
Edges edges(const ReadTarget& target, const Bytes& key) {
  if (target.index == nullptr) return {{key, true}, {key, false}, {key, false}, {key, true}};
  const store::IndexBounds bounds = store::index_bounds(key, false);
  return {{bounds.lower, true}, {bounds.upper, true}, {bounds.lower, false}, {bounds.upper, false}};
}

store::KeyRange prefix_range(const ReadTarget& target, const Bytes& prefix) {
  store::KeyRange range;
  if (target.index != nullptr) {
    const store::IndexBounds bounds = store::index_bounds(prefix, true);
    range.lower = {bounds.lower, true};
    if (!bounds.upper.empty()) range.upper = {bounds.upper, false};
    return range;
  }
  range.lower = {prefix, true};
  if (const std::optional<Bytes> upper = behind_prefix(prefix)) range.upper = {*upper, false};
  return range;
}

/// The attributes that a LastEvaluatedKey of the target holds.
std::vector<const KeyAttribute*> start_key_attributes(const ReadTarget& target) {
  std::vector<const KeyAttribute*> out;
  const auto add = [&](const model::KeySchema& key) {
    for (const KeyAttribute* attribute : {&key.partition_key, key.sort_key ? &*key.sort_key : nullptr}) {
      if (attribute == nullptr) continue;
      const bool there =
          std::any_of(out.begin(), out.end(), [&](const auto* each) { return each->name == attribute->name; });
      if (!there) out.push_back(attribute);
    }
  };
  add(target.table.key);
  if (target.index != nullptr) add(target.index->key);
  return out;
}

}  // namespace

void canonicalize_key(const model::TableSchema& table, model::Item& item) {
  if (!table.time_sort_key || !table.key.sort_key) return;
  const auto found = item.find(table.key.sort_key->name);
  if (found == item.end() || found->second.type != model::AttributeType::kString) return;
  found->second.bytes = model::canonical_time_key(*table.time_sort_key, found->second.bytes);
}

EncodedKey encode_key(const model::TableSchema& table, const model::Item& key) {
  if (key.size() != (table.key.sort_key ? 2 : 1)) throw key_mismatch();
  return encode_table_key(
      table, [&](const KeyAttribute& attribute) -> const AttributeValue& { return key_element(key, attribute); });
}

EncodedKey encode_item_key(const model::TableSchema& table, const model::Item& item) {
  EncodedKey key = encode_table_key(table, [&](const KeyAttribute& attribute) -> const AttributeValue& {
    const auto found = item.find(attribute.name);
    if (found == item.end()) throw invalid_parameter("Missing the key " + attribute.name + " in the item");
    return found->second;
  });
  check_index_keys(table, item, ItemOrigin::kRequest);
  return key;
}

void check_index_keys(const model::TableSchema& table, const model::Item& item, ItemOrigin origin) {
  for (const model::IndexSchema& index : table.indexes) {
    check_index_key(index, index.key.partition_key, item, model::kPartitionKeySizeBytesMax, origin);
    if (index.key.sort_key) check_index_key(index, *index.key.sort_key, item, model::kSortKeySizeBytesMax, origin);
  }
}

void check_scalar_keys(const model::TableSchema& table, const std::vector<expression::Path>& paths) {
  const std::string problem =
      "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: ";
  for (const expression::Path& path : paths) {
    if (!path.nested()) continue;
    if (is_key_attribute(table.key, path.head())) throw validation_error(problem + "Key: " + path.head());
    for (const model::IndexSchema& index : table.indexes) {
      if (is_key_attribute(index.key, path.head())) throw validation_error(problem + "IndexKey: " + path.head());
    }
  }
}

bool is_key_attribute(const model::KeySchema& key, std::string_view attribute) {
  return key.partition_key.name == attribute || (key.sort_key && key.sort_key->name == attribute);
}

Bytes encode_partition_key(const ReadTarget& target, const AttributeValue& value) {
  return encode_partition(target.table, target.key().partition_key, value);
}

store::KeyRange to_range(const ReadTarget& target, const KeyCondition* sort_key) {
  if (sort_key == nullptr) return {};
  const KeyAttribute& attribute = *target.key().sort_key;
  if (sort_key->op == Operator::kBeginsWith) {
    // Text, not time: a prefix of a time is none.
    Bytes prefix;
    check(model::append_key(prefix, attribute, *sort_key->value, model::kSortKeySizeBytesMax));
    return prefix_range(target, prefix);
  }
  // A bound between two representable times parts them rightly: >= and < begin at the next one, > and <= end at the
  // last.
  const auto down = [&](const AttributeValue& value) {
    return edges(target, encode_sort(target.table, attribute, value));
  };
  const auto up = [&](const AttributeValue& value) {
    return edges(target, encode_sort(target.table, attribute, value, Rounding::kUp));
  };
  const AttributeValue& value = *sort_key->value;
  switch (sort_key->op) {
    case Operator::kLess:
      return {std::nullopt, up(value).before};
    case Operator::kLessEqual:
      return {std::nullopt, down(value).up_to};
    case Operator::kGreater:
      return {down(value).behind, std::nullopt};
    case Operator::kGreaterEqual:
      return {up(value).at_or_behind, std::nullopt};
    case Operator::kBetween:
      return {up(value).at_or_behind, down(*sort_key->upper).up_to};
    default: {
      const Edges at = down(value);
      return {at.at_or_behind, at.up_to};
    }
  }
}

bool contains(const store::KeyRange& range, const Bytes& position) {
  if (range.lower && (range.lower->inclusive ? position < range.lower->key : position <= range.lower->key))
    return false;
  return !range.upper || (range.upper->inclusive ? position <= range.upper->key : position < range.upper->key);
}

bool is_empty(const store::KeyRange& range) {
  if (!range.lower || !range.upper) return false;
  const bool inclusive = range.lower->inclusive && range.upper->inclusive;
  return inclusive ? range.upper->key < range.lower->key : range.upper->key <= range.lower->key;
}

store::Table::ScanPosition start_position(const ReadTarget& target, const model::Item& start_key, bool scan) {
  const auto invalid = [](const std::string& problem = {}) {
    return validation_error("The provided starting key is invalid" + problem);
  };
  const std::string mismatch = ": The provided key element does not match the schema";
  const std::vector<const KeyAttribute*> attributes = start_key_attributes(target);
  if (start_key.size() != attributes.size()) throw invalid(target.index == nullptr && scan ? mismatch : "");
  for (const KeyAttribute* attribute : attributes) {
    const auto found = start_key.find(attribute->name);
    if (found == start_key.end()) throw invalid(target.index == nullptr && scan ? mismatch : "");
    if (found->second.type != expression::attribute_type(attribute->type)) throw invalid(mismatch);
  }
  const auto value = [&](const KeyAttribute& attribute) -> const AttributeValue& {
    return start_key.find(attribute.name)->second;
  };
  EncodedKey key = encode_table_key(target.table, value);
  const bool table_order = target.index == nullptr || (target.local() && scan);
  if (table_order) return {std::move(key.partition_key), std::move(key.sort_key)};

  const model::KeySchema& index_key = target.index->key;
  const Bytes sort_key =
      index_key.sort_key ? encode_sort(target.table, *index_key.sort_key, value(*index_key.sort_key)) : "";
  return {encode_partition(target.table, index_key.partition_key, value(index_key.partition_key)),
          store::index_sort_key(target.table, *target.index, sort_key, key.partition_key, key.sort_key)};
}

}  // namespace drover::server

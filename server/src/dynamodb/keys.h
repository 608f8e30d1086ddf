#pragma once

#include <string_view>
#include <vector>

#include "drover/model/attribute.h"
#include "drover/model/bytes.h"
#include "drover/model/schema.h"
#include "drover/store/store.h"
#include "expression/key_condition.h"

/// From the keys of requests to the encoded keys of the store. All functions throw a ValidationException with
/// DynamoDB's words on keys that the schema does not allow.
namespace drover::server {

/// A table, or the index of it that a request names.
struct ReadTarget {
  const model::TableSchema& table;
  const model::IndexSchema* index = nullptr;

  const model::KeySchema& key() const { return index != nullptr ? index->key : table.key; }
  bool global() const { return index != nullptr && !index->local; }
  bool local() const { return index != nullptr && index->local; }
};

struct EncodedKey {
  model::Bytes partition_key;
  model::Bytes sort_key;  ///< Empty in a table without one.
  friend auto operator<=>(const EncodedKey&, const EncodedKey&) = default;
};

/// Brings a sort key that is made from time to its canonical form, in place.
void canonicalize_key(const model::TableSchema& table, model::Item& item);

/// The key of a request (GetItem and the like): exactly the table's key attributes.
EncodedKey encode_key(const model::TableSchema& table, const model::Item& key);

/// The key of a whole item, whose attributes must suit the keys of all indexes too.
EncodedKey encode_item_key(const model::TableSchema& table, const model::Item& item);

/// Refuses attributes that do not suit the indexes' keys. DynamoDB has words of its own for what an UpdateExpression
/// made.
enum class ItemOrigin { kRequest, kUpdateExpression };
void check_index_keys(const model::TableSchema& table, const model::Item& item, ItemOrigin origin);

/// Key attributes are scalars: no path leads into them.
void check_scalar_keys(const model::TableSchema& table, const std::vector<expression::Path>& paths);

/// Whether the attribute is part of the table's own key.
bool is_key_attribute(const model::KeySchema& key, std::string_view attribute);

/// The encoded partition key that a Query reads.
model::Bytes encode_partition_key(const ReadTarget& target, const model::AttributeValue& value);

/// Which part of the collection a sort-key condition (null: none) selects. In an index, bounds are in joined keys.
store::KeyRange to_range(const ReadTarget& target, const expression::KeyCondition* sort_key);

/// Whether a position (a sort key, joined in an index) lies in a range; a range that holds nothing.
bool contains(const store::KeyRange& range, const model::Bytes& position);
bool is_empty(const store::KeyRange& range);

/// Where a page begins: the place of an ExclusiveStartKey, which need not exist. For a Scan of a local index, whose
/// order is the table's, the place in the table.
store::Table::ScanPosition start_position(const ReadTarget& target, const model::Item& start_key, bool scan);

}  // namespace drover::server

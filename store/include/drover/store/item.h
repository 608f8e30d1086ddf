#pragma once

#include <functional>
#include <string_view>

#include "drover/model/attribute.h"
#include "drover/model/names.h"
#include "drover/model/schema.h"
#include "drover/model/value_view.h"
#include "drover/store/store.h"

/// From an item as it lies in a collection back to its attributes: the key attributes stand in the collection's key and
/// the row's sort key, all others in the row.
namespace drover::store {

/// Where the key attributes of an item come from. One per (table, index), made once per request.
class ItemReader {
 public:
  /// `index` is null for the table itself.
  ItemReader(const model::TableSchema& schema, const model::IndexSchema* index, const model::AttributeNames& names);

  /// Calls `use` for every attribute, key attributes first. Values live until the next call or `item`'s end.
  template <typename Use>
  void for_each(const StoredItem& item, Use&& use) {
    load_keys(item);
    for (std::size_t i = 0; i < keys_; ++i) use(key_[i].name, model::ValueView(key_[i].encoded));
    for (model::AttributeReader reader(item.row.attributes(), *names_); reader.next();) {
      use(reader.attribute().name, reader.attribute().value);
    }
  }

  model::Item to_item(const StoredItem& item);

  /// The table's (and the index's) key attributes alone: what LastEvaluatedKey holds.
  model::Item key_of(const StoredItem& item);

 private:
  struct KeyValue {
    std::string name;
    model::KeyType type = model::KeyType::kString;
    model::Bytes encoded;  // as a value; buffers are reused from item to item
  };
  void load_keys(const StoredItem& item);

  const bool joined_;  ///< Whether the row's sort key is an index's joined parts.
  const model::AttributeNames* names_;
  std::size_t keys_ = 0;
  KeyValue key_[4];
};

/// The encoded sort key of an index entry: joined (index sort key, table partition key, table sort key). A part that is
/// the same attribute as one in front of it, or as the index's partition key, is left out. This is also what an
/// ExclusiveStartKey on an index is turned into. Parts are encoded keys (model/key.h).
model::Bytes index_sort_key(const model::TableSchema& schema, const model::IndexSchema& index,
                            std::string_view index_sort_key, std::string_view partition_key, std::string_view sort_key);

/// A bound on an index's own sort key, for KeyRange: every entry whose index sort key is `part` (or, as a prefix,
/// begins with it) lies in [lower, upper). An empty upper bound of a prefix means that there is none.
struct IndexBounds {
  model::Bytes lower;
  model::Bytes upper;
};
IndexBounds index_bounds(std::string_view part, bool prefix);

}  // namespace drover::store

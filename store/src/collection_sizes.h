#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collection.h"
#include "drover/model/names.h"
#include "drover/model/row.h"
#include "drover/model/schema.h"
#include "drover/model/value_view.h"

namespace drover::store {

/// How large the item collections of a table with a local index are, by DynamoDB's rules for the size of an item: all
/// items, and for each local index that has an entry of an item what it projects of it. And how large they may become.
///
/// Kept apart from the collections, so that tables without a local index pay nothing.
/// Threads: a shard's writer, of its own collections.
class CollectionSizes {
 public:
  static bool has_limit(const model::TableSchema& schema) {
    return std::any_of(schema.indexes.begin(), schema.indexes.end(), [](const auto& index) { return index.local; });
  }

  /// Requires: has_limit(schema), which outlives this.
  CollectionSizes(const model::TableSchema& schema, model::AttributeNames& names, std::uint64_t limit_bytes);

  /// What an item adds to its collection, in bytes; a tombstone nothing. `inherited`: further attributes.
  std::int64_t size_of(std::string_view partition_key, const model::RowView& row, std::string_view inherited = {});

  std::uint64_t of(const Collection& collection) const;
  /// Whether the collection may grow by so many bytes. It may always shrink.
  bool admits(const Collection& collection, std::int64_t growth) const {
    return growth <= 0 || of(collection) + static_cast<std::uint64_t>(growth) <= limit_bytes_;
  }
  void add(const Collection& collection, std::int64_t growth) { sizes_[&collection] += growth; }
  /// Measures a collection as a checkpoint has brought it back.
  void restore(const Collection& collection);

 private:
  /// A local index, and the entry of the item that is measured.
  struct Index {
    const model::IndexSchema* schema = nullptr;
    bool sorts_by_table_key = false;  ///< By the table's own sort key: every item has an entry.
    model::NameId sort_key;
    std::vector<model::NameId> included;  ///< As in the schema.
    bool has_entry = false;
    std::int64_t projected = 0;  ///< Without what stands in the table's key.
  };
  static bool projects(const Index& index, const model::RawName& name);

  const model::TableSchema& schema_;
  const model::AttributeNames& names_;
  const std::uint64_t limit_bytes_;
  std::vector<Index> indexes_;
  std::unordered_map<const Collection*, std::int64_t> sizes_;
};

}  // namespace drover::store

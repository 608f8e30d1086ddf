#include "collection_sizes.h"

#include "drover/model/attribute.h"
#include "drover/model/key.h"
#include "drover/model/limits.h"
#include "index_plan.h"

namespace drover::store {
namespace {

std::int64_t key_size(const model::KeyAttribute& attribute, std::string_view encoded) {
  const std::size_t value = attribute.type == model::KeyType::kNumber
                                ? model::value_size_bytes(model::key_value(attribute.type, encoded))
                                : encoded.size();
  return static_cast<std::int64_t>(attribute.name.size() + value);
}

}  // namespace

CollectionSizes::CollectionSizes(const model::TableSchema& schema, model::AttributeNames& names,
                                 std::uint64_t limit_bytes)
    : schema_(schema), names_(names), limit_bytes_(limit_bytes) {
  for (const model::IndexSchema& index : schema.indexes) {
    if (!index.local) continue;
    Index& local = indexes_.emplace_back();
    local.schema = &index;
    local.sorts_by_table_key = index.key.sort_key->name == schema.key.sort_key->name;
    local.sort_key = names.intern(index.key.sort_key->name);
    for (const std::string& name : index.included) local.included.push_back(names.intern(name));
  }
}

bool CollectionSizes::projects(const Index& index, const model::RawName& name) {
  if (name.is(index.sort_key, index.schema->key.sort_key->name)) return true;
  for (std::size_t i = 0; i < index.included.size(); ++i) {
    if (name.is(index.included[i], index.schema->included[i])) return true;
  }
  return index.schema->projection == model::ProjectionType::kAll;
}

std::int64_t CollectionSizes::size_of(std::string_view partition_key, const model::RowView& row,
                                      std::string_view inherited) {
  if (row.tombstone()) return 0;
  for (Index& index : indexes_) {
    index.has_entry = index.sorts_by_table_key;
    index.projected = 0;
  }
  const std::int64_t keys =
      key_size(schema_.key.partition_key, partition_key) + key_size(*schema_.key.sort_key, row.sort_key());
  std::int64_t total = keys;
  for (const std::string_view attributes : {row.attributes(), inherited}) {
    for (const char* at = attributes.data(); at != attributes.data() + attributes.size();) {
      const model::RawAttribute attribute = model::take_raw_attribute(at);
      const auto size =
          static_cast<std::int64_t>(attribute.name(names_).size() + model::value_size_bytes(attribute.value, names_));
      total += size;
      for (Index& index : indexes_) {
        const model::KeyAttribute& key = *index.schema->key.sort_key;
        if (attribute.is(index.sort_key, key.name))
          index.has_entry = can_be_key(attribute.value, key.type, model::kSortKeySizeBytesMax);
        if (projects(index, attribute)) index.projected += size;
      }
    }
  }
  for (const Index& index : indexes_) total += index.has_entry ? keys + index.projected : 0;
  return total;
}

std::uint64_t CollectionSizes::of(const Collection& collection) const {
  const auto found = sizes_.find(&collection);
  return found != sizes_.end() ? static_cast<std::uint64_t>(found->second) : 0;
}

void CollectionSizes::restore(const Collection& collection) {
  std::int64_t& size = sizes_[&collection];
  Cursor cursor(collection);
  cursor.be_patient();
  cursor.seek_first();
  for (bool more = cursor.at_row(); more; more = cursor.next())
    size += size_of(collection.partition_key(), cursor.row());
}

}  // namespace drover::store

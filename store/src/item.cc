#include "drover/store/item.h"

#include "drover/model/key.h"

namespace drover::store {

ItemReader::ItemReader(const model::TableSchema& schema, const model::IndexSchema* index,
                       const model::AttributeNames& names)
    : joined_(index != nullptr && !index->local), names_(&names) {
  const auto add = [&](const model::KeyAttribute& attribute) {
    for (std::size_t i = 0; i < keys_; ++i) {
      if (key_[i].name == attribute.name) return;
    }
    key_[keys_++] = {attribute.name, attribute.type, {}};
  };
  // In the order in which they are found: the collection's key first, then the parts of the row's sort key.
  if (joined_) {
    add(index->key.partition_key);
    if (index->key.sort_key) add(*index->key.sort_key);
  }
  add(schema.key.partition_key);
  if (schema.key.sort_key) add(*schema.key.sort_key);
}

void ItemReader::load_keys(const StoredItem& item) {
  const auto load = [](KeyValue& key, std::string_view encoded) {
    key.encoded.clear();
    model::append_key_as_value(key.encoded, key.type, encoded);
  };
  load(key_[0], item.partition_key);
  if (!joined_) {
    if (keys_ > 1) load(key_[1], item.row.sort_key());
    return;
  }
  std::string_view joined = item.row.sort_key();
  for (std::size_t i = 1; i < keys_; ++i) load(key_[i], model::take_key_part(joined));
}

model::Item ItemReader::to_item(const StoredItem& item) {
  model::Item result;
  for_each(item, [&](std::string_view name, model::ValueView value) {
    result.insert_or_assign(std::string(name), value.to_value(*names_));
  });
  return result;
}

model::Item ItemReader::key_of(const StoredItem& item) {
  load_keys(item);
  model::Item key;
  for (std::size_t i = 0; i < keys_; ++i) {
    key.insert_or_assign(key_[i].name, model::ValueView(key_[i].encoded).to_value(*names_));
  }
  return key;
}

model::Bytes index_sort_key(const model::TableSchema& schema, const model::IndexSchema& index,
                            std::string_view index_sort_key, std::string_view partition_key,
                            std::string_view sort_key) {
  const auto is_index_key = [&](const model::KeyAttribute& attribute) {
    return attribute.name == index.key.partition_key.name ||
           (index.key.sort_key && attribute.name == index.key.sort_key->name);
  };
  model::Bytes joined;
  if (index.key.sort_key) model::append_key_part(joined, index_sort_key);
  if (!is_index_key(schema.key.partition_key)) model::append_key_part(joined, partition_key);
  if (schema.key.sort_key && !is_index_key(*schema.key.sort_key)) model::append_key_part(joined, sort_key);
  return joined;
}

IndexBounds index_bounds(std::string_view part, bool prefix) {
  // A part ends in 0x00 0x01 and its own zeros are 0x00 0xff, so what follows a whole part begins with 0x00 0x01 and
  // what follows a prefix with anything.
  IndexBounds bounds;
  model::append_key_part(bounds.lower, part);
  if (prefix) bounds.lower.resize(bounds.lower.size() - 2);
  bounds.upper = bounds.lower;
  if (!prefix) {
    bounds.upper.back() = '\x02';
    return bounds;
  }
  while (!bounds.upper.empty() && bounds.upper.back() == '\xff') bounds.upper.pop_back();
  if (!bounds.upper.empty()) bounds.upper.back() = static_cast<char>(bounds.upper.back() + 1);
  return bounds;
}

}  // namespace drover::store

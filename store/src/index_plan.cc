#include "index_plan.h"

#include <algorithm>
#include <cstring>

#include "drover/model/key.h"
#include "drover/model/limits.h"

namespace drover::store {
bool can_be_key(model::ValueView value, model::KeyType type, std::size_t size_bytes_max) {
  const auto fits = [&] { return !value.bytes().empty() && value.bytes().size() <= size_bytes_max; };
  switch (value.tag()) {
    case model::ValueTag::kNumber:
    case model::ValueTag::kBigNumber:
      return type == model::KeyType::kNumber;
    case model::ValueTag::kString:
      return type == model::KeyType::kString && fits();
    case model::ValueTag::kBinary:
      return type == model::KeyType::kBinary && fits();
    default:
      return false;
  }
}

IndexPlan::IndexPlan(const model::TableSchema& schema, const model::IndexSchema& index, model::AttributeNames& names)
    : schema_(&schema), index_(&index), names_(&names), partition_(part_of(index.key.partition_key)) {
  if (index.key.sort_key) sort_ = part_of(*index.key.sort_key);
  const auto stands = [&](Part::From from) { return partition_.from == from || (sort_ && sort_->from == from); };
  for (const std::string& name : index.included) included_.push_back(names.intern(name));
  joins_partition_key_ = !stands(Part::From::kTablePartitionKey);
  joins_sort_key_ = schema.key.sort_key.has_value() && !stands(Part::From::kTableSortKey);
  constexpr std::uint32_t kMaskedIds = 32;
  for (std::uint32_t id = 1; id < kMaskedIds; ++id) {
    const model::RawName name{model::NameId{id}, {}};
    if (!is(partition_, name) && !(sort_ && is(*sort_, name)) && projects(name)) kept_.add(name.id);
  }
}

IndexPlan::Part IndexPlan::part_of(const model::KeyAttribute& attribute) const {
  if (attribute.name == schema_->key.partition_key.name) return {Part::From::kTablePartitionKey, attribute, {}};
  if (schema_->key.sort_key && attribute.name == schema_->key.sort_key->name) {
    return {Part::From::kTableSortKey, attribute, {}};
  }
  return {Part::From::kAttribute, attribute, names_->intern(attribute.name)};
}

bool IndexPlan::is(const Part& part, const model::RawName& name) {
  return part.from == Part::From::kAttribute && name.is(part.id, part.attribute.name);
}

bool IndexPlan::projects(const model::RawName& name) const {
  if (index_->projection != model::ProjectionType::kInclude) return index_->projection == model::ProjectionType::kAll;
  for (std::size_t i = 0; i < included_.size(); ++i) {
    if (name.is(included_[i], index_->included[i])) return true;
  }
  return false;
}

bool IndexPlan::take_key(const Part& part, model::ValueView value, std::size_t size_bytes_max, model::Bytes& scratch,
                         std::string_view& key) {
  if (!can_be_key(value, part.attribute.type, size_bytes_max)) return false;
  if (part.attribute.type == model::KeyType::kNumber) {
    scratch.clear();
    value.number().append_ordered(scratch);
    key = scratch;
    return true;
  }
  key = value.bytes();
  return true;
}

// Views go by reference here, and their halves one by one: a view that was just put together as two words and is then
// copied as one waits until everything stored before has reached its cache lines.

/// What an item's attributes come to. The index's own key attributes stand in the entry's keys; of the rest, a run at a
/// time is what the entry keeps.
struct IndexPlan::Found {
  std::vector<std::string_view>& kept;
  std::size_t kept_size = 0;
  std::array<std::string_view, 2> key;  ///< Partition and sort key.
  std::array<bool, 2> has_key;

  void keep(const char* begin, const char* end) {
    if (begin == end) return;
    kept.emplace_back(begin, static_cast<std::size_t>(end - begin));
    kept_size += static_cast<std::size_t>(end - begin);
  }
};

/// False: an attribute can't be the key that it should be.
bool IndexPlan::scan(const std::string_view& attributes, Scratch& scratch, Found& found) const {
  const char* at = attributes.data();
  const char* const end = at + attributes.size();
  const char* run = at;
  while (at != end) {
    const char* const begin = at;
    const model::RawName name = model::take_raw_name(at);
    const char* const value = at;
    at = model::skip_value(at);
    if (kept_.surely_has(name.id)) [[likely]]
      continue;
    const bool partition = is(partition_, name);
    if (!partition && !(sort_ && is(*sort_, name))) {
      if (projects(name)) continue;
    } else {
      const model::ValueView encoded(std::string_view(value, static_cast<std::size_t>(at - value)));
      const std::size_t i = partition ? 0 : 1;
      if (!(partition
                ? take_key(partition_, encoded, model::kPartitionKeySizeBytesMax, scratch.partition_key, found.key[i])
                : take_key(*sort_, encoded, model::kSortKeySizeBytesMax, scratch.sort_key, found.key[i])))
        return false;
      found.has_key[i] = true;
    }
    found.keep(run, begin);
    run = at;
  }
  found.keep(run, end);
  return true;
}

const IndexPlan::Inherited& IndexPlan::inherited_of(const std::string_view& attributes, Scratch& scratch) const {
  std::uint64_t last = 0;
  if (attributes.size() >= sizeof last) {
    std::memcpy(&last, attributes.data() + attributes.size() - sizeof last, sizeof last);
  }
  constexpr std::uint64_t kMix = 0x9e37'79b9'7f4a'7c15;
  Inherited& known = scratch.inherited[(last + attributes.size()) * kMix >> 60];
  if (known.text == attributes) [[likely]]
    return known;
  known = {};
  Found found{scratch.kept, 0, {}, {}};
  known.refused = !scan(attributes, scratch, found);
  if (found.has_key[0]) known.partition_key = found.key[0];
  if (found.has_key[1]) known.sort_key = found.key[1];
  if (found.has_key[0]) known.partition_key_hash = model::hash_key(found.key[0]);
  for (const std::string_view& run : scratch.kept) known.kept += run;
  scratch.kept.clear();
  known.text = attributes;
  return known;
}

IndexPlan::Outcome IndexPlan::append_entry(const Source& item, bool remove, Scratch& scratch,
                                           model::RowBatch& out) const {
  scratch.kept.clear();
  Found found{scratch.kept, 0, {}, {}};
  std::optional<model::KeyHash> hash;
  if (item.own_names.surely_within(kept_)) [[likely]] {
    const Inherited& inherited = inherited_of(item.inherited, scratch);
    if (inherited.refused) return Outcome::kRefused;
    if (inherited.partition_key) {
      found.key[0] = *inherited.partition_key;
      found.has_key[0] = true;
      hash = inherited.partition_key_hash;
    }
    if (inherited.sort_key) {
      found.key[1] = *inherited.sort_key;
      found.has_key[1] = true;
    }
    found.keep(item.own.data(), item.own.data() + item.own.size());
    found.keep(inherited.kept.data(), inherited.kept.data() + inherited.kept.size());
  } else if (!scan(item.own, scratch, found) || !scan(item.inherited, scratch, found)) {
    return Outcome::kRefused;
  }
  const auto key_of = [&](const Part& part, std::size_t i) -> const std::string_view* {
    if (part.from == Part::From::kTablePartitionKey) return &item.partition_key;
    if (part.from == Part::From::kTableSortKey) return &item.sort_key;
    return found.has_key[i] ? &found.key[i] : nullptr;
  };
  const std::string_view* const entry_partition = key_of(partition_, 0);
  const std::string_view* const entry_sort = sort_ ? key_of(*sort_, 1) : nullptr;
  if (entry_partition == nullptr || (sort_ && entry_sort == nullptr)) return Outcome::kNotInIndex;

  const std::string_view* joined[3];
  std::size_t parts = 0;
  if (sort_) joined[parts++] = entry_sort;
  if (joins_partition_key_) joined[parts++] = &item.partition_key;
  if (joins_sort_key_) joined[parts++] = &item.sort_key;
  std::size_t key_room = 0;
  for (std::size_t i = 0; i < parts; ++i) key_room += model::key_part_room_bytes(joined[i]->size());

  model::RowBatch::Row row;
  row.hash = hash ? *hash : model::hash_key(*entry_partition);
  row.begin = static_cast<std::uint32_t>(out.bytes.size());
  row.partition_key_size = static_cast<std::uint32_t>(entry_partition->size());
  out.bytes.resize(out.bytes.size() + entry_partition->size() + 1 + model::kVarintSizeBytesMax + key_room +
                   found.kept_size);
  char* to = out.bytes.data() + row.begin;
  to += entry_partition->copy(to, entry_partition->size());
  *to++ = static_cast<char>(model::kRowUnversioned | (remove ? model::kRowTombstone : 0));
  // The key's size, which stands in front of it, is known behind it: mostly it takes the one byte that is left for it.
  char* const size_at = to++;
  const char* const key = to;
  for (std::size_t i = 0; i < parts; ++i) to = model::put_key_part(to, *joined[i]);
  const auto key_size = static_cast<std::size_t>(to - key);
  if (key_size >= 0x80) [[unlikely]] {
    char size[model::kVarintSizeBytesMax];
    const auto size_size = static_cast<std::size_t>(model::put_varint(size, key_size) - size);
    std::memmove(size_at + size_size, key, key_size);
    std::memcpy(size_at, size, size_size);
    to = size_at + size_size + key_size;
  } else {
    *size_at = static_cast<char>(key_size);
  }
  if (!remove) {
    for (const std::string_view& run : scratch.kept) to += run.copy(to, run.size());
  }
  row.row_size = static_cast<std::uint32_t>(to - out.bytes.data()) - row.begin - row.partition_key_size;
  out.bytes.resize(static_cast<std::size_t>(to - out.bytes.data()));
  out.rows.push_back(row);
  return Outcome::kAppended;
}

bool IndexPlan::same_place(std::string_view present, std::string_view own, std::string_view inherited) const {
  const auto same = [&](const Part& part) {
    if (part.from != Part::From::kAttribute) return true;
    const auto a = model::find_attribute(present, part.attribute.name, *names_);
    auto b = model::find_attribute(own, part.attribute.name, *names_);
    if (!b) b = model::find_attribute(inherited, part.attribute.name, *names_);
    return a && b ? a->encoded() == b->encoded() : a.has_value() == b.has_value();
  };
  return same(partition_) && (!sort_ || same(*sort_));
}

}  // namespace drover::store

#include "index_plan.h"

#include <algorithm>

#include "drover/model/key.h"
#include "drover/model/limits.h"

namespace drover::store {
namespace {

model::KeyType key_type_of(model::ValueTag tag) {
  switch (tag) {
    case model::ValueTag::kString:
      return model::KeyType::kString;
    case model::ValueTag::kBinary:
      return model::KeyType::kBinary;
    default:
      return model::KeyType::kNumber;
  }
}

bool may_be_key(model::ValueTag tag) {
  return tag == model::ValueTag::kString || tag == model::ValueTag::kBinary || tag == model::ValueTag::kNumber ||
         tag == model::ValueTag::kBigNumber;
}

}  // namespace

IndexPlan::IndexPlan(const model::TableSchema& schema, const model::IndexSchema& index, model::AttributeNames& names)
    : schema_(&schema), index_(&index), names_(&names), partition_(part_of(index.key.partition_key)) {
  if (index.key.sort_key) sort_ = part_of(*index.key.sort_key);
  const auto stands = [&](Part::From from) { return partition_.from == from || (sort_ && sort_->from == from); };
  for (const std::string& name : index.included) included_.push_back(names.intern(name));
  joins_partition_key_ = !stands(Part::From::kTablePartitionKey);
  joins_sort_key_ = schema.key.sort_key.has_value() && !stands(Part::From::kTableSortKey);
}

IndexPlan::Part IndexPlan::part_of(const model::KeyAttribute& attribute) const {
  if (attribute.name == schema_->key.partition_key.name) return {Part::From::kTablePartitionKey, attribute, {}};
  if (schema_->key.sort_key && attribute.name == schema_->key.sort_key->name) {
    return {Part::From::kTableSortKey, attribute, {}};
  }
  return {Part::From::kAttribute, attribute, names_->intern(attribute.name)};
}

bool IndexPlan::is(const Part& part, const model::RawAttribute& attribute) {
  return part.from == Part::From::kAttribute && attribute.is(part.id, part.attribute.name);
}

bool IndexPlan::projects(const model::RawAttribute& attribute) const {
  if (index_->projection != model::ProjectionType::kInclude) return index_->projection == model::ProjectionType::kAll;
  for (std::size_t i = 0; i < included_.size(); ++i) {
    if (attribute.is(included_[i], index_->included[i])) return true;
  }
  return false;
}

std::optional<std::string_view> IndexPlan::key_of(const Part& part, model::ValueView value, std::size_t size_bytes_max,
                                                  model::Bytes& scratch) {
  if (!may_be_key(value.tag()) || key_type_of(value.tag()) != part.attribute.type) return std::nullopt;
  if (part.attribute.type == model::KeyType::kNumber) {
    scratch.clear();
    value.number().append_ordered(scratch);
    return scratch;
  }
  const std::string_view bytes = value.bytes();
  if (bytes.empty() || bytes.size() > size_bytes_max) return std::nullopt;
  return bytes;
}

IndexPlan::Outcome IndexPlan::append_entry(std::string_view partition_key, std::string_view sort_key,
                                           std::string_view attributes, model::Version version, bool remove,
                                           model::RowBatch& out) const {
  const auto from_table = [&](const Part& part) -> std::optional<std::string_view> {
    if (part.from == Part::From::kTablePartitionKey) return partition_key;
    if (part.from == Part::From::kTableSortKey) return sort_key;
    return std::nullopt;
  };
  static thread_local model::Bytes partition_scratch;
  static thread_local model::Bytes sort_scratch;
  static thread_local model::Bytes joined;
  std::optional<std::string_view> entry_partition = from_table(partition_);
  std::optional<std::string_view> entry_sort = sort_ ? from_table(*sort_) : std::nullopt;
  // The index's own key attributes stand in the entry's keys: of the rest, a run at a time is what the entry keeps.
  static thread_local model::Bytes kept;
  kept.clear();
  const char* const end = attributes.data() + attributes.size();
  const char* run = attributes.data();
  for (const char* at = attributes.data(); at != end;) {
    const model::RawAttribute attribute = model::take_raw_attribute(at);
    bool keep = false;
    if (is(partition_, attribute)) {
      entry_partition = key_of(partition_, attribute.value, model::kPartitionKeySizeBytesMax, partition_scratch);
      if (!entry_partition) return Outcome::kRefused;
    } else if (sort_ && is(*sort_, attribute)) {
      entry_sort = key_of(*sort_, attribute.value, model::kSortKeySizeBytesMax, sort_scratch);
      if (!entry_sort) return Outcome::kRefused;
    } else {
      keep = projects(attribute);
    }
    if (keep) continue;
    kept.append(run, attribute.encoded.data());
    run = at;
  }
  kept.append(run, end);
  if (!entry_partition || (sort_ && !entry_sort)) return Outcome::kNotInIndex;

  joined.clear();
  if (sort_) model::append_key_part(joined, *entry_sort);
  if (joins_partition_key_) model::append_key_part(joined, partition_key);
  if (joins_sort_key_) model::append_key_part(joined, sort_key);

  model::RowBatch::Row row;
  row.hash = model::hash_key(*entry_partition);
  row.begin = static_cast<std::uint32_t>(out.bytes.size());
  row.partition_key_size = static_cast<std::uint32_t>(entry_partition->size());
  out.bytes.resize(out.bytes.size() + entry_partition->size() + model::kRowHeaderSizeBytes +
                   model::kVarintSizeBytesMax + joined.size() + kept.size());
  char* to = out.bytes.data() + row.begin;
  std::memcpy(to, entry_partition->data(), entry_partition->size());
  to = model::put_row_head(to + entry_partition->size(), version, remove ? model::kRowTombstone : 0, joined);
  if (!remove) to += kept.copy(to, kept.size());
  row.row_size = static_cast<std::uint32_t>(to - out.bytes.data()) - row.begin - row.partition_key_size;
  out.bytes.resize(static_cast<std::size_t>(to - out.bytes.data()));
  out.rows.push_back(row);
  return Outcome::kAppended;
}

bool IndexPlan::same_place(std::string_view attributes_a, std::string_view attributes_b) const {
  const auto same = [&](const Part& part) {
    if (part.from != Part::From::kAttribute) return true;
    const auto a = model::find_attribute(attributes_a, part.attribute.name, *names_);
    const auto b = model::find_attribute(attributes_b, part.attribute.name, *names_);
    return a && b ? a->encoded() == b->encoded() : a.has_value() == b.has_value();
  };
  return same(partition_) && (!sort_ || same(*sort_));
}

}  // namespace drover::store

#include "item_plan.h"

#include <algorithm>
#include <utility>

#include "drover/model/row.h"
#include "drover/model/value_view.h"

namespace drover::ingest {
namespace {

PathNode& add_path(PathNode& root, const std::vector<std::string>& names) {
  PathNode* node = &root;
  for (const std::string& name : names) {
    const auto has_name = [&name](const PathNode& child) { return child.name == name; };
    const auto child = std::find_if(node->children.begin(), node->children.end(), has_name);
    if (child != node->children.end()) {
      node = &*child;
    } else {
      node = &node->children.emplace_back();
      node->name = name;
    }
  }
  return *node;
}

std::size_t number_nodes(PathNode& node, std::size_t next) {
  node.index = next++;
  for (PathNode& child : node.children) next = number_nodes(child, next);
  return next;
}

KeyPattern compile(const KeyTemplate& text) {
  using Field = KeyPattern::Field;
  Field field = Field::kNone;
  if (!text.field.empty()) field = text.field == "recordedAt" ? Field::kTime : Field::kId;
  return {text.prefix, field, text.suffix, text.digits};
}

ItemPlan compile(const Mapping& mapping, const model::TableSchema& table, KeyPattern partition_key, KeyPattern sort_key,
                 const std::vector<AttributeMapping>& attributes, model::AttributeNames& names) {
  ItemPlan plan;
  plan.partition_key = std::move(partition_key);
  plan.sort_key = std::move(sort_key);
  plan.every_field = attributes.empty();
  for (const AttributeMapping& attribute : attributes) {
    model::Bytes& stored = add_path(plan.root, attribute.path.names).stored.emplace();
    model::append_name(stored, attribute.name, names);
    plan.names_size_bytes += attribute.name.size();
  }
  PathNode& id = add_path(plan.root, mapping.id_path.names);
  id.is_id = true;
  id.left_out = plan.every_field;
  const bool time_is_key = plan.sort_key.field == KeyPattern::Field::kTime;
  plan.needs_time = time_is_key || !plan.partition_key.digits.empty();
  if (plan.needs_time) {
    PathNode& time = add_path(plan.root, mapping.time_path.names);
    time.is_time = true;
    time.left_out = plan.every_field && time_is_key;
  }
  if (plan.every_field) {
    add_path(plan.root, {table.key.partition_key.name}).left_out = true;
    if (table.key.sort_key) add_path(plan.root, {table.key.sort_key->name}).left_out = true;
  }
  plan.nodes = number_nodes(plan.root, 0);
  return plan;
}

}  // namespace

const PathNode* PathNode::find(std::string_view child) const {
  for (const PathNode& node : children) {
    if (node.name == child) return &node;
  }
  return nullptr;
}

CompiledMapping::CompiledMapping(const Mapping& mapping, const model::TableSchema& table, model::AttributeNames& names)
    : reading(compile(mapping, table, compile(mapping.partition_key), compile(mapping.sort_key), mapping.attributes,
                      names)),
      time_unit(mapping.time_unit),
      precision(table.time_sort_key ? table.time_sort_key->precision : model::TimePrecision::kMillis),
      ahead_ms_max(mapping.ahead_ms_max),
      age_ms_max(mapping.age_ms_max),
      row_flags(mapping.on_same_key == SameKey::kMerge ? model::kRowUnites : std::uint8_t{0}),
      key(table.key) {
  if (!mapping.meta) return;
  KeyPattern partition_key = compile(mapping.partition_key);
  if (!partition_key.digits.empty()) partition_key = {partition_key.prefix, partition_key.field, "", {}};
  meta = compile(mapping, table, std::move(partition_key), {mapping.meta->sort_key, KeyPattern::Field::kNone, "", {}},
                 mapping.meta->attributes, names);
  meta_path = mapping.meta->path;
  meta_equals = mapping.meta->equals;
}

}  // namespace drover::ingest

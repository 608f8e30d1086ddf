#include "dynamodb/capacity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "dynamodb/json_writer.h"
#include "dynamodb/keys.h"

namespace drover::server {
namespace {

constexpr std::size_t kReadUnitSizeBytes = 4096;
constexpr std::size_t kWriteUnitSizeBytes = 1024;

double units(std::size_t size_bytes, std::size_t unit_size_bytes) {
  return static_cast<double>(std::max<std::size_t>(1, (size_bytes + unit_size_bytes - 1) / unit_size_bytes));
}

double write_units(const model::Item& item) {
  return units(model::item_size_bytes(item), kWriteUnitSizeBytes);
}

/// An item's entry in an index; nothing if it has none.
std::optional<model::Item> index_entry(const model::TableSchema& table, const model::IndexSchema& index,
                                       const model::Item* item) {
  if (item == nullptr || item->find(index.key.partition_key.name) == item->end()) return std::nullopt;
  if (index.key.sort_key && item->find(index.key.sort_key->name) == item->end()) return std::nullopt;
  if (index.projection == model::ProjectionType::kAll) return *item;
  model::Item entry;
  for (const auto& [name, value] : *item) {
    const bool included = std::find(index.included.begin(), index.included.end(), name) != index.included.end();
    if (included || is_key_attribute(table.key, name) || is_key_attribute(index.key, name)) entry.emplace(name, value);
  }
  return entry;
}

bool same_place(const model::IndexSchema& index, const model::Item& a, const model::Item& b) {
  const auto same = [&](const std::string& name) { return a.find(name)->second == b.find(name)->second; };
  return same(index.key.partition_key.name) && (!index.key.sort_key || same(index.key.sort_key->name));
}

/// A changed entry is written once, a moved one deleted and written, an equal one not touched.
double index_units(const model::IndexSchema& index, const std::optional<model::Item>& before,
                   const std::optional<model::Item>& after) {
  if (!before && !after) return 0;
  if (!before) return write_units(*after);
  if (!after) return write_units(*before);
  if (*before == *after) return 0;
  if (same_place(index, *before, *after)) return std::max(write_units(*before), write_units(*after));
  return write_units(*before) + write_units(*after);
}

void append_units(std::string& out, double units) {
  std::array<char, 32> text;
  out += "\"CapacityUnits\":";
  out.append(text.data(),
             std::to_chars(text.data(), text.data() + text.size(), units, std::chars_format::fixed, 1).ptr);
}

void append_indexes(std::string& out, const ConsumedCapacity& capacity, bool local, std::string_view member) {
  bool any = false;
  for (const ConsumedCapacity::Index& index : capacity.indexes) {
    if (index.local != local) continue;
    out += any ? "," : std::string(",\"") + std::string(member) + "\":{";
    any = true;
    append_json_string(out, index.name);
    out += ":{";
    append_units(out, index.units);
    out += '}';
  }
  if (any) out += '}';
}

}  // namespace

double ConsumedCapacity::total() const {
  double sum = table_units;
  for (const Index& index : indexes) sum += index.units;
  return sum;
}

double read_units(std::size_t size_bytes, bool consistent) {
  return units(size_bytes, kReadUnitSizeBytes) * (consistent ? 1 : 0.5);
}

ConsumedCapacity write_capacity(const model::TableSchema& table, const model::Item* before, const model::Item* after) {
  ConsumedCapacity capacity;
  capacity.table = table.name;
  capacity.table_units = 1;
  for (const model::Item* item : {before, after}) {
    if (item != nullptr) capacity.table_units = std::max(capacity.table_units, write_units(*item));
  }
  for (const model::IndexSchema& index : table.indexes) {
    const double used = index_units(index, index_entry(table, index, before), index_entry(table, index, after));
    if (used > 0) capacity.indexes.push_back({index.name, index.local, used});
  }
  return capacity;
}

void add(ConsumedCapacity& sum, const ConsumedCapacity& part) {
  sum.table_units += part.table_units;
  for (const ConsumedCapacity::Index& index : part.indexes) {
    const auto found = std::find_if(sum.indexes.begin(), sum.indexes.end(),
                                    [&](const ConsumedCapacity::Index& each) { return each.name == index.name; });
    if (found == sum.indexes.end()) {
      sum.indexes.push_back(index);
    } else {
      found->units += index.units;
    }
  }
}

void append_capacity(std::string& out, const ConsumedCapacity& capacity, CapacityReport report) {
  out += "{\"TableName\":";
  append_json_string(out, capacity.table);
  out += ',';
  append_units(out, capacity.total());
  if (report == CapacityReport::kIndexes) {
    out += ",\"Table\":{";
    append_units(out, capacity.table_units);
    out += '}';
    append_indexes(out, capacity, true, "LocalSecondaryIndexes");
    append_indexes(out, capacity, false, "GlobalSecondaryIndexes");
  }
  out += '}';
}

void append_capacity_member(std::string& out, const ConsumedCapacity& capacity, CapacityReport report) {
  if (report == CapacityReport::kNone) return;
  out += ",\"ConsumedCapacity\":";
  append_capacity(out, capacity, report);
}

}  // namespace drover::server

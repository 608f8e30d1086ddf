#include "drover/ingest/mapping.h"

#include <algorithm>
#include <set>
#include <utility>

namespace drover::ingest {
namespace {

using model::invalid;
using model::KeyType;
using model::Status;

constexpr std::string_view kIdField = "vehicleId";
constexpr std::string_view kTimeField = "recordedAt";
constexpr std::string_view kBucketOpening = "{recordedAt:";

/// Whether one of two paths leads through the end of the other (or both are the same).
bool overlap(const JsonPath& a, const JsonPath& b) {
  const std::size_t shared = std::min(a.names.size(), b.names.size());
  return std::equal(a.names.begin(), a.names.begin() + static_cast<std::ptrdiff_t>(shared), b.names.begin());
}

Status validate_attributes(const std::vector<AttributeMapping>& attributes, const std::string& setting,
                           const model::TableSchema& table) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const AttributeMapping& attribute = attributes[i];
    const std::string where = setting + " \"" + attribute.name + "\": ";
    if (attribute.name.empty()) return invalid(setting + ": an attribute's name is empty; give it one");
    if (attribute.name.size() > model::kAttributeNameSizeBytesMax) {
      return invalid(where + "an attribute's name has at most 65535 bytes");
    }
    if (attribute.path.names.empty()) return invalid(where + "its path is empty; name the field it is read from");
    if (!names.insert(attribute.name).second) return invalid(where + "this name is given twice; rename one of the two");
    const model::KeySchema& key = table.key;
    if (attribute.name == key.partition_key.name || (key.sort_key && attribute.name == key.sort_key->name)) {
      return invalid(where + "this is a key of table \"" + table.name +
                     "\", which the key templates make; leave it out or rename it");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (overlap(attributes[j].path, attribute.path)) {
        return invalid(where + "its path " + attribute.path.text() + " and " + attributes[j].path.text() + " of \"" +
                       attributes[j].name + "\" overlap; keep one of the two");
      }
    }
  }
  return {};
}

Status validate_sort_key(const Mapping& mapping, const model::TableSchema& table) {
  const KeyTemplate& sort_key = mapping.sort_key;
  if (!sort_key.digits.empty()) {
    return invalid("sort_key: a bucket of time belongs into partition_key; use TS#{recordedAt}");
  }
  if (!table.key.sort_key) {
    if (!sort_key.prefix.empty() || !sort_key.field.empty()) {
      return invalid("sort_key: table \"" + table.name +
                     "\" has no sort key; remove this setting or give the table one");
    }
    return {};
  }
  if (table.key.sort_key->type != KeyType::kString) {
    return invalid("sort_key: makes text, but sort key \"" + table.key.sort_key->name + "\" of table \"" + table.name +
                   "\" is not of type S; make it S");
  }
  if (sort_key.prefix.empty() && sort_key.field.empty()) {
    return invalid("sort_key: table \"" + table.name + "\" has a sort key; give a template such as TS#{recordedAt}");
  }
  if (sort_key.field != kTimeField) return {};
  if (mapping.time_path.names.empty()) {
    return invalid("time: sort_key uses {recordedAt}; name the field that holds the time");
  }
  if (!table.time_sort_key) {
    return invalid("sort_key: uses {recordedAt}, but table \"" + table.name +
                   "\" declares no time sort key; declare one with prefix \"" + sort_key.prefix + "\"");
  }
  if (table.time_sort_key->prefix != sort_key.prefix) {
    return invalid("sort_key: its text before {recordedAt} is \"" + sort_key.prefix +
                   "\", but the time sort key of table \"" + table.name + "\" has prefix \"" +
                   table.time_sort_key->prefix + "\"; make them the same");
  }
  if (!sort_key.suffix.empty()) {
    return invalid("sort_key: text behind {recordedAt} breaks the order of time; remove \"" + sort_key.suffix + "\"");
  }
  return {};
}

Status validate_meta(const Mapping& mapping, const model::TableSchema& table) {
  const MetaMapping& meta = *mapping.meta;
  if (!table.key.sort_key) {
    return invalid("meta: table \"" + table.name + "\" has no sort key, so META would overwrite readings; give it one");
  }
  if (meta.path.names.empty()) return invalid("meta.path: is empty; name the field that tells META records");
  if (meta.sort_key.empty()) return invalid("meta.sort_key: is empty; META is usual");
  if (meta.sort_key.size() > model::kSortKeySizeBytesMax) return invalid("meta.sort_key: has more than 1024 bytes");
  return validate_attributes(meta.attributes, "meta.attributes", table);
}

Status bucket_out_of_place() {
  return invalid("a bucket of time stands behind {vehicleId}, such as VEH#{vehicleId}#{recordedAt:%Y-%m}");
}

/// Reads what stands behind a template's field: text, and a bucket of time in it.
model::Result<KeyTemplate> parse_suffix(std::string_view text, KeyTemplate& parsed) {
  const std::size_t open = text.find(kBucketOpening);
  const std::size_t close = text.find('}', open);
  const bool bucket = open != std::string_view::npos && close != std::string_view::npos;
  parsed.suffix = bucket ? text.substr(0, open) : text;
  if (bucket) {
    if (parsed.field != kIdField) return bucket_out_of_place();
    const std::size_t format = open + kBucketOpening.size();
    auto pattern = model::TimePattern::parse(text.substr(format, close - format));
    if (!pattern.ok()) return pattern.status();
    parsed.digits = std::move(pattern->digits);
    for (model::TimeDigits& two : parsed.digits) two.to = static_cast<std::uint16_t>(two.to + parsed.suffix.size());
    parsed.suffix += pattern->text;
    parsed.suffix += text.substr(close + 1);
  }
  if (parsed.suffix.find_first_of("{}") == std::string::npos) return parsed;
  return invalid("a key template has at most one field, and behind {vehicleId} one bucket such as {recordedAt:%Y-%m}");
}

}  // namespace

model::Result<JsonPath> JsonPath::parse(std::string_view text) {
  JsonPath path;
  while (true) {
    const std::size_t dot = text.find('.');
    const std::string_view name = text.substr(0, dot);
    if (name.empty()) return invalid("a path is names joined by single dots, such as location.lat");
    path.names.emplace_back(name);
    if (dot == std::string_view::npos) return path;
    text.remove_prefix(dot + 1);
  }
}

std::string JsonPath::text() const {
  std::string joined;
  for (const std::string& name : names) {
    if (!joined.empty()) joined += '.';
    joined += name;
  }
  return joined;
}

model::Result<KeyTemplate> KeyTemplate::parse(std::string_view text) {
  KeyTemplate parsed;
  const std::size_t open = text.find_first_of("{}");
  parsed.prefix = text.substr(0, open);
  if (open == std::string_view::npos) return parsed;
  const std::size_t close = text.find('}', open);
  if (text[open] == '}' || close == std::string_view::npos) {
    return invalid("a field of a key template stands in braces, such as VEH#{vehicleId}");
  }
  parsed.field = text.substr(open + 1, close - open - 1);
  if (parsed.field.starts_with("recordedAt:")) return bucket_out_of_place();
  if (parsed.field != kIdField && parsed.field != kTimeField) {
    return invalid("unknown field {" + parsed.field +
                   "}: {vehicleId} is the id of the mapping and {recordedAt} its time, whatever their paths are");
  }
  return parse_suffix(text.substr(close + 1), parsed);
}

Status validate(const Mapping& mapping, const model::TableSchema& table) {
  if (mapping.topic.empty()) return invalid("topic: is empty; name the Kafka topic to read");
  if (mapping.table != table.name) return invalid("table: \"" + mapping.table + "\" is not \"" + table.name + "\"");
  if (mapping.id_path.names.empty()) return invalid("id: is empty; name the field that holds the vehicle's id");
  if (table.key.partition_key.type != KeyType::kString) {
    return invalid("partition_key: makes text, but partition key \"" + table.key.partition_key.name + "\" of table \"" +
                   table.name + "\" is not of type S; make it S");
  }
  if (mapping.partition_key.field != kIdField) {
    return invalid(
        "partition_key: has no {vehicleId}, so all vehicles would share one collection; use VEH#{vehicleId}");
  }
  if (!mapping.partition_key.digits.empty() && mapping.time_path.names.empty()) {
    return invalid("time: partition_key has a bucket of {recordedAt}; name the field that holds the time");
  }
  if (Status status = validate_sort_key(mapping, table); !status.ok()) return status;
  if (Status status = validate_attributes(mapping.attributes, "attributes", table); !status.ok()) return status;
  if (mapping.meta) return validate_meta(mapping, table);
  return {};
}

}  // namespace drover::ingest

#include "dynamodb/attribute_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "drover/model/limits.h"
#include "dynamodb/base64.h"
#include "dynamodb/errors.h"
#include "dynamodb/params.h"

namespace drover::server {
namespace {

using model::AttributeType;
using model::AttributeValue;

ApiError too_deep() {
  return validation_error(
      "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported "
      "limit");
}

AttributeValue read_value(const json::value& json, std::size_t depth);

model::Item read_map(const json::object& object, std::size_t depth) {
  model::Item map;
  for (const auto& [key, value] : object) {
    check_attribute_name(key);
    map.emplace(key, read_value(value, depth));
  }
  return map;
}

bool read_bool(const json::value& value) {
  if (value.is_bool()) return value.get_bool();
  if (value.is_array()) throw serialization_error("Unrecognized collection type class java.lang.Boolean");
  if (value.is_object()) throw serialization_error("Start of structure or map found where not expected");
  if (value.is_string()) throw serialization_error("Unexpected token received from parser");
  throw serialization_error("NUMBER_VALUE cannot be converted to Boolean");
}

model::Bytes read_binary(const json::value& value) {
  if (value.is_array()) throw serialization_error("Unrecognized collection type class java.nio.ByteBuffer");
  if (value.is_object()) throw serialization_error("Start of structure or map found where not expected");
  if (!value.is_string()) throw serialization_error("only base-64-encoded strings are convertible to bytes");
  model::Result<model::Bytes> bytes = decode_base64(value.get_string());
  if (!bytes.ok()) throw serialization_error(bytes.status().message());
  return std::move(*bytes);
}

const json::array& to_array(const json::value& value) {
  if (value.is_object()) throw serialization_error("Start of structure or map found where not expected");
  if (!value.is_array()) throw serialization_error("Unexpected field type");
  return value.get_array();
}

std::string joined(const std::vector<std::string>& elements) {
  std::string out = "[";
  for (const std::string& element : elements) out += (out.size() > 1 ? ", " : "") + element;
  return out + "]";
}

/// Sorts a set; whether an element stood there twice.
template <typename T>
bool sort_set(std::vector<T>& set) {
  std::sort(set.begin(), set.end());
  return std::adjacent_find(set.begin(), set.end()) != set.end();
}

AttributeValue read_string_set(const json::value& json) {
  AttributeValue value;
  value.type = AttributeType::kStringSet;
  for (const json::value& element : to_array(json)) value.bytes_set.emplace_back(to_string(element));
  if (value.bytes_set.empty()) throw invalid_parameter("An string set  may not be empty");
  const std::string given = joined(value.bytes_set);
  if (sort_set(value.bytes_set)) throw invalid_parameter("Input collection " + given + " contains duplicates.");
  return value;
}

AttributeValue read_binary_set(const json::value& json) {
  AttributeValue value;
  value.type = AttributeType::kBinarySet;
  std::vector<std::string> given;
  for (const json::value& element : to_array(json)) {
    value.bytes_set.push_back(read_binary(element));
    given.emplace_back(element.get_string());
  }
  if (value.bytes_set.empty()) throw invalid_parameter("Binary sets should not be empty");
  if (sort_set(value.bytes_set)) {
    throw invalid_parameter("Input collection " + joined(given) + "of type BS contains duplicates.");
  }
  return value;
}

AttributeValue read_number_set(const json::value& json) {
  AttributeValue value;
  value.type = AttributeType::kNumberSet;
  for (const json::value& element : to_array(json)) {
    value.number_set.push_back(value_of(model::Decimal::parse(to_string(element))));
  }
  if (value.number_set.empty()) throw invalid_parameter("An number set  may not be empty");
  if (sort_set(value.number_set)) throw validation_error("Input collection contains duplicates");
  return value;
}

AttributeValue read_list(const json::value& json, std::size_t depth) {
  AttributeValue value;
  value.type = AttributeType::kList;
  const json::array& array = to_array(json);
  value.list.reserve(array.size());
  for (const json::value& element : array) value.list.push_back(read_value(element, depth));
  return value;
}

AttributeValue read_map_value(const json::value& json, std::size_t depth) {
  if (json.is_array()) {
    throw serialization_error(
        "Unrecognized collection type java.util.Map<java.lang.String, "
        "com.amazonaws.dynamodb.v20120810.AttributeValue>");
  }
  if (!json.is_object()) throw serialization_error("Unexpected field type");
  AttributeValue value;
  value.type = AttributeType::kMap;
  value.map = read_map(json.get_object(), depth);
  return value;
}

AttributeValue read_null(const json::value& json) {
  if (!read_bool(json)) throw invalid_parameter("Null attribute value types must have the value of true");
  return AttributeValue::null();
}

/// `type` is the member's name; nothing if DynamoDB knows no such type.
std::optional<AttributeValue> read_typed(std::string_view type, const json::value& json, std::size_t depth) {
  if (type == "S") return AttributeValue::string(std::string(to_string(json)));
  if (type == "N") return AttributeValue::of_number(value_of(model::Decimal::parse(to_string(json))));
  if (type == "B") return AttributeValue::binary(read_binary(json));
  if (type == "BOOL") return AttributeValue::of_bool(read_bool(json));
  if (type == "NULL") return read_null(json);
  if (type == "SS") return read_string_set(json);
  if (type == "NS") return read_number_set(json);
  if (type == "BS") return read_binary_set(json);
  if (type == "L") return read_list(json, depth + 1);
  if (type == "M") return read_map_value(json, depth + 1);
  return std::nullopt;
}

/// `depth` is the number of lists and maps around the value.
AttributeValue read_value(const json::value& json, std::size_t depth) {
  if (depth > model::kItemDepthMax) throw too_deep();
  if (json.is_null()) {
    throw validation_error("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes");
  }
  std::optional<AttributeValue> found;
  for (const auto& [type, member] : to_object(json, "AttributeValue")) {
    if (member.is_null()) continue;
    std::optional<AttributeValue> value = read_typed(type, member, depth);
    if (!value) continue;
    if (found) {
      throw validation_error(
          "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported "
          "datatypes");
    }
    found = std::move(value);
  }
  if (!found) {
    throw validation_error("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes");
  }
  return std::move(*found);
}

bool deeper_than(const AttributeValue& value, std::size_t levels) {
  const bool document = value.type == AttributeType::kList || value.type == AttributeType::kMap;
  if (!document) return false;
  if (levels == 0) return true;
  return std::any_of(value.list.begin(), value.list.end(),
                     [&](const AttributeValue& element) { return deeper_than(element, levels - 1); }) ||
         std::any_of(value.map.begin(), value.map.end(),
                     [&](const auto& entry) { return deeper_than(entry.second, levels - 1); });
}

}  // namespace

AttributeValue read_value(const json::value& value) {
  return read_value(value, 0);
}

model::Item read_item(const json::object& object) {
  if (object.if_contains("") != nullptr) throw invalid_parameter("Attribute name must not be empty");
  return read_map(object, 0);
}

void check_attribute_name(std::string_view name) {
  if (name.size() > model::kAttributeNameSizeBytesMax) {
    throw invalid_parameter("Attribute name is too large, must be less than 65536 bytes");
  }
}

void check_depth(const model::Item& item) {
  for (const auto& [name, value] : item) {
    if (deeper_than(value, model::kItemDepthMax)) throw too_deep();
  }
}

}  // namespace drover::server

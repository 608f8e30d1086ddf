#include "dynamodb/params.h"

#include <algorithm>
#include <cmath>

#include "dynamodb/errors.h"

namespace drover::server {
namespace {

// DynamoDB reports at most so many problems at once.
constexpr std::size_t kProblemsMax = 10;

/// "TRUE_VALUE", "NUMBER_VALUE", …: how the parser of DynamoDB calls what it found.
std::string_view token_name(const json::value& value) {
  if (value.is_bool()) return value.get_bool() ? "TRUE_VALUE" : "FALSE_VALUE";
  if (value.is_string()) return "STRING_VALUE";
  if (value.is_double()) {
    return value.get_double() == std::floor(value.get_double()) ? "NUMBER_VALUE" : "DECIMAL_VALUE";
  }
  return "NUMBER_VALUE";
}

[[noreturn]] void throw_not_convertible(const json::value& value, std::string_view type) {
  if (value.is_array()) throw serialization_error("Unrecognized collection type class java.lang." + std::string(type));
  if (value.is_object()) throw serialization_error("Start of structure or map found where not expected");
  throw serialization_error(std::string(token_name(value)) + " cannot be converted to " + std::string(type));
}

}  // namespace

const json::value* find_member(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string_view to_string(const json::value& value) {
  if (!value.is_string()) throw_not_convertible(value, "String");
  return value.get_string();
}

const json::object& to_object(const json::value& value, std::string_view type) {
  if (value.is_object()) return value.get_object();
  if (value.is_array()) {
    throw serialization_error("Unrecognized collection type class com.amazonaws.dynamodb.v20120810." +
                              std::string(type));
  }
  throw serialization_error("Unexpected value type in payload");
}

std::optional<std::string_view> find_string(const json::object& object, std::string_view name) {
  const json::value* value = find_member(object, name);
  if (value == nullptr) return std::nullopt;
  return to_string(*value);
}

std::optional<std::int64_t> find_integer(const json::object& object, std::string_view name) {
  const json::value* value = find_member(object, name);
  if (value == nullptr) return std::nullopt;
  if (value->is_int64()) return value->get_int64();
  if (value->is_uint64()) return INT64_MAX;
  if (value->is_double() && std::abs(value->get_double()) < 9e18) {
    return static_cast<std::int64_t>(std::floor(value->get_double()));
  }
  throw_not_convertible(*value, "Integer");
}

std::optional<bool> find_bool(const json::object& object, std::string_view name) {
  const json::value* value = find_member(object, name);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  if (value->is_string()) throw serialization_error("Unexpected token received from parser");
  throw_not_convertible(*value, "Boolean");
}

const json::object* find_object(const json::object& object, std::string_view name, std::string_view type) {
  const json::value* value = find_member(object, name);
  if (value == nullptr) return nullptr;
  if (value->is_object()) return &value->get_object();
  if (value->is_array()) {
    throw serialization_error(
        "Unrecognized collection type java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810." +
        std::string(type) + ">");
  }
  throw serialization_error("Unexpected field type");
}

const json::array* find_array(const json::object& object, std::string_view name) {
  const json::value* value = find_member(object, name);
  if (value == nullptr) return nullptr;
  if (value->is_array()) return &value->get_array();
  if (value->is_object()) throw serialization_error("Start of structure or map found where not expected");
  throw serialization_error("Unexpected field type");
}

void Constraints::fail(std::string_view member, std::string_view value, std::string_view constraint) {
  if (++count_ > kProblemsMax) return;
  if (count_ > 1) problems_ += "; ";
  problems_.append("Value ").append(value).append(" at '").append(member);
  problems_.append("' failed to satisfy constraint: ").append(constraint);
}

void Constraints::not_null(std::string_view member, bool present) {
  if (!present) fail(member, "null", "Member must not be null");
}

void Constraints::length(std::string_view member, std::string_view text, std::size_t min, std::size_t max) {
  const std::string quoted = "'" + std::string(text) + "'";
  if (text.size() < min) {
    fail(member, quoted, "Member must have length greater than or equal to " + std::to_string(min));
  }
  if (text.size() > max) fail(member, quoted, "Member must have length less than or equal to " + std::to_string(max));
}

void Constraints::name(std::string_view member, std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  if (text.empty() || !std::all_of(text.begin(), text.end(), allowed)) {
    fail(member, "'" + std::string(text) + "'", "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+");
  }
  length(member, text, 3, 255);
}

void Constraints::at_least(std::string_view member, std::optional<std::int64_t> value, std::int64_t min) {
  if (!value || *value >= min) return;
  fail(member, "'" + std::to_string(*value) + "'",
       "Member must have value greater than or equal to " + std::to_string(min));
}

void Constraints::at_most(std::string_view member, std::optional<std::int64_t> value, std::int64_t max) {
  if (!value || *value <= max) return;
  fail(member, "'" + std::to_string(*value) + "'",
       "Member must have value less than or equal to " + std::to_string(max));
}

void Constraints::one_of(std::string_view member, std::optional<std::string_view> value,
                         std::initializer_list<std::string_view> values) {
  if (!value || std::find(values.begin(), values.end(), *value) != values.end()) return;
  std::string constraint = "Member must satisfy enum value set: [";
  for (const std::string_view& each : values) {
    if (&each != values.begin()) constraint += ", ";
    constraint += each;
  }
  fail(member, "'" + std::string(*value) + "'", constraint + "]");
}

void Constraints::check() const {
  if (count_ == 0) return;
  const std::size_t count = std::min(count_, kProblemsMax);
  throw validation_error(std::to_string(count) + " validation error" + (count > 1 ? "s" : "") +
                         " detected: " + problems_);
}

std::string_view table_name(const json::object& request, Constraints& constraints) {
  const std::optional<std::string_view> name = find_string(request, "TableName");
  constraints.not_null("tableName", name.has_value());
  if (name) constraints.name("tableName", *name);
  return name.value_or("");
}

CapacityReport capacity_report(const json::object& request, Constraints& constraints) {
  const std::optional<std::string_view> report = find_string(request, "ReturnConsumedCapacity");
  constraints.one_of("returnConsumedCapacity", report, {"INDEXES", "TOTAL", "NONE"});
  if (report == "INDEXES") return CapacityReport::kIndexes;
  return report == "TOTAL" ? CapacityReport::kTotal : CapacityReport::kNone;
}

bool wants_collection_metrics(const json::object& request, Constraints& constraints) {
  const std::optional<std::string_view> given = find_string(request, "ReturnItemCollectionMetrics");
  constraints.one_of("returnItemCollectionMetrics", given, {"SIZE", "NONE"});
  return given == "SIZE";
}

}  // namespace drover::server

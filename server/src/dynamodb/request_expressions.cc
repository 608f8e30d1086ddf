#include "dynamodb/request_expressions.h"

#include <algorithm>
#include <string>
#include <utility>

#include "drover/model/limits.h"
#include "dynamodb/attribute_reader.h"
#include "dynamodb/errors.h"
#include "dynamodb/legacy_parameters.h"
#include "dynamodb/params.h"
#include "expression/parser.h"

namespace drover::server {
namespace {

std::string joined(const std::vector<std::string_view>& names, std::string_view separator) {
  std::string out;
  for (const std::string_view name : names) {
    if (!out.empty()) out += separator;
    out += name;
  }
  return out;
}

std::vector<std::string_view> present(const json::object& request, const std::vector<std::string_view>& names) {
  std::vector<std::string_view> out;
  std::copy_if(names.begin(), names.end(), std::back_inserter(out),
               [&](std::string_view name) { return find_member(request, name) != nullptr; });
  return out;
}

/// Expressions and legacy parameters exclude each other; KeyConditions alone goes with a FilterExpression.
void check_kinds(const std::vector<std::string_view>& expressions, std::vector<std::string_view> legacy) {
  if (expressions.empty()) return;
  if (std::find(expressions.begin(), expressions.end(), "KeyConditionExpression") == expressions.end()) {
    legacy.erase(std::remove(legacy.begin(), legacy.end(), "KeyConditions"), legacy.end());
  }
  if (legacy.empty()) return;
  throw validation_error(
      "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: {" +
      joined(legacy, ", ") + "} Expression parameters: {" + joined(expressions, ", ") + "}");
}

/// Names and values need an expression that could use them.
void check_needed(const json::object& request, const ExpressionParameters& parameters,
                  const std::vector<std::string_view>& expressions) {
  if (expressions.empty() && find_member(request, "ExpressionAttributeNames") != nullptr) {
    throw validation_error("ExpressionAttributeNames can only be specified when using expressions");
  }
  std::vector<std::string_view> with_values = parameters.expressions;
  with_values.erase(std::remove(with_values.begin(), with_values.end(), "ProjectionExpression"), with_values.end());
  if (with_values.empty() || find_member(request, "ExpressionAttributeValues") == nullptr) return;
  if (!present(request, with_values).empty()) return;
  throw validation_error("ExpressionAttributeValues can only be specified when using expressions: " +
                         joined(with_values, " and ") + (with_values.size() > 1 ? " are null" : " is null"));
}

void check_placeholder(std::string_view parameter, std::string_view key, char first) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (key.size() > 1 && key[0] == first && std::all_of(key.begin() + 1, key.end(), is_word)) return;
  throw validation_error(std::string(parameter) + " contains invalid key: Syntax error; key: \"" + std::string(key) +
                         "\"");
}

void read_names(const json::object& request, expression::Placeholders& placeholders) {
  const json::object* names = find_object(request, "ExpressionAttributeNames", "AttributeNameMap");
  if (names == nullptr) return;
  if (names->empty()) throw validation_error("ExpressionAttributeNames must not be empty");
  for (const auto& [key, value] : *names) {
    check_placeholder("ExpressionAttributeNames", key, '#');
    const std::string_view name = value.is_null() ? std::string_view() : to_string(value);
    if (name.empty() || name.size() > model::kAttributeNameSizeBytesMax) {
      throw validation_error("ExpressionAttributeNames contains invalid value: " +
                             std::string(name.empty() ? "Attribute name must not be empty"
                                                      : "Attribute name is too large, must be less than 65536 bytes") +
                             " for key " + std::string(key));
    }
    placeholders.names.insert_or_assign(std::string(key), expression::Placeholders::Name{std::string(name)});
  }
}

void read_values(const json::object& request, expression::Placeholders& placeholders) {
  const json::object* values = find_object(request, "ExpressionAttributeValues", "AttributeValue");
  if (values == nullptr) return;
  if (values->empty()) throw validation_error("ExpressionAttributeValues must not be empty");
  for (const auto& [key, value] : *values) {
    check_placeholder("ExpressionAttributeValues", key, ':');
    try {
      placeholders.values.insert_or_assign(std::string(key), expression::Placeholders::Value{read_value(value)});
    } catch (ApiError& error) {
      if (error.type == kValidationType) {
        error.message =
            "ExpressionAttributeValues contains invalid value: " + error.message + " for key " + std::string(key);
      }
      throw;
    }
  }
}

void parse_expression(std::string_view parameter, std::string_view text, RequestExpressions& out) {
  if (parameter == "ProjectionExpression") {
    out.projection = value_of(expression::parse_projection(text, out.placeholders));
  } else if (parameter == "UpdateExpression") {
    out.update = value_of(expression::parse_update(text, out.placeholders));
  } else {
    expression::Condition condition = value_of(expression::parse_condition(text, parameter, out.placeholders));
    if (parameter == "KeyConditionExpression") {
      out.key_conditions = value_of(expression::key_conditions(condition));
    } else {
      (parameter == "FilterExpression" ? out.filter : out.condition) = std::move(condition);
    }
  }
}

}  // namespace

RequestExpressions read_expressions(const json::object& request, const ExpressionParameters& parameters) {
  const std::vector<std::string_view> expressions = present(request, parameters.expressions);
  const std::vector<std::string_view> legacy = present(request, parameters.legacy);
  check_kinds(expressions, legacy);
  check_needed(request, parameters, expressions);

  RequestExpressions out;
  read_names(request, out.placeholders);
  read_values(request, out.placeholders);
  for (const std::string_view parameter : expressions) {
    parse_expression(parameter, *find_string(request, parameter), out);
  }
  check(out.placeholders.all_used());
  read_legacy(request, legacy, out);
  return out;
}

}  // namespace drover::server

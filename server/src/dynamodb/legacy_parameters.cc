#include "dynamodb/legacy_parameters.h"

#include <algorithm>
#include <string>
#include <utility>

#include "dynamodb/attribute_reader.h"
#include "dynamodb/errors.h"
#include "dynamodb/params.h"
#include "expression/evaluate.h"

namespace drover::server {
namespace {

using expression::Comparator;
using expression::Condition;
using expression::KeyCondition;
using expression::Operand;
using expression::Path;
using expression::UpdateAction;
using model::AttributeType;
using model::AttributeValue;

/// How many values a ComparisonOperator takes, which types they may have, and what it means.
struct LegacyOperator {
  std::string_view name;
  std::size_t values_min;
  std::size_t values_max;
  enum class Types { kAny, kScalar, kOrdered, kBytes } types;
};
constexpr LegacyOperator kOperators[] = {
    {"EQ", 1, 1, LegacyOperator::Types::kAny},
    {"NE", 1, 1, LegacyOperator::Types::kAny},
    {"LE", 1, 1, LegacyOperator::Types::kOrdered},
    {"LT", 1, 1, LegacyOperator::Types::kOrdered},
    {"GE", 1, 1, LegacyOperator::Types::kOrdered},
    {"GT", 1, 1, LegacyOperator::Types::kOrdered},
    {"NOT_NULL", 0, 0, LegacyOperator::Types::kAny},
    {"NULL", 0, 0, LegacyOperator::Types::kAny},
    {"CONTAINS", 1, 1, LegacyOperator::Types::kScalar},
    {"NOT_CONTAINS", 1, 1, LegacyOperator::Types::kScalar},
    {"BEGINS_WITH", 1, 1, LegacyOperator::Types::kBytes},
    {"IN", 1, SIZE_MAX, LegacyOperator::Types::kScalar},
    {"BETWEEN", 2, 2, LegacyOperator::Types::kOrdered},
};

bool is_document_or_set(AttributeType type) {
  return type == AttributeType::kList || type == AttributeType::kMap || type == AttributeType::kStringSet ||
         type == AttributeType::kNumberSet || type == AttributeType::kBinarySet;
}

bool takes(LegacyOperator::Types types, AttributeType type) {
  switch (types) {
    case LegacyOperator::Types::kAny:
      return true;
    case LegacyOperator::Types::kScalar:
      return !is_document_or_set(type);
    case LegacyOperator::Types::kOrdered:
      return expression::is_ordered(type);
    case LegacyOperator::Types::kBytes:
      return type == AttributeType::kString || type == AttributeType::kBinary;
  }
  return false;
}

const LegacyOperator& find_operator(std::string_view name, const std::string& member) {
  const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                   [&](const LegacyOperator& each) { return each.name == name; });
  if (found != std::end(kOperators)) return *found;
  Constraints constraints;
  constraints.one_of(member, name,
                     {"IN", "NULL", "BETWEEN", "LT", "NOT_CONTAINS", "EQ", "GT", "NOT_NULL", "NE", "LE", "BEGINS_WITH",
                      "GE", "CONTAINS"});
  constraints.check();
  throw internal_error();
}

void check_values(const LegacyOperator& op, const std::vector<const AttributeValue*>& values) {
  if (values.size() < op.values_min || values.size() > op.values_max) {
    throw invalid_parameter("Invalid number of argument(s) for the " + std::string(op.name) + " ComparisonOperator");
  }
  for (const AttributeValue* value : values) {
    if (value->type != values[0]->type) {
      throw invalid_parameter("AttributeValues inside AttributeValueList must be of same type");
    }
    if (!takes(op.types, value->type)) {
      throw invalid_parameter("ComparisonOperator " + std::string(op.name) + " is not valid for " +
                              std::string(model::wire_name(value->type)) + " AttributeValue type");
    }
  }
  if (op.name == "BETWEEN" && expression::compare_ordered(*values[0], *values[1]) > 0) {
    throw validation_error(
        "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound");
  }
}

class LegacyReader {
 public:
  LegacyReader(const json::object& request, RequestExpressions& out) : request_(request), out_(out) {}

  void attributes_to_get() {
    const json::array& names = *find_array(request_, "AttributesToGet");
    Constraints constraints;
    if (names.empty()) {
      constraints.fail("attributesToGet", "'[]'", "Member must have length greater than or equal to 1");
    }
    constraints.check();
    std::vector<Path> paths;
    for (const json::value& name : names) paths.push_back(top_level(to_string(name)));
    std::vector<Path> sorted = paths;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) throw invalid_parameter("Duplicate value in attribute name: " + twice->head());
    out_.projection = std::move(paths);
  }

  void filter(std::string_view parameter) {
    std::vector<Condition> conditions;
    for (const auto& [attribute, json] : *find_object(request_, parameter, "Condition")) {
      const json::object& given = to_object(json, "Condition");
      const auto [op, values] = comparison(given, attribute);
      conditions.push_back(to_condition(attribute, *op, values));
    }
    out_.filter = joined(std::move(conditions));
    out_.filter_parameter = parameter;
  }

  void key_conditions() {
    std::vector<KeyCondition> conditions;
    for (const auto& [attribute, json] : *find_object(request_, "KeyConditions", "Condition")) {
      const auto [op, values] = comparison(to_object(json, "Condition"), attribute);
      static constexpr std::pair<std::string_view, KeyCondition::Operator> kKeyOperators[] = {
          {"EQ", KeyCondition::Operator::kEqual},
          {"LT", KeyCondition::Operator::kLess},
          {"LE", KeyCondition::Operator::kLessEqual},
          {"GT", KeyCondition::Operator::kGreater},
          {"GE", KeyCondition::Operator::kGreaterEqual},
          {"BETWEEN", KeyCondition::Operator::kBetween},
          {"BEGINS_WITH", KeyCondition::Operator::kBeginsWith}};
      const auto* found = std::find_if(std::begin(kKeyOperators), std::end(kKeyOperators),
                                       [name = op->name](const auto& each) { return each.first == name; });
      if (found == std::end(kKeyOperators)) {
        throw validation_error("Attempted conditional constraint is not an indexable operation");
      }
      conditions.push_back({std::string(attribute), found->second, values[0], values.size() > 1 ? values[1] : nullptr});
    }
    out_.key_conditions = std::move(conditions);
  }

  void expected() {
    std::vector<Condition> conditions;
    for (const auto& [attribute, json] : *find_object(request_, "Expected", "ExpectedAttributeValue")) {
      conditions.push_back(expectation(attribute, to_object(json, "ExpectedAttributeValue")));
    }
    out_.condition = joined(std::move(conditions));
  }

  void attribute_updates() {
    expression::Update update;
    for (const auto& [attribute, json] : *find_object(request_, "AttributeUpdates", "AttributeValueUpdate")) {
      update.actions.push_back(update_action(attribute, to_object(json, "AttributeValueUpdate")));
    }
    out_.update = std::move(update);
    out_.legacy_update = true;
  }

 private:
  static Path top_level(std::string_view attribute) {
    check_attribute_name(attribute);
    return Path{{std::string(attribute)}};
  }
  static Operand operand(const AttributeValue* value) { return {.path = {}, .value = value}; }

  const AttributeValue* keep(AttributeValue&& value) { return &out_.constants.emplace_back(std::move(value)); }

  std::vector<const AttributeValue*> values(const json::object& given) {
    std::vector<const AttributeValue*> out;
    if (const json::array* list = find_array(given, "AttributeValueList")) {
      for (const json::value& value : *list) out.push_back(keep(read_value(value)));
    }
    return out;
  }

  std::pair<const LegacyOperator*, std::vector<const AttributeValue*>> comparison(const json::object& given,
                                                                                  std::string_view attribute) {
    const std::string member = std::string(attribute) + ".member.comparisonOperator";
    const std::optional<std::string_view> name = find_string(given, "ComparisonOperator");
    Constraints constraints;
    constraints.not_null(member, name.has_value());
    constraints.check();
    const LegacyOperator& op = find_operator(*name, member);
    std::vector<const AttributeValue*> found = values(given);
    check_values(op, found);
    return {&op, std::move(found)};
  }

  Condition to_condition(std::string_view attribute, const LegacyOperator& op,
                         const std::vector<const AttributeValue*>& values) {
    Condition condition;
    condition.operands.push_back({.path = top_level(attribute)});
    for (const AttributeValue* value : values) condition.operands.push_back(operand(value));
    static constexpr std::pair<std::string_view, Comparator> kComparators[] = {
        {"EQ", Comparator::kEqual},     {"NE", Comparator::kNotEqual}, {"LT", Comparator::kLess},
        {"LE", Comparator::kLessEqual}, {"GT", Comparator::kGreater},  {"GE", Comparator::kGreaterEqual}};
    static constexpr std::pair<std::string_view, Condition::Kind> kKinds[] = {
        {"NOT_NULL", Condition::Kind::kAttributeExists}, {"NULL", Condition::Kind::kAttributeNotExists},
        {"CONTAINS", Condition::Kind::kContains},        {"NOT_CONTAINS", Condition::Kind::kContains},
        {"BEGINS_WITH", Condition::Kind::kBeginsWith},   {"IN", Condition::Kind::kIn},
        {"BETWEEN", Condition::Kind::kBetween}};
    condition.kind = Condition::Kind::kCompare;
    for (const auto& [name, comparator] : kComparators) {
      if (name == op.name) condition.comparator = comparator;
    }
    for (const auto& [name, kind] : kKinds) {
      if (name == op.name) condition.kind = kind;
    }
    if (op.name != "NOT_CONTAINS") return condition;
    Condition negated;
    negated.kind = Condition::Kind::kNot;
    negated.children.push_back(std::move(condition));
    return negated;
  }

  Condition expectation(std::string_view attribute, const json::object& given) {
    const std::string for_attribute = " for Attribute: " + std::string(attribute);
    const json::value* value = find_member(given, "Value");
    const std::optional<bool> exists = find_bool(given, "Exists");
    const std::optional<std::string_view> name = find_string(given, "ComparisonOperator");
    const bool list = find_array(given, "AttributeValueList") != nullptr;
    if (list && value != nullptr) {
      throw invalid_parameter("Value and AttributeValueList cannot be used together" + for_attribute);
    }
    if (!name && list) {
      throw invalid_parameter("AttributeValueList can only be used with a ComparisonOperator" + for_attribute);
    }
    if (name && exists) {
      throw invalid_parameter("Exists and ComparisonOperator cannot be used together" + for_attribute);
    }
    if (!name) return existence(attribute, value, exists);

    const LegacyOperator& op =
        find_operator(*name, "expected." + std::string(attribute) + ".member.comparisonOperator");
    if (op.values_max > 0 && !list && value == nullptr) {
      throw invalid_parameter(
          "Value or AttributeValueList must be used with ComparisonOperator: " + std::string(*name) + for_attribute);
    }
    std::vector<const AttributeValue*> found = values(given);
    if (value != nullptr) found.push_back(keep(read_value(*value)));
    check_values(op, found);
    return to_condition(attribute, op, found);
  }

  /// The oldest form: a value, or nothing, without an operator.
  Condition existence(std::string_view attribute, const json::value* value, std::optional<bool> exists) {
    const std::string for_attribute = " for Attribute: " + std::string(attribute);
    if (exists.value_or(true) && value == nullptr) {
      throw invalid_parameter("Value must be provided when Exists is " + std::string(exists ? "true" : "null") +
                              for_attribute);
    }
    if (!exists.value_or(true) && value != nullptr) {
      throw invalid_parameter("Value cannot be used when Exists is false" + for_attribute);
    }
    if (value == nullptr) return to_condition(attribute, find_operator("NULL", ""), {});
    return to_condition(attribute, find_operator("EQ", ""), {keep(read_value(*value))});
  }

  UpdateAction update_action(std::string_view attribute, const json::object& given) {
    const std::string_view name = find_string(given, "Action").value_or("PUT");
    Constraints constraints;
    constraints.one_of("attributeUpdates." + std::string(attribute) + ".member.action", name, {"ADD", "PUT", "DELETE"});
    constraints.check();
    const json::value* json = find_member(given, "Value");
    UpdateAction action;
    action.path = top_level(attribute);
    if (json == nullptr) {
      if (name != "DELETE")
        throw invalid_parameter("Only DELETE action is allowed when no attribute value is specified");
      action.kind = UpdateAction::Kind::kRemove;
      return action;
    }
    action.value.value = keep(read_value(*json));
    action.kind = name == "ADD"      ? UpdateAction::Kind::kAdd
                  : name == "DELETE" ? UpdateAction::Kind::kDelete
                                     : UpdateAction::Kind::kSet;
    check_action(action);
    return action;
  }

  static void check_action(const UpdateAction& action) {
    const AttributeType type = action.value.value->type;
    const bool set =
        type == AttributeType::kStringSet || type == AttributeType::kNumberSet || type == AttributeType::kBinarySet;
    const std::string name(model::wire_name(type));
    if (action.kind == UpdateAction::Kind::kDelete && !set) {
      throw invalid_parameter("DELETE action with value is not supported for the type " + name);
    }
    if (action.kind == UpdateAction::Kind::kAdd && !set && type != AttributeType::kNumber &&
        type != AttributeType::kList) {
      throw invalid_parameter("ADD action is not supported for the type " + name);
    }
  }

  /// Joined by ConditionalOperator; nothing if there are none.
  std::optional<Condition> joined(std::vector<Condition>&& conditions) {
    if (conditions.empty()) return std::nullopt;
    Condition all;
    all.kind = find_string(request_, "ConditionalOperator") == "OR" ? Condition::Kind::kOr : Condition::Kind::kAnd;
    all.children = std::move(conditions);
    return all;
  }

  const json::object& request_;
  RequestExpressions& out_;
};

}  // namespace

void read_legacy(const json::object& request, const std::vector<std::string_view>& present, RequestExpressions& out) {
  if (present.empty()) return;
  Constraints constraints;
  constraints.one_of("conditionalOperator", find_string(request, "ConditionalOperator"), {"OR", "AND"});
  constraints.check();
  LegacyReader reader(request, out);
  for (const std::string_view parameter : present) {
    if (parameter == "AttributesToGet") reader.attributes_to_get();
    if (parameter == "QueryFilter" || parameter == "ScanFilter") reader.filter(parameter);
    if (parameter == "KeyConditions") reader.key_conditions();
    if (parameter == "Expected") reader.expected();
    if (parameter == "AttributeUpdates") reader.attribute_updates();
  }
  if (present == std::vector<std::string_view>{"ConditionalOperator"}) {
    throw invalid_parameter("ConditionalOperator cannot be used without Filter or Expected");
  }
}

}  // namespace drover::server

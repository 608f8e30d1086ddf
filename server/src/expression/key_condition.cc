#include "expression/key_condition.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace drover::server::expression {
namespace {

using model::Status;
using Operator = KeyCondition::Operator;

Status invalid_operator(std::string_view name) {
  return model::invalid("Invalid operator used in KeyConditionExpression: " + std::string(name));
}

Status invalid_condition(const std::string& problem) {
  return model::invalid("Invalid condition in KeyConditionExpression: " + problem);
}

// Refused for what it is; nothing if it may stand in a key condition.
Status check_kind(const Condition& condition) {
  switch (condition.kind) {
    case Condition::Kind::kOr:
      return invalid_operator("OR");
    case Condition::Kind::kNot:
      return invalid_operator("NOT");
    case Condition::Kind::kIn:
      return invalid_operator("IN");
    case Condition::Kind::kAttributeExists:
      return invalid_operator("attribute_exists");
    case Condition::Kind::kAttributeNotExists:
      return invalid_operator("attribute_not_exists");
    case Condition::Kind::kAttributeType:
      return invalid_operator("attribute_type");
    case Condition::Kind::kContains:
      return invalid_operator("contains");
    case Condition::Kind::kCompare:
      return condition.comparator == Comparator::kNotEqual ? invalid_operator("<>") : Status();
    default:
      return {};
  }
}

Operator to_operator(const Condition& condition, bool mirrored) {
  if (condition.kind == Condition::Kind::kBetween) return Operator::kBetween;
  if (condition.kind == Condition::Kind::kBeginsWith) return Operator::kBeginsWith;
  switch (condition.comparator) {
    case Comparator::kLess:
      return mirrored ? Operator::kGreater : Operator::kLess;
    case Comparator::kLessEqual:
      return mirrored ? Operator::kGreaterEqual : Operator::kLessEqual;
    case Comparator::kGreater:
      return mirrored ? Operator::kLess : Operator::kGreater;
    case Comparator::kGreaterEqual:
      return mirrored ? Operator::kLessEqual : Operator::kGreaterEqual;
    default:
      return Operator::kEqual;
  }
}

Status check_operands(const std::vector<Operand>& operands) {
  const auto is_path = [](const Operand& operand) { return operand.value == nullptr; };
  if (std::any_of(operands.begin(), operands.end(), [](const Operand& operand) { return operand.size; })) {
    return model::invalid("KeyConditionExpressions cannot contain nested operations");
  }
  const auto paths = std::count_if(operands.begin(), operands.end(), is_path);
  if (paths == 0) return invalid_condition("No key attribute specified");
  if (paths > 1) return invalid_condition("Multiple attribute names used in one condition");
  if (std::find_if(operands.begin(), operands.end(), is_path)->path.nested()) {
    return model::invalid("KeyConditionExpressions cannot have conditions on nested attributes");
  }
  return {};
}

Status collect(const Condition& condition, std::vector<KeyCondition>& out) {
  if (Status status = check_kind(condition); !status.ok()) return status;
  if (condition.kind == Condition::Kind::kAnd) {
    for (const Condition& child : condition.children) {
      if (Status status = collect(child, out); !status.ok()) return status;
    }
    return {};
  }
  const std::vector<Operand>& operands = condition.operands;
  const bool mirrored = operands[0].value != nullptr;
  if (mirrored && condition.kind != Condition::Kind::kCompare) {
    const char* name = condition.kind == Condition::Kind::kBetween ? "BETWEEN" : "begins_with";
    return invalid_condition(std::string(name) + " operator must have the key attribute as its first operand");
  }
  if (Status status = check_operands(operands); !status.ok()) return status;

  KeyCondition key;
  key.attribute = operands[mirrored ? 1 : 0].path.head();
  key.op = to_operator(condition, mirrored);
  key.value = operands[mirrored ? 0 : 1].value;
  if (key.op == Operator::kBetween) key.upper = operands[2].value;
  if (std::any_of(out.begin(), out.end(),
                  [&](const KeyCondition& other) { return other.attribute == key.attribute; })) {
    return model::invalid("KeyConditionExpressions must only contain one condition per key");
  }
  out.push_back(std::move(key));
  return {};
}

const KeyCondition* find_condition(const std::vector<KeyCondition>& conditions, const std::string& attribute) {
  const auto found = std::find_if(conditions.begin(), conditions.end(),
                                  [&](const KeyCondition& condition) { return condition.attribute == attribute; });
  return found == conditions.end() ? nullptr : &*found;
}

Status check_type(const KeyCondition& condition, model::KeyType type) {
  const model::AttributeType wanted = attribute_type(type);
  if (condition.value->type == wanted && (condition.upper == nullptr || condition.upper->type == wanted)) return {};
  return model::invalid(
      "One or more parameter values were invalid: Condition parameter type does not match schema type");
}

}  // namespace

model::Result<std::vector<KeyCondition>> key_conditions(const Condition& condition) {
  std::vector<KeyCondition> out;
  if (Status status = collect(condition, out); !status.ok()) return status;
  return out;
}

model::Result<KeyConditions> match_key(const std::vector<KeyCondition>& conditions, const model::KeySchema& key) {
  if (conditions.empty() || conditions.size() > 2) {
    return model::invalid("Conditions can be of length 1 or 2 only");
  }
  if (!key.sort_key && conditions.size() > 1) return model::invalid("Query key condition not supported");

  const KeyCondition* partition = find_condition(conditions, key.partition_key.name);
  if (partition == nullptr) {
    return model::invalid("Query condition missed key schema element: " + key.partition_key.name);
  }
  if (Status status = check_type(*partition, key.partition_key.type); !status.ok()) return status;
  if (partition->op != Operator::kEqual) return model::invalid("Query key condition not supported");

  const KeyCondition* sort = key.sort_key ? find_condition(conditions, key.sort_key->name) : nullptr;
  if (sort == nullptr && conditions.size() > 1) {
    return model::invalid("Query condition missed key schema element: " + key.sort_key->name);
  }
  if (sort != nullptr) {
    if (Status status = check_type(*sort, key.sort_key->type); !status.ok()) return status;
  }
  return KeyConditions{partition->value, sort};
}

model::AttributeType attribute_type(model::KeyType type) {
  switch (type) {
    case model::KeyType::kString:
      return model::AttributeType::kString;
    case model::KeyType::kNumber:
      return model::AttributeType::kNumber;
    case model::KeyType::kBinary:
      return model::AttributeType::kBinary;
  }
  return model::AttributeType::kString;
}

}  // namespace drover::server::expression

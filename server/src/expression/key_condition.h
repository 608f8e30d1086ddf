#pragma once

#include <string>
#include <vector>

#include "drover/model/attribute.h"
#include "drover/model/schema.h"
#include "drover/model/status.h"
#include "expression/ast.h"

namespace drover::server::expression {

/// What a Query asks of one key attribute.
struct KeyCondition {
  enum class Operator { kEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kBetween, kBeginsWith };
  std::string attribute;
  Operator op = Operator::kEqual;
  const model::AttributeValue* value = nullptr;
  const model::AttributeValue* upper = nullptr;  ///< kBetween: the upper bound, `value` being the lower one.
};

/// The conditions that a KeyConditionExpression consists of. kInvalid, with DynamoDB's words, on everything that a
/// condition may say and a key condition may not.
model::Result<std::vector<KeyCondition>> key_conditions(const Condition& condition);

/// Key conditions sorted by the part that they play.
struct KeyConditions {
  const model::AttributeValue* partition_key = nullptr;
  const KeyCondition* sort_key = nullptr;  ///< Or null.
};

/// Finds the conditions' places in a table's or an index's key: an equality on the partition key, and at most one
/// condition on the sort key, of the schema's types. Points into `conditions`.
model::Result<KeyConditions> match_key(const std::vector<KeyCondition>& conditions, const model::KeySchema& key);

/// Type of a key attribute's values.
model::AttributeType attribute_type(model::KeyType type);

}  // namespace drover::server::expression

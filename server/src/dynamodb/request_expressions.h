#pragma once

#include <boost/json/object.hpp>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

#include "drover/model/attribute.h"
#include "expression/ast.h"
#include "expression/key_condition.h"
#include "expression/placeholders.h"
#include "expression/projection.h"

namespace drover::server {

/// Everything in a request that selects, conditions or changes attributes, in one form whether it came as expressions
/// or as legacy parameters.
///
/// The trees point into `placeholders` and `constants`; moving the whole keeps them valid, copying is not possible.
struct RequestExpressions {
  RequestExpressions() = default;
  RequestExpressions(RequestExpressions&&) = default;
  RequestExpressions& operator=(RequestExpressions&&) = default;

  expression::Placeholders placeholders;
  std::deque<model::AttributeValue> constants;  ///< Of legacy parameters.

  std::optional<std::vector<expression::KeyCondition>> key_conditions;
  std::optional<expression::Condition> filter;
  std::optional<expression::Condition> condition;
  std::optional<expression::Update> update;
  std::optional<std::vector<expression::Path>> projection;

  /// How the filter was given, for errors: "Filter Expression" or "QueryFilter".
  std::string_view filter_parameter = "Filter Expression";
  bool legacy_update = false;
};

/// The parameters of one operation, in DynamoDB's order.
struct ExpressionParameters {
  std::vector<std::string_view> expressions;
  std::vector<std::string_view> legacy;
};

/// Reads what `parameters` names. Throws a ValidationException on a wrong expression, on both kinds together, and on
/// names and values that are undefined or unused.
RequestExpressions read_expressions(const boost::json::object& request, const ExpressionParameters& parameters);

}  // namespace drover::server

#pragma once

#include <boost/json/object.hpp>
#include <string_view>
#include <vector>

#include "dynamodb/request_expressions.h"

namespace drover::server {

/// Turns the legacy parameters that `present` names (KeyConditions, QueryFilter, ScanFilter, AttributesToGet, Expected,
/// ConditionalOperator, AttributeUpdates) into what expressions become. Throws a ValidationException with DynamoDB's
/// words.
void read_legacy(const boost::json::object& request, const std::vector<std::string_view>& present,
                 RequestExpressions& out);

}  // namespace drover::server

#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "drover/model/status.h"
#include "expression/ast.h"
#include "expression/placeholders.h"

/// DynamoDB's expression language: text to trees. (Developer Guide, "Using expressions in DynamoDB".)
///
/// Every parse function resolves names and values through `placeholders`, marks them as used, and checks everything
/// that can be known without an item; a failure is kInvalid with DynamoDB's words behind "Invalid <parameter>: ". Work
/// and stack are bounded by the text's size, whatever it says.
namespace drover::server::expression {

inline constexpr std::size_t kExpressionSizeBytesMax = 4096;
inline constexpr std::size_t kExpressionOperatorsMax = 300;
inline constexpr std::size_t kInOperandsMax = 100;

/// `parameter` names the text in errors: ConditionExpression, FilterExpression or KeyConditionExpression.
model::Result<Condition> parse_condition(std::string_view text, std::string_view parameter, Placeholders& placeholders);

/// ProjectionExpression. The paths do not overlap.
model::Result<std::vector<Path>> parse_projection(std::string_view text, Placeholders& placeholders);

/// UpdateExpression.
model::Result<Update> parse_update(std::string_view text, Placeholders& placeholders);

}  // namespace drover::server::expression

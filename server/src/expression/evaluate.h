#pragma once

#include <string>
#include <vector>

#include "drover/model/attribute.h"
#include "expression/ast.h"

namespace drover::server::expression {

/// Whether values of the type have an order: strings, numbers and binary.
bool is_ordered(model::AttributeType type);

/// Below, at or above zero as `a` stands before, at or behind `b`. Requires: one type, and is_ordered().
int compare_ordered(const model::AttributeValue& a, const model::AttributeValue& b);

/// What the path leads to, or null.
const model::AttributeValue* find(const model::Item& item, const Path& path);

/// Whether the item meets the condition. A missing attribute and a type that an operator cannot take make a comparison
/// false (and `<>` true); neither is an error.
bool matches(const Condition& condition, const model::Item& item);

/// The top-level attributes that a condition looks at, sorted, each once: all of an item that matches() needs.
std::vector<std::string> attributes_of(const Condition& condition);

}  // namespace drover::server::expression

#pragma once

#include "drover/model/attribute.h"
#include "drover/model/status.h"
#include "expression/ast.h"

namespace drover::server::expression {

/// Carries an update out on `item`. Right-hand sides and list indexes mean the item as it was.
///
/// Fails with kInvalid and DynamoDB's words on a path that leads nowhere, a missing or wrongly typed operand, or a
/// number out of range; `item` is then unspecified.
model::Status apply(const Update& update, model::Item& item);

/// Whether the update can only take away: such a one does not create an item that is not there.
bool only_removes(const Update& update);

}  // namespace drover::server::expression

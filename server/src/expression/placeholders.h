#pragma once

#include <map>
#include <string>
#include <string_view>

#include "drover/model/attribute.h"
#include "drover/model/status.h"

namespace drover::server::expression {

/// A request's ExpressionAttributeNames and ExpressionAttributeValues, and which of them the expressions have used.
///
/// Lifetime: expression trees point to the values; a moved Placeholders keeps them valid.
struct Placeholders {
  struct Name {
    std::string name;
    bool used = false;
  };
  struct Value {
    model::AttributeValue value;
    bool used = false;
  };
  std::map<std::string, Name, std::less<>> names;    ///< By "#name".
  std::map<std::string, Value, std::less<>> values;  ///< By ":value".

  /// Fails with DynamoDB's words if something was given that no expression has used.
  model::Status all_used() const;
};

}  // namespace drover::server::expression

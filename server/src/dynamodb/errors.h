#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "drover/model/attribute.h"
#include "drover/model/status.h"

namespace drover::server {

/// Why a call fails, in DynamoDB's words. Thrown by whatever reads or carries out a request and caught in one place,
/// where it becomes the answer (api.cc); it never leaves the thread it was thrown on.
struct ApiError {
  unsigned status = 400;
  std::string_view type;  ///< With its namespace; a literal.
  std::string message;    ///< Empty: the answer has none.
  /// The item that failed a condition, if it was asked for.
  std::optional<model::Item> item = {};

  /// The answer's body.
  std::string body() const;
};

ApiError validation_error(std::string message);
/// "One or more parameter values were invalid: " in front.
ApiError invalid_parameter(const std::string& problem);
ApiError serialization_error(std::string message);
ApiError unknown_operation();
ApiError table_not_found();
ApiError table_not_found(std::string_view table);
ApiError table_in_use(std::string_view table);
ApiError limit_exceeded(std::string message);
ApiError condition_failed(std::optional<model::Item> item);
ApiError collection_too_large();
ApiError throttled();
/// Of a write that the store did not carry out. Requires: !status.ok().
ApiError write_error(const model::Status& status);
ApiError internal_error();

inline constexpr std::string_view kValidationType = "com.amazon.coral.validate#ValidationException";
inline constexpr std::string_view kThrottlingType = "com.amazon.coral.availability#ThrottlingException";

/// Throws a ValidationException with the status's message unless it is ok.
void check(const model::Status& status);

/// The value, or a ValidationException with the status's message.
template <typename T>
T value_of(model::Result<T>&& result) {
  if (!result.ok()) throw validation_error(result.status().message());
  return std::move(*result);
}

}  // namespace drover::server

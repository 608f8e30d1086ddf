#include "dynamodb/errors.h"

#include <utility>

#include "dynamodb/json_writer.h"

namespace drover::server {
namespace {

constexpr std::string_view kSerializationType = "com.amazon.coral.service#SerializationException";

}  // namespace

std::string ApiError::body() const {
  std::string out = "{\"__type\":";
  append_json_string(out, type);
  if (!message.empty()) {
    out += type == kSerializationType ? ",\"Message\":" : ",\"message\":";
    append_json_string(out, message);
  }
  if (item) {
    out += ",\"Item\":";
    append_json_item(out, *item);
  }
  out += '}';
  return out;
}

ApiError validation_error(std::string message) {
  return {400, kValidationType, std::move(message)};
}

ApiError invalid_parameter(const std::string& problem) {
  return validation_error("One or more parameter values were invalid: " + problem);
}

ApiError serialization_error(std::string message) {
  return {400, kSerializationType, std::move(message)};
}

ApiError unknown_operation() {
  return {400, "com.amazon.coral.service#UnknownOperationException", {}};
}

ApiError table_not_found() {
  return {400, "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException", "Requested resource not found"};
}

ApiError table_not_found(std::string_view table) {
  return {400, "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException",
          "Requested resource not found: Table: " + std::string(table) + " not found"};
}

ApiError table_in_use(std::string_view table) {
  return {400, "com.amazonaws.dynamodb.v20120810#ResourceInUseException",
          "Table already exists: " + std::string(table)};
}

ApiError limit_exceeded(std::string message) {
  return {400, "com.amazonaws.dynamodb.v20120810#LimitExceededException", std::move(message)};
}

ApiError condition_failed(std::optional<model::Item> item) {
  return {400, "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "The conditional request failed",
          std::move(item)};
}

ApiError collection_too_large() {
  return {400, "com.amazonaws.dynamodb.v20120810#ItemCollectionSizeLimitExceededException",
          "Collection size exceeded."};
}

ApiError throttled() {
  return {400, kThrottlingType, "Rate of requests exceeds the allowed throughput."};
}

ApiError write_error(const model::Status& status) {
  switch (status.code()) {
    case model::StatusCode::kInvalid:
      return validation_error(status.message());
    case model::StatusCode::kTooLarge:
      return collection_too_large();
    case model::StatusCode::kFull:
      return throttled();
    case model::StatusCode::kStopping:  // the table is gone
      return table_not_found();
    default:
      return internal_error();
  }
}

ApiError internal_error() {
  return {500, "com.amazonaws.dynamodb.v20120810#InternalServerError",
          "The request processing has failed because of an unknown error"};
}

void check(const model::Status& status) {
  if (status.ok()) return;
  throw status.code() == model::StatusCode::kUnavailable ? internal_error() : validation_error(status.message());
}

}  // namespace drover::server

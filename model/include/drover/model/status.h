#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "drover/model/check.h"

namespace drover::model {

/// What went wrong, named by what the caller does next.
enum class StatusCode : std::uint8_t {
  kOk,
  kInvalid,      ///< The input is wrong: skip it or tell whoever sent it; the same call fails again.
  kNotFound,     ///< What was named does not exist.
  kExists,       ///< What was to be created exists already.
  kTooLarge,     ///< What it would add to is as large as it may be: make it smaller first.
  kFull,         ///< A bounded queue is full: slow down and offer the same again.
  kUnavailable,  ///< The world is not as it should be for now (broker away, port taken): retry later.
  kStopping,     ///< The service is shutting down: stop.
};

/// An outcome without a value: a code and, unless it is kOk, one sentence for a person.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status invalid(std::string message) {
  return {StatusCode::kInvalid, std::move(message)};
}

/// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): `return value;` reads best
  Result(Status status) : value_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    DROVER_CHECK(!std::get<Status>(value_).ok(), "a Result without a value needs an error");
  }

  bool ok() const { return std::holds_alternative<T>(value_); }
  explicit operator bool() const { return ok(); }

  /// Requires: !ok().
  const Status& status() const { return std::get<Status>(value_); }

  /// Requires: ok().
  T& value() & { return std::get<T>(value_); }
  const T& value() const& { return std::get<T>(value_); }
  T&& value() && { return std::get<T>(std::move(value_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> value_;
};

}  // namespace drover::model

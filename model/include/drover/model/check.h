#pragma once

namespace drover::model {

/// Prints where and what, and aborts. For our own mistakes only; what the world does wrong is a Status.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* message);

}  // namespace drover::model

/// Always on, in every build. `message` is a string literal.
#define DROVER_CHECK(condition, message) \
  ((condition) ? static_cast<void>(0) : ::drover::model::check_failed(__FILE__, __LINE__, #condition, (message)))

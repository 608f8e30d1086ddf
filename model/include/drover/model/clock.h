#pragma once

#include <cstdint>

namespace drover::model {

/// Milliseconds since 1970 as the machine's clock has it; injected so that tests can turn it.
using ClockMs = std::int64_t (*)();
std::int64_t system_clock_ms();

/// Nanoseconds of a clock that never jumps, for measuring spans.
std::int64_t steady_clock_ns();

}  // namespace drover::model

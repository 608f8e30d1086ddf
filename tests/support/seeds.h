#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

namespace drover::test {

/// The seeds of a random test: 0 and so on, or from DROVER_TEST_SEED on. GoogleTest prints the one that failed as
/// GetParam().
inline auto seeds(std::uint32_t count) {
  const char* const text = std::getenv("DROVER_TEST_SEED");
  const std::uint32_t first = text == nullptr ? 0 : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
  return testing::Range(first, first + count);
}

}  // namespace drover::test

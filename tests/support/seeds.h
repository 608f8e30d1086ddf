#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

namespace drover::test {

/// The seeds of a random test: `count`, from 0 on. DROVER_TEST_SEED is another first one, DROVER_TEST_SEEDS another
/// count: `tests/run long` tries new ones with them. GoogleTest prints the one that failed as GetParam().
///
/// All of its tests are instantiated as Seeds: `--gtest_filter='Seeds/*'`.
inline auto seeds(std::uint32_t count) {
  const auto of = [](const char* variable, std::uint32_t otherwise) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
  };
  const std::uint32_t first = of("DROVER_TEST_SEED", 0);
  return testing::Range(first, first + of("DROVER_TEST_SEEDS", count));
}

}  // namespace drover::test

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace drover::store {
namespace {

// See columns_fuzz.cc.
TEST(ColumnsFuzz, RandomInputsDoNoHarm) {
  std::mt19937 random(20260623);
  for (int i = 0; i < 6'000; ++i) {
    std::string input(1 + random() % 600, '\0');
    // Small bytes more often: they are sizes and choices.
    for (char& byte : input) byte = static_cast<char>(random() % 2 == 0 ? random() % 256 : random() % 5);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  }
}

}  // namespace
}  // namespace drover::store

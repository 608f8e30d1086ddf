#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "fetch_answers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace drover::ingest::test {
namespace {

// See record_batches_fuzz.cc.
TEST(RecordBatchesFuzz, MutatedBatchesAndAnswersAreReadTheSameInAnyPortions) {
  std::mt19937 random(20260623);
  std::vector<std::string> inputs;
  for (const Codec codec : {Codec::kNone, Codec::kGzip, Codec::kSnappy, Codec::kLz4, Codec::kZstd}) {
    inputs.push_back(plain_batch(0, 10, codec) + batch_bytes({.base_offset = 10, .attributes = 0x20}, {{0, "c"}}) +
                     plain_batch(11, 3, codec));
    inputs.push_back(answer_bytes(1, {{.records = inputs.back()}, {.partition = 1, .aborted_transactions = 2}}));
  }
  for (int i = 0; i < 20'000; ++i) {
    std::string input = inputs[random() % inputs.size()];
    for (auto changes = random() % 4; changes > 0; --changes) {
      const std::size_t at = random() % input.size();
      switch (random() % 4) {
        case 0:
          input[at] = static_cast<char>(random());
          break;
        case 1:
          input[at] = static_cast<char>(input[at] ^ (1 << random() % 8));
          break;
        case 2:
          input.erase(at, 1 + random() % 4);
          break;
        default:
          input.insert(at, input.substr(random() % input.size(), random() % 20));
      }
      if (input.empty()) break;
    }
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  }
}

}  // namespace
}  // namespace drover::ingest::test

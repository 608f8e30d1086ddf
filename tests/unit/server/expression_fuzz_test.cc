#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "mutation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace drover::server::test {
namespace {

// See expression_fuzz.cc; the fuzzer's entry aborts where something is wrong.
TEST(ExpressionFuzz, MutatedExpressionsAreReadOneWayOrRefused) {
  const std::vector<std::string> expressions = {
      "a = :s AND b BETWEEN :n AND :n",
      "NOT (contains(a, :s) OR size(c) > :n) AND attribute_exists(c[1].d)",
      "begins_with(a, :s) OR #n IN (:s, :n, m.k) OR attribute_type(m, :t)",
      "a, b, c[1].d, m.k, #n",
      "SET a = :s, b = b + :n, c = list_append(if_not_exists(c, :l), :l) REMOVE m.k ADD m.s :set",
      "SET c[5] = :s REMOVE c[0], c[1].d DELETE m.s :set"};
  const std::vector<std::string> pieces = {
      "(",     ")",    "[0]",   ".",       ",",       " AND ", " OR ",          "NOT ", ":n", ":s", "#n",
      "size(", "+",    "-",     "=",       "<>",      "<",     "BETWEEN ",      "IN (", "c",  "m",  "a",
      "SET ",  "ADD ", "99999", "DELETE ", "REMOVE ", "\xc3",  "if_not_exists("};
  std::mt19937 random(7741);
  for (int i = 0; i < 60'000; ++i) {
    const std::string input = mutate(expressions[random() % expressions.size()], pieces, random);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  }
}

}  // namespace
}  // namespace drover::server::test

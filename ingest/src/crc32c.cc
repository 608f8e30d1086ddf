#include "crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace drover::ingest {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(std::string_view bytes) {
  std::uint64_t crc = 0xffffffff;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= sizeof(std::uint64_t); left -= sizeof(std::uint64_t), at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    crc = _mm_crc32_u64(crc, word);
  }
  auto crc_32 = static_cast<std::uint32_t>(crc);
  for (; left > 0; --left, ++at) crc_32 = _mm_crc32_u8(crc_32, static_cast<unsigned char>(*at));
  return ~crc_32;
}
#endif

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
#if defined(__x86_64__)
  static const bool kHasInstruction = __builtin_cpu_supports("sse4.2") != 0;
  if (kHasInstruction) return crc32c_by_instruction(bytes);
#endif
  return crc32c_by_table(bytes);
}

std::uint32_t crc32c_by_table(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char byte : bytes) crc = kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

}  // namespace drover::ingest

#include "dynamodb/base64.h"

#include <array>
#include <cstdint>

namespace drover::server {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoDigit = 0xff;

constexpr auto kDigits = [] {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return digits;
}();

}  // namespace

void append_base64(std::string& out, std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view group = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (j < group.size() ? static_cast<unsigned char>(group[j]) : 0u);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out += j <= group.size() ? kAlphabet[bits >> (18 - 6 * j) & 0x3f] : '=';
    }
  }
}

model::Result<model::Bytes> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return model::invalid("Base64 encoded length is expected a multiple of 4 bytes but found: " +
                          std::to_string(text.size()));
  }
  std::size_t padding = 0;
  while (padding < 2 && text.size() > padding && text[text.size() - 1 - padding] == '=') ++padding;

  model::Bytes out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const char c : text.substr(0, text.size() - padding)) {
    const std::uint8_t digit = kDigits[static_cast<unsigned char>(c)];
    if (digit == kNoDigit) return model::invalid("Invalid Base64 character found");
    bits = bits << 6 | digit;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out.push_back(static_cast<char>(bits >> held));
    bits &= (1u << held) - 1;
  }
  if (bits != 0) return model::invalid("Invalid last non-pad Base64 character dectected");
  return out;
}

}  // namespace drover::server

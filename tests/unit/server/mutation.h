#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace drover::server::test {

/// Text with a few changes of the kinds that happen: bytes flipped, cut, doubled, and given pieces put in.
inline std::string mutate(std::string text, const std::vector<std::string>& pieces, std::mt19937& random) {
  for (auto changes = random() % 4; changes > 0; --changes) {
    const std::size_t at = text.empty() ? 0 : random() % text.size();
    switch (random() % 4) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, 1 + random() % 8);
        break;
      case 2:
        text.insert(at, text.substr(random() % (text.size() + 1), random() % 30));
        break;
      default:
        text.insert(at, pieces[random() % pieces.size()]);
    }
  }
  return text;
}

}  // namespace drover::server::test

#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>

#include "drover/model/attribute.h"
#include "drover/model/decimal.h"

/// Random numbers, byte strings and attribute values for the model's property tests.
namespace drover::model {

using Random = std::mt19937_64;

inline std::int64_t pick(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

/// Bytes from a small alphabet with 0x00, 0x01 and 0xff in it, so that escapes and shared beginnings come up often.
inline std::string random_bytes(Random& random, std::int64_t size_max) {
  static constexpr char kAlphabet[] = {'\x00', '\x01', '\x02', 'a', 'b', '\xfe', '\xff'};
  std::string bytes;
  for (std::int64_t size = pick(random, 0, size_max); size > 0; --size) {
    bytes.push_back(kAlphabet[pick(random, 0, sizeof kAlphabet - 1)]);
  }
  return bytes;
}

/// A number as text: 1 to 38 digits, its first digit at 10^leading for a leading that is often small.
inline std::string random_number_text(Random& random) {
  std::string text = pick(random, 0, 1) == 0 ? "-" : "";
  text.push_back(static_cast<char>('0' + pick(random, 0, 9)));
  const std::int64_t digits = pick(random, 0, 3) == 0 ? pick(random, 0, 37) : pick(random, 0, 4);
  if (digits > 0) text.push_back('.');
  for (std::int64_t i = 0; i < digits; ++i) text.push_back(static_cast<char>('0' + pick(random, 0, 9)));
  std::int64_t leading = pick(random, 0, 3) == 0 ? pick(random, -90, 125) : pick(random, -3, 3);
  if (pick(random, 0, 15) == 0) leading = pick(random, 0, 1) == 0 ? 125 : -90;
  return text + "e" + std::to_string(leading);
}

inline Decimal random_decimal(Random& random) {
  return Decimal::parse(random_number_text(random)).value();
}

inline AttributeValue random_value(Random& random, int depth) {
  AttributeValue value;
  value.type = static_cast<AttributeType>(pick(random, 0, depth > 0 ? 9 : 7));
  const std::int64_t elements = pick(random, 0, 4);
  switch (value.type) {
    case AttributeType::kNull:
      break;
    case AttributeType::kBool:
      value.boolean = pick(random, 0, 1) == 1;
      break;
    case AttributeType::kString:
    case AttributeType::kBinary:
      value.bytes = random_bytes(random, 300);
      break;
    case AttributeType::kNumber:
      value.number = random_decimal(random);
      break;
    case AttributeType::kStringSet:
    case AttributeType::kBinarySet: {
      std::set<std::string> set{random_bytes(random, 5)};
      for (std::int64_t i = 0; i < elements; ++i) set.insert(random_bytes(random, 5));
      value.bytes_set.assign(set.begin(), set.end());
      break;
    }
    case AttributeType::kNumberSet: {
      std::set<Decimal> set{random_decimal(random)};
      for (std::int64_t i = 0; i < elements; ++i) set.insert(random_decimal(random));
      value.number_set.assign(set.begin(), set.end());
      break;
    }
    case AttributeType::kList:
      for (std::int64_t i = 0; i < elements; ++i) value.list.push_back(random_value(random, depth - 1));
      break;
    case AttributeType::kMap:
      for (std::int64_t i = 0; i < elements; ++i) {
        value.map.insert_or_assign(random_bytes(random, 3), random_value(random, depth - 1));
      }
      break;
  }
  return value;
}

}  // namespace drover::model

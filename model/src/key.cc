#include "drover/model/key.h"

#include <algorithm>
#include <cstring>

#include "drover/model/limits.h"
#include "drover/model/value_view.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace drover::model {
namespace {

constexpr char kEscapedZero = static_cast<char>(0xff);
constexpr char kPartEnd = 0x01;

AttributeType attribute_type(KeyType type) {
  switch (type) {
    case KeyType::kString:
      return AttributeType::kString;
    case KeyType::kNumber:
      return AttributeType::kNumber;
    case KeyType::kBinary:
      return AttributeType::kBinary;
  }
  return AttributeType::kString;
}

Status wrong_type(const KeyAttribute& attribute, AttributeType actual) {
  std::string message = "One or more parameter values were invalid: Type mismatch for key ";
  message.append(attribute.name).append(" expected: ").append(wire_name(attribute_type(attribute.type)));
  message.append(" actual: ").append(wire_name(actual));
  return invalid(std::move(message));
}

Status empty_key(const KeyAttribute& attribute) {
  std::string message =
      "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty ";
  message.append(attribute.type == KeyType::kBinary ? "binary" : "string").append(" value. Key: ");
  return invalid(message.append(attribute.name));
}

/// DynamoDB's words, its missing space included.
Status key_too_long(std::size_t size_bytes_max) {
  if (size_bytes_max == kPartitionKeySizeBytesMax) {
    return invalid("One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of" +
                   std::to_string(size_bytes_max) + " bytes");
  }
  return invalid(
      "One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size "
      "limit of " +
      std::to_string(size_bytes_max) + " bytes");
}

/// Whether the fraction in a time's text has a digit other than 0 behind its first `digits` ones.
bool has_digits_behind(std::string_view text, std::size_t digits) {
  const std::size_t point = text.find_first_of(".,");
  if (point == std::string_view::npos) return false;
  const std::string_view fraction = text.substr(point + 1);
  const std::string_view behind = fraction.substr(std::min(digits, fraction.size()));
  const std::size_t first = behind.find_first_not_of('0');
  return first != std::string_view::npos && behind[first] >= '1' && behind[first] <= '9';
}

std::int64_t step_ns(TimePrecision precision) {
  switch (precision) {
    case TimePrecision::kSeconds:
      return 1'000'000'000;
    case TimePrecision::kMillis:
      return 1'000'000;
    case TimePrecision::kMicros:
      return 1'000;
    case TimePrecision::kNanos:
      return 1;
  }
  return 1;
}

}  // namespace

KeyHash hash_key(std::string_view partition_key) {
  return XXH3_64bits(partition_key.data(), partition_key.size());
}

Status append_key(Bytes& out, const KeyAttribute& attribute, const AttributeValue& value, std::size_t size_bytes_max) {
  if (value.type != attribute_type(attribute.type)) return wrong_type(attribute, value.type);
  if (attribute.type == KeyType::kNumber) {
    value.number.append_ordered(out);
    return {};
  }
  if (value.bytes.empty()) return empty_key(attribute);
  if (value.bytes.size() > size_bytes_max) return key_too_long(size_bytes_max);
  out.append(value.bytes);
  return {};
}

AttributeValue key_value(KeyType type, std::string_view encoded) {
  switch (type) {
    case KeyType::kString:
      return AttributeValue::string(std::string(encoded));
    case KeyType::kNumber:
      return AttributeValue::of_number(Decimal::decode_ordered(encoded));
    case KeyType::kBinary:
      return AttributeValue::binary(Bytes(encoded));
  }
  return AttributeValue::null();
}

void append_key_as_value(Bytes& out, KeyType type, std::string_view encoded) {
  if (type == KeyType::kNumber) {
    append_number_value(out, Decimal::decode_ordered(encoded));
    return;
  }
  out.push_back(static_cast<char>(type == KeyType::kString ? ValueTag::kString : ValueTag::kBinary));
  append_varint(out, encoded.size());
  out.append(encoded);
}

namespace {

/// Copies at least eight bytes; false if there is a zero among them.
bool copy_without_zero(char* out, std::string_view part) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kTops = 0x8080808080808080;
  std::uint64_t zeros = 0;
  const auto copy = [&](std::size_t at) {
    std::uint64_t word;
    std::memcpy(&word, part.data() + at, sizeof word);
    std::memcpy(out + at, &word, sizeof word);
    zeros |= (word - kOnes) & ~word & kTops;
  };
  const std::size_t last = part.size() - sizeof(std::uint64_t);
  for (std::size_t at = 0; at < last; at += sizeof(std::uint64_t)) copy(at);
  copy(last);
  return zeros == 0;
}

}  // namespace

char* put_key_part(char* out, std::string_view part) {
  if (part.size() >= sizeof(std::uint64_t) && copy_without_zero(out, part)) [[likely]] {
    out += part.size();
    *out++ = '\0';
    *out++ = kPartEnd;
    return out;
  }
  for (std::size_t zero; (zero = part.find('\0')) != std::string_view::npos; part.remove_prefix(zero + 1)) {
    out += part.copy(out, zero + 1);
    *out++ = kEscapedZero;
  }
  out += part.copy(out, part.size());
  *out++ = '\0';
  *out++ = kPartEnd;
  return out;
}

void append_key_part(Bytes& out, std::string_view part) {
  const std::size_t size = out.size();
  out.resize(size + key_part_room_bytes(part.size()));
  out.resize(static_cast<std::size_t>(put_key_part(out.data() + size, part) - out.data()));
}

Bytes take_key_part(std::string_view& joined) {
  Bytes part;
  for (;;) {
    const std::size_t zero = joined.find('\0');
    part.append(joined.substr(0, zero));
    const bool end = joined[zero + 1] == kPartEnd;
    joined.remove_prefix(zero + 2);
    if (end) return part;
    part.push_back('\0');
  }
}

Bytes canonical_time_key(const TimeSortKey& time, std::string_view text, bool round_up) {
  if (!text.starts_with(time.prefix)) return Bytes(text);
  const std::string_view given = text.substr(time.prefix.size());
  if (is_canonical_time(given, time.precision)) return Bytes(text);
  std::optional<TimeNs> at = parse_time(given);
  if (!at) return Bytes(text);
  if (round_up && has_digits_behind(given, static_cast<std::size_t>(time.precision))) {
    at->value += step_ns(time.precision);  // format_time() cuts the rest
  }
  return time.prefix + format_time(*at, time.precision);
}

Bytes time_key(const TimeSortKey& time, TimeNs at) {
  return time.prefix + format_time(at, time.precision);
}

}  // namespace drover::model

#include "drover/model/value_view.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

namespace drover::model {
namespace {

void append_tag(Bytes& out, ValueTag tag) {
  out.push_back(static_cast<char>(tag));
}

void append_sized(Bytes& out, std::string_view bytes) {
  append_varint(out, bytes.size());
  out.append(bytes);
}

/// Takes varint(size) bytes.
std::string_view take_sized(const char*& at) {
  std::uint64_t size = 0;
  at = get_varint(at, size);
  const std::string_view bytes(at, size);
  at += size;
  return bytes;
}

/// Takes an encoded value.
ValueView take_value(const char*& at) {
  const char* const begin = at;
  at = skip_value(at);
  return ValueView(std::string_view(begin, static_cast<std::size_t>(at - begin)));
}

AttributeView take_attribute(const char*& at, const AttributeNames& names) {
  const RawAttribute raw = take_raw_attribute(at);
  return {raw.id == NameId{} ? raw.text : names.name(raw.id), raw.id, raw.value};
}

void unpack_list(const char* at, std::uint64_t count, const AttributeNames& names, AttributeValue::List& list) {
  list.reserve(count);
  for (; count > 0; --count) list.push_back(take_value(at).to_value(names));
}

void unpack_map(const char* at, std::uint64_t count, const AttributeNames& names, AttributeValue::Map& map) {
  for (; count > 0; --count) {
    const AttributeView attribute = take_attribute(at, names);
    map.emplace_hint(map.end(), attribute.name, attribute.value.to_value(names));
  }
}

void unpack_bytes_set(const char* at, std::uint64_t count, std::vector<std::string>& set) {
  set.reserve(count);
  for (; count > 0; --count) set.emplace_back(take_sized(at));
}

void unpack_number_set(const char* at, std::uint64_t count, std::vector<Decimal>& set) {
  set.reserve(count);
  for (; count > 0; --count) set.push_back(take_value(at).number());
}

/// Appends tag, size, count and elements of a set, list or map.
template <typename Elements, typename AppendElement>
void append_elements(Bytes& out, ValueTag tag, const Elements& elements, AppendElement&& append_element) {
  Bytes payload;
  append_varint(payload, elements.size());
  for (const auto& element : elements) append_element(payload, element);
  append_tag(out, tag);
  append_sized(out, payload);
}

/// What one pass over both finds, as long as the names that they share stand in the same order in both.
enum class Containment { kContained, kDifferent, kUnknown };

Containment compare_in_order(std::string_view whole, std::string_view part) {
  const char* in_whole = whole.data();
  const char* in_part = part.data();
  while (in_part != part.data() + part.size()) {
    const RawAttribute wanted = take_raw_attribute(in_part);
    RawAttribute stored;
    do {
      if (in_whole == whole.data() + whole.size()) return Containment::kUnknown;
      stored = take_raw_attribute(in_whole);
    } while (stored.id != wanted.id || stored.text != wanted.text);
    if (stored.value.encoded() != wanted.value.encoded()) return Containment::kDifferent;
  }
  return Containment::kContained;
}

using NamedValue = std::pair<std::string_view, std::string_view>;

std::vector<NamedValue> sorted_by_name(std::string_view encoded, const AttributeNames& names) {
  std::vector<NamedValue> values;
  for (AttributeReader reader(encoded, names); reader.next();) {
    values.emplace_back(reader.attribute().name, reader.attribute().value.encoded());
  }
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace

AttributeType ValueView::type() const {
  switch (tag()) {
    case ValueTag::kNull:
      return AttributeType::kNull;
    case ValueTag::kFalse:
    case ValueTag::kTrue:
      return AttributeType::kBool;
    case ValueTag::kString:
      return AttributeType::kString;
    case ValueTag::kBinary:
      return AttributeType::kBinary;
    case ValueTag::kNumber:
    case ValueTag::kBigNumber:
      return AttributeType::kNumber;
    case ValueTag::kStringSet:
      return AttributeType::kStringSet;
    case ValueTag::kNumberSet:
      return AttributeType::kNumberSet;
    case ValueTag::kBinarySet:
      return AttributeType::kBinarySet;
    case ValueTag::kList:
      return AttributeType::kList;
    case ValueTag::kMap:
      return AttributeType::kMap;
  }
  return AttributeType::kNull;
}

Decimal ValueView::number() const {
  std::uint64_t exponent = 0;
  const char* at = get_varint(encoded_.data() + 1, exponent);
  bool negative = false;
  unsigned __int128 coefficient = 0;
  if (tag() == ValueTag::kNumber) {
    std::uint64_t zigzagged = 0;
    get_varint(at, zigzagged);
    const std::int64_t with_sign = unzigzag(zigzagged);
    negative = with_sign < 0;
    const auto magnitude = static_cast<std::uint64_t>(with_sign);
    coefficient = negative ? std::uint64_t{0} - magnitude : magnitude;
  } else {
    negative = *at++ != 0;
    std::memcpy(&coefficient, at, sizeof coefficient);
  }
  return Decimal::of(negative, coefficient, unzigzag(exponent)).value();
}

AttributeValue ValueView::to_value(const AttributeNames& names) const {
  AttributeValue value;
  value.type = type();
  switch (value.type) {
    case AttributeType::kNull:
      return value;
    case AttributeType::kBool:
      value.boolean = tag() == ValueTag::kTrue;
      return value;
    case AttributeType::kString:
    case AttributeType::kBinary:
      value.bytes = bytes();
      return value;
    case AttributeType::kNumber:
      value.number = number();
      return value;
    default:
      break;
  }
  std::uint64_t size = 0;
  std::uint64_t count = 0;
  const char* at = get_varint(encoded_.data() + 1, size);
  at = get_varint(at, count);
  if (value.type == AttributeType::kList) {
    unpack_list(at, count, names, value.list);
  } else if (value.type == AttributeType::kMap) {
    unpack_map(at, count, names, value.map);
  } else if (value.type == AttributeType::kNumberSet) {
    unpack_number_set(at, count, value.number_set);
  } else {
    unpack_bytes_set(at, count, value.bytes_set);
  }
  return value;
}

bool AttributeReader::next() {
  if (at_ == end_) return false;
  attribute_ = take_attribute(at_, *names_);
  return true;
}

const char* detail::skip_rare_value(const char* in) {
  switch (static_cast<ValueTag>(*in++)) {
    case ValueTag::kNull:
    case ValueTag::kFalse:
    case ValueTag::kTrue:
      return in;
    case ValueTag::kBigNumber: {
      std::uint64_t exponent = 0;
      return get_varint(in, exponent) + 1 + sizeof(unsigned __int128);
    }
    default:
      take_sized(in);
      return in;
  }
}

std::optional<ValueView> find_attribute(std::string_view encoded, std::string_view name, const AttributeNames& names) {
  for (AttributeReader reader(encoded, names); reader.next();) {
    if (reader.attribute().name == name) return reader.attribute().value;
  }
  return std::nullopt;
}

bool contains_attributes(std::string_view whole, std::string_view part, const AttributeNames& names) {
  if (whole.starts_with(part)) return true;  // a repeat as it came, with or without stamps behind it
  const Containment in_order = compare_in_order(whole, part);
  if (in_order != Containment::kUnknown) return in_order == Containment::kContained;
  // Another order: sorted, so that the time stays bounded for items of many attributes.
  const std::vector<NamedValue> stored = sorted_by_name(whole, names);
  const std::vector<NamedValue> wanted = sorted_by_name(part, names);
  return std::includes(stored.begin(), stored.end(), wanted.begin(), wanted.end());
}

void append_name(Bytes& out, std::string_view name, AttributeNames& names) {
  const NameId id = names.intern(name);
  append_varint(out, id.value);
  if (id == NameId{}) append_sized(out, name);
}

void append_value(Bytes& out, const AttributeValue& value, AttributeNames& names) {
  switch (value.type) {
    case AttributeType::kNull:
      append_tag(out, ValueTag::kNull);
      return;
    case AttributeType::kBool:
      append_tag(out, value.boolean ? ValueTag::kTrue : ValueTag::kFalse);
      return;
    case AttributeType::kString:
      append_string_value(out, value.bytes);
      return;
    case AttributeType::kBinary:
      append_tag(out, ValueTag::kBinary);
      append_sized(out, value.bytes);
      return;
    case AttributeType::kNumber:
      append_number_value(out, value.number);
      return;
    case AttributeType::kStringSet:
      append_elements(out, ValueTag::kStringSet, value.bytes_set, append_sized);
      return;
    case AttributeType::kBinarySet:
      append_elements(out, ValueTag::kBinarySet, value.bytes_set, append_sized);
      return;
    case AttributeType::kNumberSet:
      append_elements(out, ValueTag::kNumberSet, value.number_set, append_number_value);
      return;
    case AttributeType::kList:
      append_elements(out, ValueTag::kList, value.list, [&names](Bytes& payload, const AttributeValue& element) {
        append_value(payload, element, names);
      });
      return;
    case AttributeType::kMap:
      append_elements(out, ValueTag::kMap, value.map, [&names](Bytes& payload, const auto& named) {
        append_name(payload, named.first, names);
        append_value(payload, named.second, names);
      });
      return;
  }
}

void append_string_value(Bytes& out, std::string_view text) {
  append_tag(out, ValueTag::kString);
  append_sized(out, text);
}

void append_number_value(Bytes& out, const Decimal& number) {
  constexpr auto kInt64Max = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const unsigned __int128 coefficient = number.coefficient();
  if (coefficient <= kInt64Max + (number.negative() ? 1 : 0)) {
    const auto magnitude = static_cast<std::uint64_t>(coefficient);
    char buffer[kNumberValueSizeBytesMax];
    const auto with_sign = static_cast<std::int64_t>(number.negative() ? -magnitude : magnitude);
    out.append(buffer, put_number_value(buffer, with_sign, number.exponent()));
    return;
  }
  append_tag(out, ValueTag::kBigNumber);
  append_varint(out, zigzag(number.exponent()));
  out.push_back(static_cast<char>(number.negative() ? 1 : 0));
  out.append(reinterpret_cast<const char*>(&coefficient), sizeof coefficient);
}

char* put_string_value(char* out, std::string_view text) {
  *out++ = static_cast<char>(ValueTag::kString);
  out = put_varint(out, text.size());
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

char* put_number_value(char* out, std::int64_t coefficient, std::int32_t exponent) {
  if (coefficient == 0) exponent = 0;
  while (coefficient != 0 && coefficient % 10 == 0) {
    coefficient /= 10;
    ++exponent;
  }
  *out++ = static_cast<char>(ValueTag::kNumber);
  out = put_varint(out, zigzag(exponent));
  return put_varint(out, zigzag(coefficient));
}

std::size_t value_size_bytes(ValueView value, const AttributeNames& names) {
  switch (value.tag()) {
    case ValueTag::kNull:
    case ValueTag::kFalse:
    case ValueTag::kTrue:
      return 1;
    case ValueTag::kString:
    case ValueTag::kBinary:
      return value.bytes().size();
    case ValueTag::kNumber:
    case ValueTag::kBigNumber:
      return number_size_bytes(value.number());
    default:
      return value_size_bytes(value.to_value(names));
  }
}

}  // namespace drover::model

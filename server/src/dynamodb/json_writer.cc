#include "dynamodb/json_writer.h"

#include <array>
#include <charconv>

#include "drover/model/bytes.h"
#include "dynamodb/base64.h"

namespace drover::server {
namespace {

using model::AttributeType;
using model::AttributeValue;
using model::ValueTag;
using model::ValueView;

/// Which bytes cannot stand in a JSON string as they are.
constexpr auto kEscaped = [] {
  std::array<bool, 256> escaped{};
  for (std::size_t c = 0; c < 0x20; ++c) escaped[c] = true;
  escaped['"'] = escaped['\\'] = true;
  return escaped;
}();

void append_escape(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  static constexpr std::string_view kHex = "0123456789abcdef";
  out += "\\u00";
  out += kHex[static_cast<unsigned char>(c) >> 4];
  out += kHex[c & 0xf];
}

void append_json_number(std::string& out, const model::Decimal& number) {
  out += '"';
  number.append_text(out);
  out += '"';
}

void append_json_binary(std::string& out, std::string_view bytes) {
  out += '"';
  append_base64(out, bytes);
  out += '"';
}

/// `["a","b"]`, each element through `append`.
template <typename Elements, typename Append>
void append_json_array(std::string& out, const Elements& elements, Append append) {
  out += '[';
  bool first = true;
  for (const auto& element : elements) {
    if (!first) out += ',';
    first = false;
    append(out, element);
  }
  out += ']';
}

/// An encoded set, list or map: how many elements, and where the first one begins.
struct Elements {
  explicit Elements(ValueView value) {
    std::uint64_t size = 0;
    at = model::get_varint(value.encoded().data() + 1, size);
    end = at + size;
    at = model::get_varint(at, count);
  }
  const char* at = nullptr;
  const char* end = nullptr;
  std::uint64_t count = 0;
};

/// The elements of an encoded list or number set.
ValueView take_value(const char*& at) {
  const char* begin = at;
  at = model::skip_value(begin);
  return ValueView({begin, static_cast<std::size_t>(at - begin)});
}

std::string_view take_bytes(const char*& at) {
  std::uint64_t size = 0;
  const char* begin = model::get_varint(at, size);
  at = begin + size;
  return {begin, static_cast<std::size_t>(size)};
}

template <typename AppendNext>
void append_json_elements(std::string& out, ValueView value, AppendNext append_next) {
  Elements elements(value);
  out += '[';
  for (std::uint64_t i = 0; i < elements.count; ++i) {
    if (i > 0) out += ',';
    append_next(elements.at);
  }
  out += ']';
}

void append_json_map(std::string& out, ValueView value, const model::AttributeNames& names) {
  const Elements elements(value);
  out += '{';
  bool first = true;
  model::AttributeReader reader({elements.at, static_cast<std::size_t>(elements.end - elements.at)}, names);
  while (reader.next()) {
    if (!first) out += ',';
    first = false;
    append_json_string(out, reader.attribute().name);
    out += ':';
    append_json_value(out, reader.attribute().value, names);
  }
  out += '}';
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  append_json_escaped(out, text);
  out += '"';
}

void append_json_escaped(std::string& out, std::string_view text) {
  const char* begin = text.data();
  const char* const end = begin + text.size();
  for (const char* at = begin; at != end; ++at) {
    if (!kEscaped[static_cast<unsigned char>(*at)]) continue;
    out.append(begin, at);
    append_escape(out, *at);
    begin = at + 1;
  }
  out.append(begin, end);
}

void append_json_integer(std::string& out, std::uint64_t value) {
  std::array<char, 20> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
}

void append_json_value(std::string& out, const AttributeValue& value) {
  out += "{\"";
  out += model::wire_name(value.type);
  out += "\":";
  switch (value.type) {
    case AttributeType::kNull:
      out += "true";
      break;
    case AttributeType::kBool:
      out += value.boolean ? "true" : "false";
      break;
    case AttributeType::kString:
      append_json_string(out, value.bytes);
      break;
    case AttributeType::kBinary:
      append_json_binary(out, value.bytes);
      break;
    case AttributeType::kNumber:
      append_json_number(out, value.number);
      break;
    case AttributeType::kStringSet:
      append_json_array(out, value.bytes_set, append_json_string);
      break;
    case AttributeType::kBinarySet:
      append_json_array(out, value.bytes_set, append_json_binary);
      break;
    case AttributeType::kNumberSet:
      append_json_array(out, value.number_set, append_json_number);
      break;
    case AttributeType::kList:
      append_json_array(out, value.list,
                        [](std::string& to, const AttributeValue& element) { append_json_value(to, element); });
      break;
    case AttributeType::kMap:
      append_json_item(out, value.map);
      break;
  }
  out += '}';
}

void append_json_value(std::string& out, ValueView value, const model::AttributeNames& names) {
  switch (value.tag()) {
    case ValueTag::kString:  // the two that readings consist of, with as few appends as can be
      out += "{\"S\":\"";
      append_json_escaped(out, value.bytes());
      out += "\"}";
      return;
    case ValueTag::kNumber:
    case ValueTag::kBigNumber:
      out += "{\"N\":\"";
      value.number().append_text(out);
      out += "\"}";
      return;
    case ValueTag::kNull:
      out += "{\"NULL\":true";
      break;
    case ValueTag::kFalse:
      out += "{\"BOOL\":false";
      break;
    case ValueTag::kTrue:
      out += "{\"BOOL\":true";
      break;
    case ValueTag::kBinary:
      out += "{\"B\":";
      append_json_binary(out, value.bytes());
      break;
    case ValueTag::kStringSet:
      out += "{\"SS\":";
      append_json_elements(out, value, [&](const char*& at) { append_json_string(out, take_bytes(at)); });
      break;
    case ValueTag::kBinarySet:
      out += "{\"BS\":";
      append_json_elements(out, value, [&](const char*& at) { append_json_binary(out, take_bytes(at)); });
      break;
    case ValueTag::kNumberSet:
      out += "{\"NS\":";
      append_json_elements(out, value, [&](const char*& at) { append_json_number(out, take_value(at).number()); });
      break;
    case ValueTag::kList:
      out += "{\"L\":";
      append_json_elements(out, value, [&](const char*& at) { append_json_value(out, take_value(at), names); });
      break;
    case ValueTag::kMap:
      out += "{\"M\":";
      append_json_map(out, value, names);
      break;
  }
  out += '}';
}

void append_json_item(std::string& out, const model::Item& item) {
  out += '{';
  bool first = true;
  for (const auto& [name, value] : item) {
    if (!first) out += ',';
    first = false;
    append_json_string(out, name);
    out += ':';
    append_json_value(out, value);
  }
  out += '}';
}

}  // namespace drover::server

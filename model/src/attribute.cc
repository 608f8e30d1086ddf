#include "drover/model/attribute.h"

#include <array>

namespace drover::model {
namespace {

constexpr std::array<std::string_view, 10> kWireNames{"NULL", "BOOL", "S", "B", "N", "SS", "NS", "BS", "L", "M"};

// What DynamoDB charges for a list or map, and for each element or pair of one.
constexpr std::size_t kDocumentSizeBytes = 3;
constexpr std::size_t kDocumentElementSizeBytes = 1;

}  // namespace

std::string_view wire_name(AttributeType type) {
  return kWireNames[static_cast<std::size_t>(type)];
}

AttributeValue AttributeValue::null() {
  return {};
}

AttributeValue AttributeValue::of_bool(bool value) {
  AttributeValue result;
  result.type = AttributeType::kBool;
  result.boolean = value;
  return result;
}

AttributeValue AttributeValue::string(std::string value) {
  AttributeValue result;
  result.type = AttributeType::kString;
  result.bytes = std::move(value);
  return result;
}

AttributeValue AttributeValue::binary(Bytes value) {
  AttributeValue result;
  result.type = AttributeType::kBinary;
  result.bytes = std::move(value);
  return result;
}

AttributeValue AttributeValue::of_number(Decimal value) {
  AttributeValue result;
  result.type = AttributeType::kNumber;
  result.number = value;
  return result;
}

std::size_t item_size_bytes(const Item& item) {
  std::size_t size = 0;
  for (const auto& [name, value] : item) size += name.size() + value_size_bytes(value);
  return size;
}

std::size_t number_size_bytes(const Decimal& number) {
  return (number.digits() + 1) / 2 + 1 + (number.negative() ? 1 : 0);
}

std::size_t value_size_bytes(const AttributeValue& value) {
  std::size_t size = 0;
  switch (value.type) {
    case AttributeType::kNull:
    case AttributeType::kBool:
      return 1;
    case AttributeType::kString:
    case AttributeType::kBinary:
      return value.bytes.size();
    case AttributeType::kNumber:
      return number_size_bytes(value.number);
    case AttributeType::kStringSet:
    case AttributeType::kBinarySet:
      for (const std::string& element : value.bytes_set) size += element.size();
      return size;
    case AttributeType::kNumberSet:
      for (const Decimal& element : value.number_set) size += number_size_bytes(element);
      return size;
    case AttributeType::kList:
      for (const AttributeValue& element : value.list) size += kDocumentElementSizeBytes + value_size_bytes(element);
      return kDocumentSizeBytes + size;
    case AttributeType::kMap:
      return kDocumentSizeBytes + kDocumentElementSizeBytes * value.map.size() + item_size_bytes(value.map);
  }
  return size;
}

}  // namespace drover::model

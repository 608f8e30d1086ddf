#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "drover/model/bytes.h"
#include "drover/model/decimal.h"

namespace drover::model {

/// DynamoDB's attribute types.
enum class AttributeType : std::uint8_t {
  kNull,
  kBool,
  kString,
  kBinary,
  kNumber,
  kStringSet,
  kNumberSet,
  kBinarySet,
  kList,
  kMap
};

/// The type's letters on the wire: "NULL", "BOOL", "S", "B", "N", "SS", "NS", "BS", "L", "M".
std::string_view wire_name(AttributeType type);

/// One attribute's value as a tree that owns itself: what an API request carries and an expression works on.
///
/// Stored rows are never turned into this on the way of a record or of a plain Query; see value_view.h for those.
struct AttributeValue {
  using List = std::vector<AttributeValue>;
  using Map = std::map<std::string, AttributeValue, std::less<>>;

  AttributeType type = AttributeType::kNull;
  bool boolean = false;                ///< kBool.
  std::string bytes;                   ///< kString (UTF-8) and kBinary.
  Decimal number;                      ///< kNumber.
  std::vector<std::string> bytes_set;  ///< kStringSet and kBinarySet: sorted, no duplicates, not empty.
  std::vector<Decimal> number_set;     ///< kNumberSet: sorted, no duplicates, not empty.
  List list;                           ///< kList.
  Map map;                             ///< kMap.

  static AttributeValue null();
  static AttributeValue of_bool(bool value);
  static AttributeValue string(std::string value);
  static AttributeValue binary(Bytes value);
  static AttributeValue of_number(Decimal value);

  /// Deep equality: sets in any order, numbers by value.
  friend bool operator==(const AttributeValue&, const AttributeValue&) = default;
};

/// An item as API requests and expressions see it: all attributes, the key's too, by name.
using Item = AttributeValue::Map;

/// Item size by DynamoDB's rules (names and values; Developer Guide, "DynamoDB item sizes and formats"), in bytes.
std::size_t item_size_bytes(const Item& item);
std::size_t value_size_bytes(const AttributeValue& value);
std::size_t number_size_bytes(const Decimal& number);

}  // namespace drover::model

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "drover/model/attribute.h"
#include "drover/model/bytes.h"
#include "drover/model/names.h"

/// Attributes as bytes: how a row keeps them, and how they are read without being unpacked.
///
///     attributes = { name value }                         until the end of the bytes; each name once, in any order
///     name       = varint(0) varint(size) text            a name without an id
///                | varint(id)
///     value      = tag payload
///     tag        = one byte, ValueTag
///     payload    = kNull, kFalse, kTrue: nothing
///                | kString, kBinary: varint(size) bytes
///                | kNumber:    varint(zigzag(exponent)) varint(zigzag(coefficient with its sign))   fits an int64
///                | kBigNumber: varint(zigzag(exponent)) sign(0|1) coefficient(16 bytes, little-endian)
///                | kStringSet, kNumberSet, kBinarySet, kList: varint(size of what follows) varint(count) { element }
///                  (an element of a string or binary set is varint(size) bytes; of a number set and a list, a value)
///                | kMap: varint(size of what follows) varint(count) { name value }
///
/// A number that fits kNumber is never written as kBigNumber, and sets are sorted, so equal values have equal bytes
/// (maps and lists too, since maps are written in name order and names get ids once).
namespace drover::model {

enum class ValueTag : std::uint8_t {
  kNull = 0,
  kFalse = 1,
  kTrue = 2,
  kString = 3,
  kBinary = 4,
  kNumber = 5,
  kBigNumber = 6,
  kStringSet = 7,
  kNumberSet = 8,
  kBinarySet = 9,
  kList = 10,
  kMap = 11,
};

/// One encoded value; valid as long as the bytes it points into.
class ValueView {
 public:
  ValueView() = default;
  /// Requires: `encoded` is exactly one value (tag and payload).
  explicit ValueView(std::string_view encoded) : encoded_(encoded) {}

  ValueTag tag() const { return static_cast<ValueTag>(encoded_.front()); }
  AttributeType type() const;
  std::string_view encoded() const { return encoded_; }

  /// Requires: kString or kBinary.
  std::string_view bytes() const {
    std::uint64_t size = 0;
    const char* const at = get_varint(encoded_.data() + 1, size);
    return {at, size};
  }
  /// Requires: kNumber or kBigNumber.
  Decimal number() const;

  /// Unpacks into an owning tree.
  AttributeValue to_value(const AttributeNames& names) const;

 private:
  std::string_view encoded_;
};

struct AttributeView {
  std::string_view name;
  NameId id;  ///< NameId{} if the name stands in the row.
  ValueView value;
};

/// Walks encoded attributes: `for (AttributeReader r(bytes, names); r.next();) use(r.attribute());`
class AttributeReader {
 public:
  AttributeReader(std::string_view encoded, const AttributeNames& names)
      : at_(encoded.data()), end_(encoded.data() + encoded.size()), names_(&names) {}
  bool next();
  const AttributeView& attribute() const { return attribute_; }

 private:
  const char* at_;
  const char* end_;
  const AttributeNames* names_;
  AttributeView attribute_;
};

namespace detail {
const char* skip_rare_value(const char* in);
}

/// Position behind the encoded value that begins at `in`. Requires: our own bytes.
[[gnu::always_inline]] inline const char* skip_value(const char* in) {
  const auto tag = static_cast<ValueTag>(*in);
  std::uint64_t number = 0;
  if (tag == ValueTag::kNumber) return get_varint(get_varint(in + 1, number), number);
  if (tag == ValueTag::kString) {
    in = get_varint(in + 1, number);
    return in + number;
  }
  return detail::skip_rare_value(in);
}

/// An attribute's name.
struct RawName {
  NameId id;  ///< NameId{}: the name is `text`.
  std::string_view text;

  bool is(NameId wanted, std::string_view wanted_name) const {
    return id.value != 0 ? id == wanted : text == wanted_name;
  }
};

/// Which names stand in a row or are meant by a rule, as far as one word tells: a bit for each id below 32, and one for
/// all others. So most rows pass a rule without a look at their attributes.
class NameMask {
 public:
  static constexpr NameMask none() { return NameMask(0); }
  /// Of a row that nobody has looked at.
  static constexpr NameMask unknown() { return NameMask(kOthers); }

  void add(NameId id) { bits_ |= bit(id); }
  /// Whether the name is surely one of these.
  bool surely_has(NameId id) const { return (bits_ & bit(id) & ~kOthers) != 0; }
  /// Whether all of these are surely among the others.
  bool surely_within(NameMask others) const { return (bits_ & ~(others.bits_ & ~kOthers)) == 0; }
  /// Whether none of these can be among the others.
  bool surely_apart(NameMask others) const { return (bits_ & (others.bits_ | kOthers)) == 0; }

 private:
  static constexpr std::uint32_t kOthers = 1;
  explicit constexpr NameMask(std::uint32_t bits) : bits_(bits) {}
  static std::uint32_t bit(NameId id) {
    return id.value < 32 ? std::uint32_t{1} << id.value : kOthers;  // 0 is a name that stands as text
  }
  std::uint32_t bits_;
};

/// An encoded attribute as it lies in a row, its name not looked up.
struct RawAttribute : RawName {
  std::string_view encoded;  ///< Name and value.
  ValueView value;

  std::string_view name(const AttributeNames& names) const { return id.value != 0 ? names.name(id) : text; }
};

/// Takes the name at `at` and moves on to its value. Requires: our own bytes.
[[gnu::always_inline]] inline RawName take_raw_name(const char*& at) {
  RawName name;
  std::uint64_t number = 0;
  at = get_varint(at, number);
  name.id = NameId{static_cast<std::uint32_t>(number)};
  if (number == 0) [[unlikely]] {
    at = get_varint(at, number);
    name.text = {at, number};
    at += number;
  }
  return name;
}

/// Takes the attribute at `at` and moves on. Requires: our own bytes.
[[gnu::always_inline]] inline RawAttribute take_raw_attribute(const char*& at) {  // else it goes through memory
  RawAttribute attribute;
  const char* const begin = at;
  static_cast<RawName&>(attribute) = take_raw_name(at);
  const char* const value = at;
  at = skip_value(at);
  attribute.value = ValueView({value, static_cast<std::size_t>(at - value)});
  attribute.encoded = {begin, static_cast<std::size_t>(at - begin)};
  return attribute;
}

/// value_size_bytes() (attribute.h) of an encoded value.
std::size_t value_size_bytes(ValueView value, const AttributeNames& names);

/// The value of `name` in encoded attributes, if it is there.
std::optional<ValueView> find_attribute(std::string_view encoded, std::string_view name, const AttributeNames& names);

/// Whether every attribute of `part` is in `whole` with an equal value. (How an exact repeat is known.)
bool contains_attributes(std::string_view whole, std::string_view part, const AttributeNames& names);

/// An encoded kNumber: tag, exponent, coefficient.
inline constexpr std::size_t kNumberValueSizeBytesMax = 1 + 2 * kVarintSizeBytesMax;

void append_name(Bytes& out, std::string_view name, AttributeNames& names);
void append_value(Bytes& out, const AttributeValue& value, AttributeNames& names);
void append_string_value(Bytes& out, std::string_view text);
void append_number_value(Bytes& out, const Decimal& number);

/// Raw forms for the way of a record, which writes into a buffer with room: each returns the position behind.
char* put_string_value(char* out, std::string_view text);  ///< Room: text + 11 bytes.
/// Any coefficient: trailing zeros are moved into the exponent here. Requires: the number is in DynamoDB's range.
/// Room: kNumberValueSizeBytesMax.
char* put_number_value(char* out, std::int64_t coefficient, std::int32_t exponent);

}  // namespace drover::model

#pragma once

#include <cstdint>
#include <string_view>

#include "drover/model/attribute.h"
#include "drover/model/bytes.h"
#include "drover/model/limits.h"
#include "drover/model/schema.h"
#include "drover/model/status.h"

/// Keys as bytes whose unsigned order is DynamoDB's order of the values: text and binary as they are, numbers as
/// Decimal::append_ordered() writes them. Everything behind decoding compares keys with memcmp and nothing else.
namespace drover::model {

using KeyHash = std::uint64_t;

/// Hash of an encoded partition key: XXH3-64, seed 0. Placement and disk keys lean on it: it never changes.
KeyHash hash_key(std::string_view partition_key);

/// Which of the kSegments segments a hash belongs to: its upper bits.
inline std::uint32_t segment_of(KeyHash hash) {
  return static_cast<std::uint32_t>(hash >> (64 - kSegmentBits));
}

/// Appends the encoded form of a key attribute. Fails with kInvalid and DynamoDB's words on a wrong type, an empty
/// string or binary, and on more than `size_bytes_max` bytes.
Status append_key(Bytes& out, const KeyAttribute& attribute, const AttributeValue& value, std::size_t size_bytes_max);

/// The value back from its encoded form.
AttributeValue key_value(KeyType type, std::string_view encoded);

/// The same as an encoded value (value_view.h), appended to `out`.
void append_key_as_value(Bytes& out, KeyType type, std::string_view encoded);

/// Encoded key of an index entry behind its partition key: parts joined so that memcmp of the whole orders by the first
/// part, then the second, …. A part's 0x00 becomes 0x00 0xff and every part ends in 0x00 0x01.
void append_key_part(Bytes& out, std::string_view part);
/// The same in a buffer with room for key_part_room_bytes(part.size()); returns the position behind.
char* put_key_part(char* out, std::string_view part);
constexpr std::size_t key_part_room_bytes(std::size_t part_size) {
  return 2 * part_size + 2;
}
/// Takes the next part off `joined`, unescaped. Requires: append_key_part() wrote it.
Bytes take_key_part(std::string_view& joined);

/// Brings a sort key or a Query bound to the table's canonical time form: the text behind the prefix is read as a time
/// and written with fixed precision. Text that does not carry the prefix, or no time behind it, stays as it is.
/// `round_up`: whether a text with more digits than the precision is moved up to the next representable time (bounds of
/// >= and <) or cut (keys, bounds of <= and >): so a bound between two representable times parts them rightly.
Bytes canonical_time_key(const TimeSortKey& time, std::string_view text, bool round_up = false);

/// The sort key of a moment, in the table's canonical time form.
Bytes time_key(const TimeSortKey& time, TimeNs at);

}  // namespace drover::model

#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

#include "drover/model/bytes.h"
#include "drover/model/key.h"
#include "drover/model/schema.h"
#include "drover/model/version.h"

/// What stands under which key on disk. Integers in keys are big-endian, so that the keys' order is theirs.
///
///     meta    "format"                    = varint(kDiskFormat)
///             "cut"                       = varint(number of the last cut)
///             "next table"                = varint(id of the next new table; none is given twice)
///             "probe"                     = nothing: written to see whether anything can be
///             "name/" id(4)               = attribute name
///             "source/" id(2)             = source position
///             "table/" id(4)              = varint(ms when it was created) varint(size) table schema
///                                           varint(number of the next index) { varint(2 * its number + whether it was
///                                           made with the table) }    of each global index
///                                           varint(size) TTL attribute varint(ms to retain)    empty, 0: for ever
///             "filled/" space             = nothing: a global index that came later has all items of its table
///     blocks  space hash(8) part(partition key) first sort key = columns (columns.h)
///     tails   space segment(2)            = { varint(size) partition key tail late rows }
///     log     interval(4) sequence(8)     = table(4) varint(size) partition key row image
///     tail    = varint(size) columns      size 0: no rows
///     late rows = varint(0) | varint(size) columns zigzag(items) zigzag(bytes)   rows that belong in front of the tail
///                                         or among it, or hide one there; by how much the collection is larger for
///                                         them
///     space   = table(4) index(2)         index 0: the table itself, else a global index's number
///     part(k) = k as put_key_part() writes it
///
/// No key names a shard: splitting moves nothing on disk.
namespace drover::store {

/// What this Drover writes, and all that it reads. (1 had no rows without a version, 2 no late rows.)
inline constexpr std::uint64_t kDiskFormat = 3;

inline constexpr std::string_view kFormatKey = "format";
inline constexpr std::string_view kCutKey = "cut";
inline constexpr std::string_view kNextTableKey = "next table";
inline constexpr std::string_view kProbeKey = "probe";
inline constexpr std::string_view kNamePrefix = "name/";
inline constexpr std::string_view kSourcePrefix = "source/";
inline constexpr std::string_view kTablePrefix = "table/";
inline constexpr std::string_view kFilledPrefix = "filled/";

struct SpaceId {
  std::uint32_t table = 0;
  std::uint16_t index = 0;
  friend auto operator<=>(const SpaceId&, const SpaceId&) = default;
};

template <typename Integer>
void append_big_endian(model::Bytes& out, Integer value) {
  for (int shift = 8 * (static_cast<int>(sizeof value) - 1); shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(value >> shift));
  }
}
/// Takes an integer off `in`. Requires: it is long enough.
template <typename Integer>
Integer take_big_endian(std::string_view& in) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value = static_cast<Integer>(value << 8 | static_cast<unsigned char>(in[i]));
  }
  in.remove_prefix(sizeof value);
  return value;
}

template <typename Integer>
model::Bytes numbered_key(std::string_view prefix, Integer number) {
  model::Bytes key(prefix);
  append_big_endian(key, number);
  return key;
}

model::Bytes space_key(SpaceId space);
model::Bytes filled_key(SpaceId space);
/// Everything of a block's key in front of its first sort key.
model::Bytes collection_key(SpaceId space, model::KeyHash hash, std::string_view partition_key);
/// Behind all keys of a collection's blocks. Requires: `collection` is what collection_key() gives.
model::Bytes collection_end_key(model::Bytes collection);
/// Where the blocks of a segment begin; `segment` may be kSegments: where those of the space end.
model::Bytes segment_begin_key(SpaceId space, std::uint32_t segment);
model::Bytes tails_key(SpaceId space, std::uint32_t segment);
model::Bytes log_key(std::uint32_t interval, std::uint64_t sequence);

/// Reads what append_… wrote, checking every size: bytes from a disk.
class DiskReader {
 public:
  explicit DiskReader(std::string_view bytes) : rest_(bytes) {}
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }
  std::uint64_t varint();
  /// varint(size) and as many bytes.
  std::string_view bytes();
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};
void append_bytes(model::Bytes& out, std::string_view bytes);

model::Bytes encode(const model::TableSchema& schema);
std::optional<model::TableSchema> decode_schema(std::string_view encoded);
model::Bytes encode(const model::Retention& retention);
std::optional<model::Retention> decode_retention(std::string_view encoded);
model::Bytes encode(const model::SourcePosition& position);
/// `source` is what the key says.
std::optional<model::SourcePosition> decode_position(model::SourceId source, std::string_view encoded);

}  // namespace drover::store

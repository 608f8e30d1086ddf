#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "drover/model/bytes.h"
#include "drover/model/version.h"

/// One item of a collection as bytes: what decoding writes, a batch carries, a block stores and a reader reads.
///
///     row   = flags(1 byte) [version(16 bytes)] varint(size of the sort key) sort-key [origins] attributes
///     flags = bit 0: tombstone (the item is deleted as of this version; no attributes)
///             bit 1: no version (an index entry: whoever sends it knows which one counts)
///             bit 2: unites: what else is known of the item is kept beside it; otherwise the row is all of the item
///             bit 3: origins: which versions the attributes are of; otherwise all are of the row's
///
/// The sort key is encoded as in key.h (empty in a table without one; joined parts in an index), the attributes as in
/// value_view.h. Key attributes do not stand among them. Origins look like one attribute more, a binary without a name,
/// to whoever only passes rows on; what stands in them is the store's (store/src/united_item.h).
namespace drover::model {

inline constexpr std::uint8_t kRowTombstone = 1;
inline constexpr std::uint8_t kRowUnversioned = 2;
inline constexpr std::uint8_t kRowUnites = 4;
inline constexpr std::uint8_t kRowOrigins = 8;
inline constexpr std::size_t kRowHeaderSizeBytes = 1 + sizeof(Version);  ///< The longer one.

class RowView {
 public:
  RowView() = default;
  /// Requires: `bytes` is exactly one row.
  [[gnu::always_inline]] explicit RowView(std::string_view bytes) : bytes_(bytes) {
    std::uint64_t size = 0;
    const char* at = get_varint(bytes.data() + (versioned() ? kRowHeaderSizeBytes : 1), size);
    sort_key_ = std::string_view(at, size);
  }

  std::string_view bytes() const { return bytes_; }
  std::uint8_t flags() const { return static_cast<std::uint8_t>(bytes_[0]); }
  bool versioned() const { return (flags() & kRowUnversioned) == 0; }
  /// Version{}: it has none.
  Version version() const {
    Version version;
    if (versioned()) std::memcpy(&version, bytes_.data() + 1, sizeof version);
    return version;
  }
  bool tombstone() const { return (flags() & kRowTombstone) != 0; }
  bool unites() const { return (flags() & kRowUnites) != 0; }
  std::string_view sort_key() const { return sort_key_; }
  std::string_view attributes() const {
    const std::string_view all = body();
    if ((flags() & kRowOrigins) == 0) [[likely]]
      return all;
    const char* const begin = behind(origins());
    return {begin, static_cast<std::size_t>(behind(all) - begin)};
  }
  /// All that stands behind the sort key: origins, if there are any, and attributes.
  std::string_view body() const {
    const char* begin = behind(sort_key_);
    return {begin, static_cast<std::size_t>(behind(bytes_) - begin)};
  }
  /// What is in the binary of that name. Empty: there are none.
  std::string_view origins() const {
    if ((flags() & kRowOrigins) == 0) return {};
    std::uint64_t size = 0;
    const char* const at = get_varint(behind(sort_key_) + kOriginsHead.size(), size);
    return {at, size};
  }

  /// What stands in front of varint(size) bytes: no name, and ValueTag::kBinary.
  static constexpr std::string_view kOriginsHead{"\0\0\4", 3};

 private:
  static const char* behind(std::string_view bytes) { return bytes.data() + bytes.size(); }

  std::string_view bytes_;
  std::string_view sort_key_;
};

/// Writes flags and, unless they say that there is none, the version; room: kRowHeaderSizeBytes.
inline char* put_row_header(char* out, Version version, std::uint8_t flags) {
  *out++ = static_cast<char>(flags);
  if ((flags & kRowUnversioned) != 0) return out;
  std::memcpy(out, &version, sizeof version);
  return out + sizeof version;
}

/// Writes everything of a row in front of its attributes; room: kRowHeaderSizeBytes + 10 + the sort key.
inline char* put_row_head(char* out, Version version, std::uint8_t flags, std::string_view sort_key) {
  out = put_varint(put_row_header(out, version, flags), sort_key.size());
  std::memcpy(out, sort_key.data(), sort_key.size());
  return out + sort_key.size();
}

inline void append_row(Bytes& out, Version version, std::uint8_t flags, std::string_view sort_key,
                       std::string_view attributes) {
  char header[kRowHeaderSizeBytes];
  out.append(header, static_cast<std::size_t>(put_row_header(header, version, flags) - header));
  append_varint(out, sort_key.size());
  out.append(sort_key).append(attributes);
}

}  // namespace drover::model

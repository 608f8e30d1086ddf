#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "drover/model/bytes.h"
#include "drover/model/version.h"

/// One item of a collection as bytes: what decoding writes, a batch carries, a block stores and a reader reads.
///
///     row   = version(16 bytes) flags(1 byte) varint(size of the sort key) sort-key attributes
///     flags = bit 0: tombstone (the item is deleted as of this version; no attributes)
///
/// The sort key is encoded as in key.h (empty in a table without one; joined parts in an index), the attributes as in
/// value_view.h. Key attributes do not stand among them.
namespace drover::model {

inline constexpr std::uint8_t kRowTombstone = 1;
inline constexpr std::size_t kRowHeaderSizeBytes = sizeof(Version) + 1;

class RowView {
 public:
  RowView() = default;
  /// Requires: `bytes` is exactly one row.
  [[gnu::always_inline]] explicit RowView(std::string_view bytes) : bytes_(bytes) {
    std::uint64_t size = 0;
    const char* at = get_varint(bytes.data() + kRowHeaderSizeBytes, size);
    sort_key_ = std::string_view(at, size);
  }

  std::string_view bytes() const { return bytes_; }
  Version version() const {
    Version version;
    std::memcpy(&version, bytes_.data(), sizeof version);
    return version;
  }
  bool tombstone() const { return (bytes_[sizeof(Version)] & kRowTombstone) != 0; }
  std::string_view sort_key() const { return sort_key_; }
  std::string_view attributes() const {
    const char* begin = sort_key_.data() + sort_key_.size();
    return {begin, static_cast<std::size_t>(bytes_.data() + bytes_.size() - begin)};
  }

 private:
  std::string_view bytes_;
  std::string_view sort_key_;
};

/// Writes everything of a row in front of its sort key; room: kRowHeaderSizeBytes + 10.
inline char* put_row_prefix(char* out, Version version, std::uint8_t flags, std::size_t sort_key_size) {
  std::memcpy(out, &version, sizeof version);
  out[sizeof version] = static_cast<char>(flags);
  return put_varint(out + kRowHeaderSizeBytes, sort_key_size);
}

/// Writes everything of a row in front of its attributes; room: kRowHeaderSizeBytes + 10 + the sort key.
inline char* put_row_head(char* out, Version version, std::uint8_t flags, std::string_view sort_key) {
  out = put_row_prefix(out, version, flags, sort_key.size());
  std::memcpy(out, sort_key.data(), sort_key.size());
  return out + sort_key.size();
}

inline void append_row(Bytes& out, Version version, std::uint8_t flags, std::string_view sort_key,
                       std::string_view attributes) {
  out.append(reinterpret_cast<const char*>(&version), sizeof version);
  out.push_back(static_cast<char>(flags));
  append_varint(out, sort_key.size());
  out.append(sort_key).append(attributes);
}

}  // namespace drover::model

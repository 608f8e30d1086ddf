#include "record_batch_reader.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "big_endian.h"
#include "crc32c.h"

namespace drover::ingest {
namespace {

using Outcome = RecordBatchReader::Outcome;

// The header of a record batch: where each field begins. The size counts what stands behind itself.
constexpr std::size_t kBaseOffset = 0;
constexpr std::size_t kSize = 8;
constexpr std::size_t kBehindSize = 12;
constexpr std::size_t kVersion = 16;
constexpr std::size_t kChecksum = 17;
constexpr std::size_t kAttributes = 21;  // the checksum is of everything from here on
constexpr std::size_t kLastOffsetDelta = 23;
constexpr std::size_t kBaseTimestamp = 27;
constexpr std::size_t kMaxTimestamp = 35;
constexpr std::size_t kRecordCount = 57;
constexpr std::size_t kHeaderSizeBytes = 61;

constexpr char kVersionKnown = 2;
constexpr std::int16_t kCodecMask = 0x07;
constexpr std::int16_t kAppendTime = 0x08;
constexpr std::int16_t kControl = 0x20;

/// What a decompression buffer begins with: several batches of a usual size.
constexpr std::size_t kBufferSizeBytes = std::size_t{2} * 1024 * 1024;

enum class Header : std::uint8_t { kWhole, kCutShort, kMalformed, kOtherVersion };

/// The batch that `records` begins with; `batch` is set if it is whole.
Header first_batch(std::string_view records, std::string_view& batch) {
  if (records.size() <= kVersion) return Header::kCutShort;
  const auto size = big_endian<std::int32_t>(records.data() + kSize);
  if (records[kVersion] != kVersionKnown) return Header::kOtherVersion;
  if (size < static_cast<std::int32_t>(kHeaderSizeBytes - kBehindSize)) return Header::kMalformed;
  const std::size_t whole_size = kBehindSize + static_cast<std::size_t>(size);
  if (whole_size > records.size()) return Header::kCutShort;
  batch = records.substr(0, whole_size);
  const auto base_offset = big_endian<std::int64_t>(batch.data() + kBaseOffset);
  const auto last_offset_delta = big_endian<std::int32_t>(batch.data() + kLastOffsetDelta);
  constexpr std::int64_t kBaseOffsetMax =
      std::numeric_limits<std::int64_t>::max() - std::numeric_limits<std::int32_t>::max() - 1;
  const bool sane = base_offset >= 0 && base_offset <= kBaseOffsetMax && last_offset_delta >= 0;
  return sane ? Header::kWhole : Header::kMalformed;
}

/// One behind the batch's last offset. Requires: first_batch() found it whole.
std::int64_t end_of(std::string_view batch) {
  return big_endian<std::int64_t>(batch.data() + kBaseOffset) +
         big_endian<std::int32_t>(batch.data() + kLastOffsetDelta) + 1;
}

/// Reads a record's fields; one that would pass the end reads as nothing, and failed() says so from then on.
class RecordCursor {
 public:
  explicit RecordCursor(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  bool failed() const { return at_ == nullptr; }
  const char* at() const { return at_; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

  /// A zigzag varint.
  std::int64_t varint() {
    if (at_ != end_ && static_cast<unsigned char>(*at_) < 0x80) {
      const std::uint64_t byte = static_cast<unsigned char>(*at_++);
      return static_cast<std::int64_t>(byte >> 1) ^ -static_cast<std::int64_t>(byte & 1);
    }
    return long_varint();
  }
  /// Bytes with their size in front; -1: nothing.
  std::optional<std::string_view> bytes() {
    const std::int64_t size = varint();
    if (failed() || size == -1) return std::nullopt;
    if (size < 0 || static_cast<std::uint64_t>(size) > left()) {
      fail();
      return std::nullopt;
    }
    const std::string_view bytes(at_, static_cast<std::size_t>(size));
    at_ += size;
    return bytes;
  }
  void skip(std::size_t size) { size <= left() ? void(at_ += size) : fail(); }

 private:
  void fail() { at_ = end_ = nullptr; }
  std::int64_t long_varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) break;
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
    }
    fail();
    return 0;
  }

  const char* at_;
  const char* end_;
};

}  // namespace

std::optional<std::int64_t> end_of_whole_batches(std::string_view records) {
  std::optional<std::int64_t> end;
  for (std::string_view batch; first_batch(records, batch) == Header::kWhole; records.remove_prefix(batch.size())) {
    end = end_of(batch);
  }
  return end;
}

Outcome RecordBatchReader::read(std::size_t records_max, std::vector<model::RecordView>& views) {
  views.clear();
  make_room();
  Outcome outcome = Outcome::kRecords;
  while (outcome == Outcome::kRecords && views.size() < records_max) {
    if (batch_.count == 0 && !malformed_) outcome = open_batch(views.empty());
    if (outcome != Outcome::kRecords) break;
    malformed_ = malformed_ || !read_records(records_max, views);
    if (malformed_) outcome = Outcome::kMalformed;
  }
  return views.empty() ? outcome : Outcome::kRecords;
}

/// Lets go of what was viewed: what is left of a batch moves to the buffer's front, an unused buffer to the pool.
void RecordBatchReader::make_room() {
  if (buffer_used_ == 0) return;
  const std::less_equal<> before;
  const bool left = batch_.count > 0 && before(buffer_.data(), batch_.records.data()) &&
                    before(batch_.records.data(), buffer_.data() + buffer_used_);
  buffer_used_ = left ? batch_.records.size() : 0;
  if (left) {
    std::memmove(buffer_.data(), batch_.records.data(), buffer_used_);
    batch_.records = {buffer_.data(), buffer_used_};
  } else {
    pool_.give(std::exchange(buffer_, {}));
  }
}

/// Begins the next batch that has records to read; kDrained if there is none, or its place has to be made first.
Outcome RecordBatchReader::open_batch(bool buffer_may_move) {
  std::string_view batch;
  for (;; input_.remove_prefix(batch.size())) {
    switch (first_batch(input_, batch)) {
      case Header::kCutShort:
        return Outcome::kDrained;
      case Header::kMalformed:
        return Outcome::kMalformed;
      case Header::kOtherVersion:
        return Outcome::kUnusual;
      case Header::kWhole:
        break;
    }
    const std::int64_t end_offset = end_of(batch);
    if (end_offset <= next_offset_) continue;
    const char* const header = batch.data();
    if (crc32c(batch.substr(kAttributes)) != big_endian<std::uint32_t>(header + kChecksum)) return Outcome::kMalformed;
    const auto attributes = big_endian<std::int16_t>(header + kAttributes);
    const auto count = big_endian<std::int32_t>(header + kRecordCount);
    if (count < 0) return Outcome::kMalformed;
    if (count == 0 || (attributes & kControl) != 0) {
      next_offset_ = end_offset;
      continue;
    }
    Batch opened;
    opened.count = count;
    opened.base_offset = big_endian<std::int64_t>(header + kBaseOffset);
    opened.end_offset = end_offset;
    opened.base_timestamp_ms = big_endian<std::int64_t>(header + kBaseTimestamp);
    if ((attributes & kAppendTime) != 0) opened.append_timestamp_ms = big_endian<std::int64_t>(header + kMaxTimestamp);
    const Outcome outcome = decompress(static_cast<Codec>(attributes & kCodecMask), batch.substr(kHeaderSizeBytes),
                                       buffer_may_move, opened.records);
    if (outcome != Outcome::kRecords) return outcome;
    batch_ = opened;
    input_.remove_prefix(batch.size());
    return Outcome::kRecords;
  }
}

/// Views records of the begun batch; false: it is malformed.
bool RecordBatchReader::read_records(std::size_t records_max, std::vector<model::RecordView>& views) {
  while (batch_.count > 0 && views.size() < records_max) {
    RecordCursor batch(batch_.records);
    const std::int64_t size = batch.varint();
    if (batch.failed() || size < 0 || static_cast<std::uint64_t>(size) > batch.left()) return false;
    RecordCursor record({batch.at(), static_cast<std::size_t>(size)});
    record.skip(1);  // attributes, of which there are none yet
    const auto timestamp_delta = static_cast<std::uint64_t>(record.varint());
    const std::int64_t offset_delta = record.varint();
    model::RecordView view;
    view.key = record.bytes();
    view.value = record.bytes();
    if (record.failed() || offset_delta < 0 || offset_delta >= batch_.end_offset - batch_.base_offset) return false;
    view.offset.value = batch_.base_offset + offset_delta;
    view.timestamp_ms = batch_.append_timestamp_ms.value_or(
        static_cast<std::int64_t>(static_cast<std::uint64_t>(batch_.base_timestamp_ms) + timestamp_delta));
    batch.skip(static_cast<std::size_t>(size));
    batch_.records = {batch.at(), batch.left()};
    --batch_.count;
    if (view.offset.value < next_offset_) continue;
    next_offset_ = view.offset.value + 1;
    views.push_back(view);
  }
  if (batch_.count > 0) return true;
  if (!batch_.records.empty()) return false;
  next_offset_ = batch_.end_offset;
  return true;
}

/// kDrained: there is no room while the views of this read() are in use.
Outcome RecordBatchReader::decompress(Codec codec, std::string_view compressed, bool buffer_may_move,
                                      std::string_view& out) {
  if (codec == Codec::kNone) {
    out = compressed;
    return Outcome::kRecords;
  }
  if (buffer_.capacity() == 0) buffer_ = pool_.take(kBufferSizeBytes);
  for (;;) {
    char* const to = buffer_.data() + buffer_used_;
    const auto [outcome, size] = decompressor_.decompress(codec, compressed, to, buffer_.capacity() - buffer_used_);
    if (outcome == Decompressor::Outcome::kMalformed) return Outcome::kMalformed;
    if (outcome == Decompressor::Outcome::kDone) {
      out = {to, size};
      buffer_used_ += size;
      return Outcome::kRecords;
    }
    if (!buffer_may_move) return Outcome::kDrained;
    if (buffer_.capacity() >= kBatchSizeBytesMax) return Outcome::kUnusual;
    pool_.give(std::exchange(buffer_, pool_.take(2 * buffer_.capacity())));
    buffer_used_ = 0;
  }
}

}  // namespace drover::ingest

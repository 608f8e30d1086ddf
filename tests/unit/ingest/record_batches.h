#pragma once

#include <lz4frame.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "big_endian.h"
#include "crc32c.h"
#include "decompressor.h"
#include "drover/model/check.h"

namespace drover::ingest::test {

template <std::integral T>
std::string big_endian_bytes(T value) {
  const T swapped = byte_swapped(value);
  return {reinterpret_cast<const char*>(&swapped), sizeof swapped};
}

inline std::string varint(std::int64_t value) {
  auto rest = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
  std::string bytes;
  for (; rest >= 0x80; rest >>= 7) bytes += static_cast<char>(rest | 0x80);
  return bytes + static_cast<char>(rest);
}

struct BatchRecord {
  std::int32_t offset_delta = 0;
  std::optional<std::string> value = std::nullopt;
  std::optional<std::string> key = std::nullopt;
  std::int64_t timestamp_delta_ms = 0;
  std::string headers = varint(0);  ///< As they are written.
};

inline std::string record_bytes(const BatchRecord& record) {
  const auto sized = [](const std::optional<std::string>& bytes) {
    return bytes ? varint(static_cast<std::int64_t>(bytes->size())) + *bytes : varint(-1);
  };
  const std::string body = std::string(1, '\0') + varint(record.timestamp_delta_ms) + varint(record.offset_delta) +
                           sized(record.key) + sized(record.value) + record.headers;
  return varint(static_cast<std::int64_t>(body.size())) + body;
}

/// As a Java producer would (snappy in snappy-java's frames), or librdkafka where it differs.
inline std::string compress(Codec codec, const std::string& bytes, bool xerial = true) {
  std::string out;
  switch (codec) {
    case Codec::kNone:
      return bytes;
    case Codec::kGzip: {
      z_stream stream{};
      DROVER_CHECK(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
      out.resize(deflateBound(&stream, bytes.size()));
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(bytes.size());
      stream.next_out = reinterpret_cast<Bytef*>(out.data());
      stream.avail_out = static_cast<uInt>(out.size());
      DROVER_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib");
      out.resize(stream.total_out);
      deflateEnd(&stream);
      return out;
    }
    case Codec::kSnappy: {
      if (!xerial) {
        snappy::Compress(bytes.data(), bytes.size(), &out);
        return out;
      }
      constexpr std::size_t kBlockSizeBytes = 32 * 1024;
      out = std::string("\x82SNAPPY\0", 8) + big_endian_bytes<std::int32_t>(1) + big_endian_bytes<std::int32_t>(1);
      for (std::size_t begin = 0; begin < bytes.size(); begin += kBlockSizeBytes) {
        std::string block;
        const std::string_view part = std::string_view(bytes).substr(begin, kBlockSizeBytes);
        snappy::Compress(part.data(), part.size(), &block);
        out += big_endian_bytes(static_cast<std::int32_t>(block.size())) + block;
      }
      return out;
    }
    case Codec::kLz4:
      out.resize(LZ4F_compressFrameBound(bytes.size(), nullptr));
      out.resize(LZ4F_compressFrame(out.data(), out.size(), bytes.data(), bytes.size(), nullptr));
      return out;
    case Codec::kZstd:
      out.resize(ZSTD_compressBound(bytes.size()));
      out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
      return out;
  }
  return out;
}

/// A record batch of version 2, all fields to be chosen; a wrong one makes a wrong batch.
struct BatchFields {
  std::int64_t base_offset = 0;
  char version = 2;
  std::int16_t attributes = 0;  ///< Besides the codec.
  Codec codec = Codec::kNone;
  std::optional<std::int32_t> last_offset_delta = std::nullopt;  ///< Of the last record.
  std::int64_t base_timestamp_ms = 1'000;
  std::int64_t max_timestamp_ms = 2'000;
  std::optional<std::int32_t> count = std::nullopt;         ///< Of the records.
  std::optional<std::string> records_bytes = std::nullopt;  ///< In place of the records.
  bool xerial = true;
};

inline std::string batch_bytes(const BatchFields& fields, const std::vector<BatchRecord>& records) {
  std::string plain;
  for (const BatchRecord& record : records) plain += record_bytes(record);
  const std::int32_t last_delta = records.empty() ? 0 : records.back().offset_delta;
  const std::string checked =
      big_endian_bytes(static_cast<std::int16_t>(fields.attributes | static_cast<std::int16_t>(fields.codec))) +
      big_endian_bytes(fields.last_offset_delta.value_or(last_delta)) + big_endian_bytes(fields.base_timestamp_ms) +
      big_endian_bytes(fields.max_timestamp_ms) + big_endian_bytes<std::int64_t>(-1) +  // producer
      big_endian_bytes<std::int16_t>(-1) + big_endian_bytes<std::int32_t>(-1) +
      big_endian_bytes(fields.count.value_or(static_cast<std::int32_t>(records.size()))) +
      fields.records_bytes.value_or(compress(fields.codec, plain, fields.xerial));
  const std::string behind_size = big_endian_bytes<std::int32_t>(0) +  // leader epoch
                                  std::string(1, fields.version) + big_endian_bytes(crc32c(checked)) + checked;
  return big_endian_bytes(fields.base_offset) + big_endian_bytes(static_cast<std::int32_t>(behind_size.size())) +
         behind_size;
}

/// `count` records with their offset as the value.
inline std::string plain_batch(std::int64_t base_offset, std::int32_t count, Codec codec = Codec::kNone) {
  std::vector<BatchRecord> records;
  records.reserve(static_cast<std::size_t>(count));
  for (std::int32_t i = 0; i < count; ++i) records.push_back({i, "value " + std::to_string(base_offset + i)});
  return batch_bytes({.base_offset = base_offset, .codec = codec}, records);
}

}  // namespace drover::ingest::test

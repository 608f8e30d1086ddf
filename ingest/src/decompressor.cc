#include "decompressor.h"

#include <lz4frame.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <limits>

#include "big_endian.h"
#include "drover/model/check.h"

namespace drover::ingest {
namespace {

using Outcome = Decompressor::Outcome;
using Result = Decompressor::Result;

constexpr Result kMalformed{Outcome::kMalformed, 0};
constexpr Result kNoRoom{Outcome::kNoRoom, 0};
constexpr int kGzipOnly = 16;  // to zlib: added to the window's bits
/// How snappy-java begins its stream: this, two version numbers, then blocks with their size in front.
constexpr std::string_view kXerialMagic("\x82SNAPPY\0", 8);
constexpr std::size_t kXerialHeaderSizeBytes = 16;

Result snappy_block(std::string_view input, char* out, std::size_t room) {
  std::size_t size = 0;
  if (!snappy::GetUncompressedLength(input.data(), input.size(), &size)) return kMalformed;
  if (size > room) return kNoRoom;
  if (!snappy::RawUncompress(input.data(), input.size(), out)) return kMalformed;
  return {Outcome::kDone, size};
}

Result snappy_all(std::string_view input, char* out, std::size_t room) {
  if (!input.starts_with(kXerialMagic)) return snappy_block(input, out, room);
  if (input.size() < kXerialHeaderSizeBytes) return kMalformed;
  input.remove_prefix(kXerialHeaderSizeBytes);
  std::size_t written = 0;
  while (!input.empty()) {
    if (input.size() < sizeof(std::int32_t)) return kMalformed;
    const auto size = static_cast<std::uint32_t>(big_endian<std::int32_t>(input.data()));
    input.remove_prefix(sizeof(std::int32_t));
    if (size > input.size()) return kMalformed;
    const Result block = snappy_block(input.substr(0, size), out + written, room - written);
    if (block.outcome != Outcome::kDone) return block;
    input.remove_prefix(size);
    written += block.size;
  }
  return {Outcome::kDone, written};
}

}  // namespace

struct Decompressor::State {
  State() {
    DROVER_CHECK(!LZ4F_isError(LZ4F_createDecompressionContext(&lz4, LZ4F_VERSION)), "out of memory");
    DROVER_CHECK(zstd != nullptr, "out of memory");
    DROVER_CHECK(inflateInit2(&gzip, MAX_WBITS + kGzipOnly) == Z_OK, "out of memory");
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    LZ4F_freeDecompressionContext(lz4);
    ZSTD_freeDCtx(zstd);
    inflateEnd(&gzip);
  }

  Result lz4_frames(std::string_view input, char* out, std::size_t room) const {
    LZ4F_resetDecompressionContext(lz4);
    LZ4F_decompressOptions_t options{};
    options.stableDst = 1;  // what was written stays where it is
    std::size_t written = 0;
    for (;;) {
      std::size_t read_size = input.size();
      std::size_t written_size = room - written;
      const std::size_t hint = LZ4F_decompress(lz4, out + written, &written_size, input.data(), &read_size, &options);
      if (LZ4F_isError(hint)) return kMalformed;
      input.remove_prefix(read_size);
      written += written_size;
      if (hint == 0 && input.empty()) return {Outcome::kDone, written};
      if (read_size == 0 && written_size == 0) return written == room ? kNoRoom : kMalformed;
    }
  }

  Result zstd_frames(std::string_view input, char* out, std::size_t room) const {
    const std::size_t size = ZSTD_decompressDCtx(zstd, out, room, input.data(), input.size());
    if (!ZSTD_isError(size)) return {Outcome::kDone, size};
    return ZSTD_getErrorCode(size) == ZSTD_error_dstSize_tooSmall ? kNoRoom : kMalformed;
  }

  Result gzip_stream(std::string_view input, char* out, std::size_t room) {
    constexpr std::size_t kSizeMax = std::numeric_limits<uInt>::max();
    if (input.size() > kSizeMax) return kMalformed;
    inflateReset(&gzip);
    gzip.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    gzip.avail_in = static_cast<uInt>(input.size());
    gzip.next_out = reinterpret_cast<Bytef*>(out);
    gzip.avail_out = static_cast<uInt>(std::min(room, kSizeMax));
    const int outcome = inflate(&gzip, Z_FINISH);
    if (outcome == Z_STREAM_END) {
      return {Outcome::kDone, static_cast<std::size_t>(reinterpret_cast<char*>(gzip.next_out) - out)};
    }
    return (outcome == Z_OK || outcome == Z_BUF_ERROR) && gzip.avail_out == 0 ? kNoRoom : kMalformed;
  }

  LZ4F_dctx* lz4 = nullptr;
  ZSTD_DCtx* zstd = ZSTD_createDCtx();
  z_stream gzip{};
};

Decompressor::Decompressor() : state_(std::make_unique<State>()) {}
Decompressor::~Decompressor() = default;

Decompressor::Result Decompressor::decompress(Codec codec, std::string_view input, char* out, std::size_t room) {
  switch (codec) {
    case Codec::kGzip:
      return state_->gzip_stream(input, out, room);
    case Codec::kSnappy:
      return snappy_all(input, out, room);
    case Codec::kLz4:
      return state_->lz4_frames(input, out, room);
    case Codec::kZstd:
      return state_->zstd_frames(input, out, room);
    default:
      return kMalformed;
  }
}

}  // namespace drover::ingest

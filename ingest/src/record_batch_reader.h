#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "buffer_pool.h"
#include "decompressor.h"
#include "drover/model/record.h"

namespace drover::ingest {

/// How far whole record batches reach, by their headers alone: one behind the last offset of the last whole batch;
/// nothing if none is whole, or what stands there is no batch of version 2.
std::optional<std::int64_t> end_of_whole_batches(std::string_view records);

/// Reads one Kafka partition's record batches (version 2, all codecs) as they lie in the answers to Fetch.
///
/// Control batches, records below the wanted offset, headers, and a last batch that is cut short are skipped; gaps that
/// compaction left are passed over. Whatever the bytes are, nothing outside of them is touched.
/// Threads: one, shared with the decompressor and the pool.
class RecordBatchReader {
 public:
  /// What one batch may grow to; beyond it is kUnusual.
  static constexpr std::size_t kBatchSizeBytesMax = std::size_t{64} * 1024 * 1024;

  enum class Outcome : std::uint8_t {
    kRecords,    ///< There is at least one.
    kDrained,    ///< No further record is whole: feed() the next answer.
    kMalformed,  ///< Damaged (a wrong checksum, a size that can't be). It stays so.
    kUnusual,  ///< Well formed perhaps, but not for this reader: an older version, a batch beyond the bound. As above.
  };

  /// `decompressor` and `pool` outlive the reader.
  RecordBatchReader(Decompressor& decompressor, BufferPool& pool, std::int64_t next_offset)
      : decompressor_(decompressor), pool_(pool), next_offset_(next_offset) {}
  RecordBatchReader(const RecordBatchReader&) = delete;
  RecordBatchReader& operator=(const RecordBatchReader&) = delete;
  ~RecordBatchReader() { pool_.give(std::move(buffer_)); }

  /// Goes on with `records`, which the caller keeps until read() says kDrained. Requires: it has, or nothing was fed.
  void feed(std::string_view records) { input_ = records; }

  /// Views the next records, `records_max` at most, in place of what `views` held. They are valid until the next call.
  Outcome read(std::size_t records_max, std::vector<model::RecordView>& views);

  /// One behind what was viewed or skipped.
  std::int64_t next_offset() const { return next_offset_; }

 private:
  /// A batch that was begun.
  struct Batch {
    std::string_view records;  ///< What is left of them.
    std::int32_t count = 0;    ///< Of these.
    std::int64_t base_offset = 0;
    std::int64_t end_offset = 0;
    std::int64_t base_timestamp_ms = 0;
    std::optional<std::int64_t> append_timestamp_ms;  ///< The broker's, which then holds for every record.
  };

  void make_room();
  Outcome open_batch(bool buffer_may_move);
  bool read_records(std::size_t records_max, std::vector<model::RecordView>& views);
  Outcome decompress(Codec codec, std::string_view compressed, bool buffer_may_move, std::string_view& out);

  Decompressor& decompressor_;
  BufferPool& pool_;
  std::int64_t next_offset_;
  std::string_view input_;  ///< Batches that weren't begun.
  Batch batch_;
  bool malformed_ = false;       ///< The begun batch is.
  Buffer buffer_;                ///< Decompressed batches, behind one another; lent by the pool while in use.
  std::size_t buffer_used_ = 0;  ///< Bytes of it.
};

}  // namespace drover::ingest

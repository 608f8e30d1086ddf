// Goal: whatever a broker answers, reading it touches nothing outside of it, ends, and gives records in the order of
//       their offsets; how many are taken at a time makes no difference.
// Method: the input is read as an answer to Fetch and as record batches, once as it is and once with the checksums put
//         right, since else hardly anything would come past them. A difference aborts; the sanitizers watch.
// Run:     as a fuzzer (tests/run fuzz); tests/unit/ingest runs it on random mutations of real batches.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "big_endian.h"
#include "crc32c.h"
#include "drover/model/check.h"
#include "fetch_protocol.h"
#include "record_batch_reader.h"

namespace drover::ingest {
namespace {

// Of a record batch's header.
constexpr std::size_t kBehindSize = 12;
constexpr std::size_t kChecksum = 17;
constexpr std::size_t kAttributes = 21;

struct Reading {
  std::vector<std::int64_t> offsets;
  std::string bytes;  ///< Of all keys and values.
  RecordBatchReader::Outcome outcome = RecordBatchReader::Outcome::kDrained;
  std::int64_t end = 0;
  bool operator==(const Reading&) const = default;
};

Reading read(std::string_view records, std::int64_t next_offset, std::size_t records_max) {
  static Decompressor decompressor;
  static BufferPool pool;
  RecordBatchReader reader(decompressor, pool, next_offset);
  reader.feed(records);
  Reading reading;
  std::vector<model::RecordView> views;
  while ((reading.outcome = reader.read(records_max, views)) == RecordBatchReader::Outcome::kRecords) {
    DROVER_CHECK(!views.empty() && views.size() <= records_max, "records come, and not too many");
    for (const model::RecordView& view : views) {
      DROVER_CHECK(view.offset.value >= next_offset, "records come in the order of their offsets");
      next_offset = view.offset.value + 1;
      reading.offsets.push_back(view.offset.value);
      reading.bytes += view.key.value_or("-");
      reading.bytes += view.value.value_or("-");
    }
  }
  DROVER_CHECK(reader.next_offset() >= next_offset, "what was viewed is passed");
  reading.end = reader.next_offset();
  return reading;
}

void read_both_ways(std::string_view records) {
  end_of_whole_batches(records);
  for (const std::int64_t next_offset : {0, 2}) {
    DROVER_CHECK(read(records, next_offset, 3) == read(records, next_offset, 8192), "the same records in any portions");
  }
}

void put_checksums_right(char* bytes, std::size_t size) {
  while (size > kAttributes) {
    const std::size_t batch = kBehindSize + big_endian<std::uint32_t>(bytes + kBehindSize - sizeof(std::uint32_t));
    if (batch < kAttributes || batch > size) return;
    const std::uint32_t checksum = byte_swapped(crc32c({bytes + kAttributes, batch - kAttributes}));
    std::memcpy(bytes + kChecksum, &checksum, sizeof checksum);
    bytes += batch;
    size -= batch;
  }
}

}  // namespace
}  // namespace drover::ingest

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using drover::ingest::FetchAnswer;
  const auto copy = std::make_unique<char[]>(size);
  if (size > 0) std::memcpy(copy.get(), data, size);
  const std::string_view input(copy.get(), size);
  if (const auto answer = drover::ingest::parse_fetch_answer(input)) {
    for (const FetchAnswer::Partition& partition : answer->partitions)
      drover::ingest::read_both_ways(partition.records);
  }
  drover::ingest::read_both_ways(input);
  drover::ingest::put_checksums_right(copy.get(), size);
  drover::ingest::read_both_ways(input);
  return 0;
}

#include "record_batch_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "record_batches.h"

namespace drover::ingest::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Outcome = RecordBatchReader::Outcome;

constexpr std::size_t kRecordsMax = 100;

class RecordBatchReaderTest : public testing::Test {
 protected:
  /// Feeds the bytes, in memory of exactly their size so that AddressSanitizer sees a byte too far, and reads all that
  /// is there. What ended it is in `outcome`.
  std::vector<std::int64_t> read(const std::string& bytes, std::int64_t next_offset = 0,
                                 std::size_t records_max = kRecordsMax) {
    const auto copy = std::make_unique<char[]>(bytes.size());
    bytes.copy(copy.get(), bytes.size());
    RecordBatchReader reader(decompressor, pool, next_offset);
    reader.feed({copy.get(), bytes.size()});
    std::vector<std::int64_t> offsets;
    values.clear();
    timestamps.clear();
    sizes.clear();
    while ((outcome = reader.read(records_max, views)) == Outcome::kRecords) {
      EXPECT_FALSE(views.empty());
      EXPECT_LE(views.size(), records_max);
      sizes.push_back(views.size());
      for (const model::RecordView& view : views) {
        offsets.push_back(view.offset.value);
        values.push_back(view.value ? std::string(*view.value) : "null");
        timestamps.push_back(view.timestamp_ms);
      }
    }
    EXPECT_TRUE(views.empty());
    end = reader.next_offset();
    return offsets;
  }

  Decompressor decompressor;
  BufferPool pool;
  std::vector<model::RecordView> views;
  std::vector<std::string> values;
  std::vector<std::int64_t> timestamps;
  std::vector<std::size_t> sizes;  ///< Of each read().
  Outcome outcome = Outcome::kDrained;
  std::int64_t end = -1;
};

std::vector<std::int64_t> offsets_from(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> offsets;
  for (; begin < end; ++begin) offsets.push_back(begin);
  return offsets;
}

TEST_F(RecordBatchReaderTest, KeysValuesAndTimesAreViewed) {
  const std::string headers = varint(1) + varint(1) + "h" + varint(2) + "hv";
  const std::string bytes = batch_bytes({.base_offset = 7}, {{0, "a", "key", 5}, {1, std::nullopt, "", -1, headers}});
  RecordBatchReader reader(decompressor, pool, 7);
  reader.feed(bytes);
  ASSERT_EQ(reader.read(kRecordsMax, views), Outcome::kRecords);
  ASSERT_EQ(views.size(), 2U);
  EXPECT_EQ(views[0].key, "key");
  EXPECT_EQ(views[0].value, "a");
  EXPECT_EQ(views[0].timestamp_ms, 1'005);
  EXPECT_EQ(views[0].offset.value, 7);
  EXPECT_EQ(views[1].key, "");
  EXPECT_EQ(views[1].value, std::nullopt);
  EXPECT_EQ(views[1].timestamp_ms, 999);
  EXPECT_EQ(reader.next_offset(), 9);
  EXPECT_EQ(reader.read(kRecordsMax, views), Outcome::kDrained);
}

TEST_F(RecordBatchReaderTest, EveryCodecGivesTheSameRecords) {
  for (const Codec codec : {Codec::kNone, Codec::kGzip, Codec::kSnappy, Codec::kLz4, Codec::kZstd}) {
    EXPECT_EQ(read(plain_batch(0, 5'000, codec) + plain_batch(5'000, 3, codec)), offsets_from(0, 5'003));
    EXPECT_EQ(outcome, Outcome::kDrained) << static_cast<int>(codec);
    EXPECT_EQ(values.back(), "value 5002");
  }
}

TEST_F(RecordBatchReaderTest, SnappyWithoutFramesIsRead) {
  EXPECT_EQ(read(batch_bytes({.codec = Codec::kSnappy, .xerial = false}, {{0, "a"}, {1, "b"}})), offsets_from(0, 2));
}

TEST_F(RecordBatchReaderTest, BatchesTravelTogetherUpToTheBound) {
  std::string bytes;
  for (int batch = 0; batch < 25; ++batch) bytes += plain_batch(batch * 10, 10, Codec::kLz4);
  EXPECT_EQ(read(bytes), offsets_from(0, 250));
  EXPECT_THAT(sizes, ElementsAre(100, 100, 50));
}

TEST_F(RecordBatchReaderTest, ABatchBeyondTheBoundIsReadInPartsWithTheNextBehindIt) {
  for (const Codec codec : {Codec::kNone, Codec::kLz4}) {
    EXPECT_EQ(read(plain_batch(0, 250, codec) + plain_batch(250, 100, codec)), offsets_from(0, 350));
    EXPECT_THAT(sizes, ElementsAre(100, 100, 100, 50));
    EXPECT_EQ(values[349], "value 349");
  }
}

TEST_F(RecordBatchReaderTest, ABatchLargerThanTheBufferIsReadWhole) {
  std::mt19937 random(7741);
  std::string large(7'000'000, ' ');
  for (char& byte : large) byte = static_cast<char>(random());
  for (const Codec codec : {Codec::kGzip, Codec::kSnappy, Codec::kLz4, Codec::kZstd}) {
    const std::string bytes = plain_batch(0, 3, codec) +
                              batch_bytes({.base_offset = 3, .codec = codec}, {{0, large}, {1, "small"}}) +
                              plain_batch(5, 2, codec);
    EXPECT_EQ(read(bytes), offsets_from(0, 7));
    EXPECT_EQ(values[3], large) << static_cast<int>(codec);
    EXPECT_EQ(values[4], "small");
  }
}

TEST_F(RecordBatchReaderTest, WhatLiesBelowTheWantedOffsetIsSkipped) {
  for (const Codec codec : {Codec::kNone, Codec::kLz4}) {
    const std::string bytes = plain_batch(0, 10, codec) + plain_batch(10, 10, codec);
    EXPECT_EQ(read(bytes, 5), offsets_from(5, 20));
    EXPECT_EQ(read(bytes, 10), offsets_from(10, 20));
    EXPECT_EQ(read(bytes, 19), offsets_from(19, 20));
    EXPECT_THAT(read(bytes, 20), IsEmpty());
    EXPECT_EQ(outcome, Outcome::kDrained);
  }
}

TEST_F(RecordBatchReaderTest, GapsOfCompactionArePassedOver) {
  const std::string bytes = batch_bytes({.last_offset_delta = 9}, {{2, "a"}, {5, "b"}}) +
                            batch_bytes({.base_offset = 10, .last_offset_delta = 4}, {}) +  // nothing is left of it
                            batch_bytes({.base_offset = 30, .last_offset_delta = 9}, {{0, "c"}});
  EXPECT_THAT(read(bytes), ElementsAre(2, 5, 30));
  EXPECT_EQ(end, 40);
}

TEST_F(RecordBatchReaderTest, ControlBatchesAreSkipped) {
  const std::string control = batch_bytes({.base_offset = 3, .attributes = 0x30}, {{0, "marker"}});
  EXPECT_THAT(read(plain_batch(0, 3) + control + plain_batch(4, 1)), ElementsAre(0, 1, 2, 4));
  EXPECT_THAT(read(plain_batch(0, 3) + control), ElementsAre(0, 1, 2));
  EXPECT_EQ(end, 4);
}

TEST_F(RecordBatchReaderTest, TheBrokersTimeHoldsForAllRecordsIfTheTopicSaysSo) {
  read(batch_bytes({.attributes = 0x08}, {{0, "a", "", 1}, {1, "b", "", 2}}));
  EXPECT_THAT(timestamps, ElementsAre(2'000, 2'000));
  read(batch_bytes({.base_timestamp_ms = -1}, {{0, "a"}}));
  EXPECT_THAT(timestamps, ElementsAre(-1));
}

TEST_F(RecordBatchReaderTest, ALastBatchThatIsCutShortIsLeftForTheNextAnswer) {
  const std::string first = plain_batch(0, 3);
  const std::string bytes = first + plain_batch(3, 3, Codec::kLz4);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(read(bytes.substr(0, size)).size(), size < first.size() ? 0U : 3U) << size;
    EXPECT_EQ(outcome, Outcome::kDrained) << size;
    const std::optional<std::int64_t> whole = end_of_whole_batches(bytes.substr(0, size));
    EXPECT_EQ(whole, size < first.size() ? std::nullopt : std::optional<std::int64_t>(3)) << size;
  }
  EXPECT_EQ(end_of_whole_batches(bytes), 6);
}

// Goal: no damage goes unnoticed. Of the header's fields in front of the checksum, the offset and the leader's epoch
//       aren't covered by it; everything else is.
TEST_F(RecordBatchReaderTest, AFlippedBitIsMalformedOrOfAnotherVersionOrCutShort) {
  const std::string whole = plain_batch(0, 3, Codec::kLz4);
  for (std::size_t at = 8; at < whole.size(); ++at) {
    if (at >= 12 && at < 16) continue;
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      EXPECT_THAT(read(damaged), IsEmpty()) << at << ":" << bit;
      EXPECT_TRUE(at < 17 || outcome == Outcome::kMalformed) << at << ":" << bit;
    }
  }
}

TEST_F(RecordBatchReaderTest, WhatComesBehindDamageIsNotRead) {
  std::string damaged = plain_batch(3, 3);
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  EXPECT_EQ(read(plain_batch(0, 3) + damaged + plain_batch(6, 3)), offsets_from(0, 3));
  EXPECT_EQ(outcome, Outcome::kMalformed);
  EXPECT_EQ(end, 3);
}

TEST_F(RecordBatchReaderTest, RecordsThatDoNotFillTheirBatchAreMalformedAndStaySo) {
  for (const BatchFields& fields :
       {BatchFields{.count = 3}, BatchFields{.count = 1}, BatchFields{.last_offset_delta = 0}, BatchFields{.count = -1},
        BatchFields{.records_bytes = ""}, BatchFields{.records_bytes = varint(1'000'000'000)},
        BatchFields{.records_bytes = varint(-5)}, BatchFields{.records_bytes = std::string(20, '\xff')},
        BatchFields{.codec = Codec{5}, .records_bytes = "?"}, BatchFields{.last_offset_delta = -1}}) {
    const std::string bytes = batch_bytes(fields, {{0, "a"}, {1, "b"}});
    RecordBatchReader reader(decompressor, pool, 0);
    reader.feed(bytes);
    while (reader.read(1, views) == Outcome::kRecords) continue;
    EXPECT_EQ(reader.read(1, views), Outcome::kMalformed);
    EXPECT_LE(reader.next_offset(), 2);
  }
}

TEST_F(RecordBatchReaderTest, CompressedBytesThatAreNoneAreMalformed) {
  for (const Codec codec : {Codec::kGzip, Codec::kSnappy, Codec::kLz4, Codec::kZstd}) {
    for (const std::string& records : {std::string(), std::string("nonsense"), std::string(1'000, '\0')}) {
      EXPECT_THAT(read(batch_bytes({.codec = codec, .records_bytes = records}, {{0, "a"}})), IsEmpty());
      EXPECT_EQ(outcome, Outcome::kMalformed) << static_cast<int>(codec);
    }
    const std::string whole = compress(codec, std::string(100'000, 'x'));
    read(batch_bytes({.codec = codec, .records_bytes = whole.substr(0, whole.size() / 2)}, {{0, "a"}}));
    EXPECT_EQ(outcome, Outcome::kMalformed) << static_cast<int>(codec);
  }
}

TEST_F(RecordBatchReaderTest, OlderVersionsAndBatchesBeyondTheBoundAreUnusual) {
  for (const char version : {'\0', '\1', '\3'}) {
    EXPECT_EQ(read(plain_batch(0, 3) + batch_bytes({.base_offset = 3, .version = version}, {{0, "a"}})).size(), 3U);
    EXPECT_EQ(outcome, Outcome::kUnusual);
  }
  const std::string bomb(RecordBatchReader::kBatchSizeBytesMax + 1, '\0');
  for (const Codec codec : {Codec::kGzip, Codec::kLz4, Codec::kZstd}) {
    EXPECT_THAT(read(batch_bytes({.codec = codec, .records_bytes = compress(codec, bomb)}, {{0, "a"}})), IsEmpty());
    EXPECT_EQ(outcome, Outcome::kUnusual) << static_cast<int>(codec);
  }
}

TEST(Crc32c, ByInstructionAndByTableAreTheSame) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283);
  std::string bytes;
  for (int size = 0; size < 100; ++size, bytes += static_cast<char>(size * 37)) {
    EXPECT_EQ(crc32c(bytes), crc32c_by_table(bytes)) << size;
  }
}

}  // namespace
}  // namespace drover::ingest::test

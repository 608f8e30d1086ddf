#include "drover/model/row.h"

#include <gtest/gtest.h>

#include <string>

#include "drover/model/batch.h"

namespace drover::model {
namespace {

const Version kVersion{Version::of(1'782'205'201'500, SourceId{3}, 77)};

TEST(Row, PartsComeBack) {
  Bytes bytes;
  append_row(bytes, kVersion, 0, "TS#2026-06-23T09:00:01Z", "attributes");
  const RowView row(bytes);
  EXPECT_EQ(row.version(), kVersion);
  EXPECT_FALSE(row.tombstone());
  EXPECT_EQ(row.sort_key(), "TS#2026-06-23T09:00:01Z");
  EXPECT_EQ(row.attributes(), "attributes");
  EXPECT_EQ(row.bytes(), bytes);
}

TEST(Row, TombstoneWithoutSortKeyAndAttributes) {
  Bytes bytes;
  append_row(bytes, kVersion, kRowTombstone, "", "");
  const RowView row(bytes);
  EXPECT_TRUE(row.tombstone());
  EXPECT_EQ(row.sort_key(), "");
  EXPECT_EQ(row.attributes(), "");
}

TEST(Row, RawHeadIsTheAppendedOne) {
  const std::string sort_key(200, 'k');
  Bytes appended;
  append_row(appended, kVersion, 0, sort_key, "");
  char raw[kRowHeaderSizeBytes + kVarintSizeBytesMax + 200];
  EXPECT_EQ(std::string(raw, put_row_head(raw, kVersion, 0, sort_key)), appended);
}

TEST(Version, LogTimeThenSourceThenOffsetDecide) {
  EXPECT_EQ(kVersion.log_time_ms(), 1'782'205'201'500);
  EXPECT_EQ(kVersion.source(), SourceId{3});
  EXPECT_LT(Version::of(1, SourceId{9}, 9), Version::of(2, SourceId{0}, 0));
  EXPECT_LT(Version::of(1, SourceId{1}, 9), Version::of(1, SourceId{2}, 0));
  EXPECT_LT(Version::of(1, SourceId{1}, 1), Version::of(1, SourceId{1}, 2));
}

TEST(RowBatch, PartitionKeyAndRowStandSideBySide) {
  RowBatch batch;
  const std::string key = "VEH#V-7741";
  const std::string row = "row bytes";
  for (const std::string& bytes : {std::string("in front"), key, row}) {
    batch.bytes.insert(batch.bytes.end(), bytes.begin(), bytes.end());
  }
  batch.rows.push_back(
      {hash_key(key), 8, static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(row.size())});
  EXPECT_EQ(batch.partition_key(batch.rows[0]), key);
  EXPECT_EQ(batch.row_bytes(batch.rows[0]), row);
}

}  // namespace
}  // namespace drover::model

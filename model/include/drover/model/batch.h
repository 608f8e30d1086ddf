#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "drover/model/bytes.h"
#include "drover/model/key.h"
#include "drover/model/row.h"
#include "drover/model/value_view.h"
#include "drover/model/version.h"

namespace drover::model {

/// Rows on their way to one table (or one index of it), in their order of arrival: one buffer, and where each row is.
///
/// Built by one thread; immutable from then on, and shared by the shards that take a part each.
struct RowBatch {
  struct Row {
    KeyHash hash = 0;         ///< hash_key(partition key).
    std::uint32_t begin = 0;  ///< Of the partition key in `bytes`; the row's image follows it directly.
    std::uint32_t partition_key_size = 0;
    std::uint32_t row_size = 0;
    NameMask names = NameMask::unknown();  ///< Of the row's attributes.
  };

  ByteBuffer bytes;
  std::vector<Row> rows;

  std::string_view partition_key(const Row& row) const { return {bytes.data() + row.begin, row.partition_key_size}; }
  std::string_view row_bytes(const Row& row) const {
    return {bytes.data() + row.begin + row.partition_key_size, row.row_size};
  }
};

}  // namespace drover::model

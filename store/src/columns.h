#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "drover/model/bytes.h"
#include "drover/model/row.h"
#include "drover/model/status.h"

/// A run of one collection's rows as columns: how blocks lie on disk. ARCHITECTURE.md has the grammar.
///
/// Any rows come back byte for byte. Rows that look like others in the run (the same attributes in the same order) take
/// a few bytes each; any other row stands in the block as it is.
///
/// Threads: any; the functions share nothing.
namespace drover::store {

/// The highest version of the format that is read, and the one that is written.
inline constexpr std::uint8_t kColumnsVersion = 1;
inline constexpr std::size_t kColumnsRowsMax = 65'535;
/// Of the row images of one block together.
inline constexpr std::size_t kColumnsRowBytesMax = std::size_t{256} * 1024 * 1024;

/// Appends the encoded rows to `out`.
///
/// Requires: 1 to kColumnsRowsMax rows of one table or index, together at most kColumnsRowBytesMax. Ascending sort keys
/// are what it is good at; the order is kept whatever it is.
void encode_columns(std::span<const model::RowView> rows, model::Bytes& out);

/// What a block says of itself in front of its columns.
struct ColumnsInfo {
  std::uint32_t rows = 0;
  std::uint64_t row_bytes = 0;  ///< Sum of the row images' sizes.
};

/// Reads no more than the front; the checksum is not looked at. Fails with kInvalid on an unknown version ("block
/// format N, this Drover reads up to M") and on what can't be a block.
model::Result<ColumnsInfo> columns_info(std::string_view encoded);

/// Calls `use` with each row image in order; an image is valid during the call.
///
/// Fails with kInvalid, before any row is used, on an unknown version and on a wrong checksum. Behind a right checksum,
/// content that no encoder wrote fails too, whatever it is, but maybe after some rows. What stands inside of attributes
/// is not looked at.
model::Status decode_columns(std::string_view encoded, const std::function<void(std::string_view)>& use);

/// Puts the checksum of its content into an encoded block that was changed by hand. For tests.
void set_columns_checksum(model::Bytes& encoded);

}  // namespace drover::store

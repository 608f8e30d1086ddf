#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "drover/model/batch.h"
#include "drover/model/check.h"
#include "drover/model/key.h"
#include "item_plan.h"
#include "swar.h"

namespace drover::ingest {

/// Appends rows to a batch, written in place. Complete once finish() has been called.
class RowWriter {
 public:
  /// Makes room for so many rows of records that have so many bytes in all: a row is rarely larger than its JSON.
  /// `flags`: of all rows (model/row.h).
  RowWriter(model::RowBatch& batch, std::size_t records, std::size_t values_size_bytes, std::uint8_t flags)
      : batch_(batch), used_(batch.bytes.size()), flags_(flags) {
    batch.rows.reserve(batch.rows.size() + records);
    batch.bytes.resize(used_ + values_size_bytes);  // uninitialized, so it costs nothing
  }
  void finish() { batch_.bytes.resize(used_); }

  /// Requires: keys_fit(parts).
  void append(const ItemParts& parts, model::Version version) {
    const ItemPlan& plan = *parts.plan;
    const std::size_t key_size = parts.size_bytes(plan.partition_key);
    const std::size_t sort_key_size = parts.size_bytes(plan.sort_key);
    char* const begin = room(key_size + model::kRowHeaderSizeBytes + model::kVarintSizeBytesMax + sort_key_size +
                             parts.attributes.size());
    char* const row = put_key(begin, parts, plan.partition_key);
    char* at = model::put_varint(model::put_row_header(row, version, flags_), sort_key_size);
    at = put_key(at, parts, plan.sort_key);
    at = put_bytes(at, parts.attributes);
    batch_.rows.push_back({.hash = model::hash_key({begin, key_size}),
                           .begin = static_cast<std::uint32_t>(used_),
                           .partition_key_size = static_cast<std::uint32_t>(key_size),
                           .row_size = static_cast<std::uint32_t>(at - row),
                           .names = parts.names});
    used_ = static_cast<std::size_t>(at - batch_.bytes.data());
  }

 private:
  static char* put_key(char* to, const ItemParts& parts, const KeyPattern& key) {
    char* const suffix = put_bytes(put_bytes(to, key.prefix), parts.field(key));
    char* const end = put_bytes(suffix, key.suffix);
    model::put_digits(suffix, key.digits, parts.time);
    return end;
  }

  /// Room behind what is used.
  char* room(std::size_t size_bytes) {
    if (batch_.bytes.size() - used_ < size_bytes) grow(size_bytes);
    return batch_.bytes.data() + used_;
  }
  void grow(std::size_t size_bytes) {
    DROVER_CHECK(used_ + size_bytes <= UINT32_MAX, "a batch has at most 4 GiB");
    batch_.bytes.resize(2 * used_ + size_bytes);
  }

  model::RowBatch& batch_;
  std::size_t used_;
  const std::uint8_t flags_;
};

}  // namespace drover::ingest

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "drover/model/version.h"

namespace drover::model {

struct HeaderView {
  std::string_view name;
  std::optional<std::string_view> value;  ///< Nothing is Kafka's null.
};

/// One Kafka record as bytes that somebody else owns: whatever fetched it keeps them alive while the view is in use.
///
/// Decoders see batches of these and never the fetching library's own type.
struct RecordView {
  std::optional<std::string_view> key;    ///< Nothing is Kafka's null; empty is not null.
  std::optional<std::string_view> value;  ///< Nothing is Kafka's null (a tombstone).
  std::span<const HeaderView> headers;
  std::int64_t timestamp_ms = -1;  ///< -1: the record carries none.
  Offset offset;
};

/// Records of one source in offset order.
struct RecordBatch {
  SourceId source;
  std::span<const RecordView> records;
};

}  // namespace drover::model

#pragma once

#include <algorithm>
#include <cstdint>

#include "drover/ingest/decoder.h"
#include "drover/model/record.h"

namespace drover::ingest {

/// How far ahead of the clock a record's timestamp may be and still move its source's log time.
inline constexpr std::int64_t kTimestampAheadMsMax = 3'600'000;

inline void advance_log_time(SourceState& state, const model::RecordView& record, std::int64_t now_ms) {
  if (record.timestamp_ms <= now_ms + kTimestampAheadMsMax) {
    state.log_time_ms = std::max(state.log_time_ms, record.timestamp_ms);
  }
}

}  // namespace drover::ingest

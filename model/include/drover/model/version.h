#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace drover::model {

/// Where a record came from: one Kafka partition of one incarnation of a topic. 0 is the API.
struct SourceId {
  std::uint16_t value = 0;
  friend auto operator<=>(const SourceId&, const SourceId&) = default;
};
inline constexpr SourceId kApiSource{0};

/// Position in one Kafka partition.
struct Offset {
  std::int64_t value = -1;
  Offset next() const { return Offset{value + 1}; }  ///< What a consumer group commits.
  friend auto operator<=>(const Offset&, const Offset&) = default;
};

/// What is remembered of a record, to know it again.
struct RecordMark {
  Offset offset;           ///< Offset{}: of none.
  std::uint64_t hash = 0;  ///< Of its timestamp, key and value.
  friend bool operator==(const RecordMark&, const RecordMark&) = default;
};

/// How far one source has been read. What a checkpoint keeps, and where reading goes on behind it.
struct SourcePosition {
  std::string topic;
  std::int32_t partition = 0;
  SourceId source;
  std::int64_t next_offset = 0;
  std::int64_t log_time_ms = 0;  ///< As of the record in front of next_offset.
  RecordMark last = {};          ///< Of that record.
  friend bool operator==(const SourcePosition&, const SourcePosition&) = default;
};

/// The one order of everything that is written: (log time, source, offset); the higher version wins.
///
/// A record's log time is the running maximum of its source's record timestamps, so the version never falls along a
/// source; an API write takes the higher of the clock and one above what it replaces.
struct Version {
  std::uint64_t time_and_source = 0;  ///< Log time, ms since 1970, in the upper 48 bits; the source in the lower 16.
  std::uint64_t offset = 0;

  static Version of(std::int64_t log_time_ms, SourceId source, std::uint64_t offset) {
    return {static_cast<std::uint64_t>(log_time_ms) << 16 | source.value, offset};
  }
  std::int64_t log_time_ms() const { return static_cast<std::int64_t>(time_and_source >> 16); }
  SourceId source() const { return SourceId{static_cast<std::uint16_t>(time_and_source & 0xffff)}; }
  friend auto operator<=>(const Version&, const Version&) = default;
};
static_assert(sizeof(Version) == 16);

}  // namespace drover::model

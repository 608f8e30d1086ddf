#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace drover::ingest {

/// As in the attributes of a record batch.
enum class Codec : std::uint8_t { kNone, kGzip, kSnappy, kLz4, kZstd };

/// Decompresses what Kafka's producers compress. Keeps its codecs' state between calls. Threads: one.
class Decompressor {
 public:
  enum class Outcome : std::uint8_t {
    kDone,
    kNoRoom,     ///< It may succeed with more room.
    kMalformed,  ///< Damaged, cut short, or no codec of that number.
  };
  struct Result {
    Outcome outcome = Outcome::kMalformed;
    std::size_t size = 0;  ///< Of what was written; kDone only.
  };

  Decompressor();
  ~Decompressor();

  /// Decompresses all of `input` to `out`, where `room` bytes are free. Requires: codec isn't kNone.
  Result decompress(Codec codec, std::string_view input, char* out, std::size_t room);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace drover::ingest

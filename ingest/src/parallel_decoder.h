#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "drover/ingest/decoder.h"

namespace drover::ingest {

/// Decodes large batches in parts on oneTBB's workers; the result is what one decoder would make of the whole.
///
/// Threads: one at a time; `on_reject` is called on that thread, in the records' order.
class ParallelDecoder : public Decoder {
 public:
  /// Fewer records than these a part are not worth a worker's waking.
  static constexpr std::size_t kPartRecordsMin = 1024;

  /// One decoder a part, since each is used by one thread at a time.
  ParallelDecoder(std::size_t parts_max, const std::function<std::unique_ptr<Decoder>()>& make_decoder);

  void decode(const model::RecordBatch& records, SourceState& state, std::int64_t now_ms, model::RowBatch& out,
              const OnReject& on_reject) override;

 private:
  struct Part {
    std::unique_ptr<Decoder> decoder;
    model::RecordBatch records;
    SourceState state;
    model::RowBatch rows;
    std::vector<Reject> rejects;
  };

  std::vector<Part> parts_;
  std::atomic<std::uint64_t> handed_over_{0};  ///< Parts, both ways.
};

}  // namespace drover::ingest

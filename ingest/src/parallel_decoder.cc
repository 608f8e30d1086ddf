#include "parallel_decoder.h"

#include <oneapi/tbb/parallel_for.h>

#include <algorithm>

#include "log_time.h"

namespace drover::ingest {
namespace {

void append(model::RowBatch& out, const model::RowBatch& rows) {
  const auto shift = static_cast<std::uint32_t>(out.bytes.size());
  out.bytes.insert(out.bytes.end(), rows.bytes.begin(), rows.bytes.end());
  for (model::RowBatch::Row row : rows.rows) {
    row.begin += shift;
    out.rows.push_back(row);
  }
}

}  // namespace

ParallelDecoder::ParallelDecoder(std::size_t parts_max, const std::function<std::unique_ptr<Decoder>()>& make_decoder)
    : parts_(parts_max) {
  for (Part& part : parts_) part.decoder = make_decoder();
}

void ParallelDecoder::decode(const model::RecordBatch& records, SourceState& state, std::int64_t now_ms,
                             model::RowBatch& out, const OnReject& on_reject) {
  const std::size_t count = std::min(parts_.size(), records.records.size() / kPartRecordsMin);
  if (count < 2) return parts_.front().decoder->decode(records, state, now_ms, out, on_reject);

  // A part's versions begin where the log time stands behind the parts in front of it.
  const std::size_t part_size = (records.records.size() + count - 1) / count;
  for (std::size_t i = 0; i < count; ++i) {
    Part& part = parts_[i];
    const std::size_t begin = std::min(i * part_size, records.records.size());
    part.records = {records.source,
                    records.records.subspan(begin, std::min(part_size, records.records.size() - begin))};
    part.state = state;
    for (const model::RecordView& record : part.records.records) advance_log_time(state, record, now_ms);
  }
  // oneTBB hands the parts over and back. ThreadSanitizer can't see into oneTBB's library, so the count says the same
  // once more: each release pairs with the acquires behind it.
  handed_over_.fetch_add(1, std::memory_order_release);
  tbb::parallel_for(std::size_t{0}, count, [this, now_ms](std::size_t i) {
    static_cast<void>(handed_over_.load(std::memory_order_acquire));
    Part& part = parts_[i];
    part.rows.bytes.clear();
    part.rows.rows.clear();
    part.rejects.clear();
    part.decoder->decode(part.records, part.state, now_ms, part.rows,
                         [&part](const Reject& reject) { part.rejects.push_back(reject); });
    handed_over_.fetch_add(1, std::memory_order_release);
  });
  static_cast<void>(handed_over_.load(std::memory_order_acquire));
  std::size_t bytes = out.bytes.size();
  std::size_t rows = out.rows.size();
  for (std::size_t i = 0; i < count; ++i) {
    bytes += parts_[i].rows.bytes.size();
    rows += parts_[i].rows.rows.size();
  }
  out.bytes.reserve(bytes);
  out.rows.reserve(rows);
  for (std::size_t i = 0; i < count; ++i) {
    append(out, parts_[i].rows);
    for (const Reject& reject : parts_[i].rejects) on_reject(reject);
  }
}

}  // namespace drover::ingest

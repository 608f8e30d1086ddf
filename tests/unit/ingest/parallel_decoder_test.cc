#include "parallel_decoder.h"

#include <gtest/gtest.h>

#include <random>

#include "decoding.h"
#include "json_decoder.h"

namespace drover::ingest::test {
namespace {

// Goal: parts decoded apart are what one decoder makes of the whole: bytes, order, versions, rejects.
// Method: batches around the sizes where parts begin, with bad records and timestamps that jump, both ways.
TEST(ParallelDecoder, PartsMakeTheBatchThatOneDecoderMakes) {
  std::mt19937 random(1);
  model::AttributeNames names;
  const auto make_one = [&] {
    return make_json_decoder(telemetry_mapping(), telemetry_table(), names, JsonWays::kAll);
  };
  const auto alone = make_one();
  ParallelDecoder parallel(3, make_one);
  SourceState alone_state{model::SourceId{1}};
  SourceState parallel_state{model::SourceId{1}};
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, ParallelDecoder::kPartRecordsMin * 2 - 1, ParallelDecoder::kPartRecordsMin * 2,
        ParallelDecoder::kPartRecordsMin * 3 + 1, model::kBatchRecordsMax}) {
    std::vector<std::optional<std::string>> values;
    for (std::size_t i = 0; i < size; ++i) {
      values.push_back(R"({"vehicleId":"V-)" + std::to_string(random() % 100) +
                       R"(","recordedAt":"2026-06-23T09:00:01Z","n":)" + std::to_string(i) +
                       (random() % 50 == 0 ? "" : "}"));
    }
    std::vector<model::RecordView> records = views(values);
    for (model::RecordView& record : records)
      record.timestamp_ms += static_cast<std::int64_t>(random() % 10'000'000) - 5'000'000;

    const auto decode = [&](Decoder& decoder, SourceState& state, std::vector<std::int64_t>& rejected) {
      model::RowBatch batch;
      decoder.decode({state.source, records}, state, kNowMs, batch,
                     [&](const Reject& reject) { rejected.push_back(reject.record->offset.value); });
      return batch;
    };
    std::vector<std::int64_t> rejected_alone;
    std::vector<std::int64_t> rejected_in_parts;
    const model::RowBatch whole = decode(*alone, alone_state, rejected_alone);
    const model::RowBatch joined = decode(parallel, parallel_state, rejected_in_parts);
    EXPECT_EQ(joined.bytes, whole.bytes) << size;
    EXPECT_EQ(rejected_in_parts, rejected_alone) << size;
    EXPECT_EQ(parallel_state.log_time_ms, alone_state.log_time_ms);
    ASSERT_EQ(joined.rows.size(), whole.rows.size());
    for (std::size_t i = 0; i < whole.rows.size(); ++i) {
      ASSERT_EQ(joined.rows[i].hash, whole.rows[i].hash);
      ASSERT_EQ(joined.rows[i].begin, whole.rows[i].begin);
      ASSERT_EQ(joined.partition_key(joined.rows[i]), whole.partition_key(whole.rows[i]));
    }
  }
}

}  // namespace
}  // namespace drover::ingest::test

#include "admin.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace drover::server {
namespace {

class Readiness : public testing::Test {
 protected:
  unsigned status() {
    HttpRequest request;
    request.method = "GET";
    request.target = "/readyz";
    unsigned status = 0;
    admin_.handle(request, [&](const HttpResponse& response) { status = response.status; });
    return status;
  }

  ingest::IngestStats ingest_;
  const std::unique_ptr<store::Store> store_ = store::Store::open({});
  Admin admin_{{.store = *store_,
                .ingest = [this] { return ingest_; },
                .api = [] { return metrics::ApiStats{}; },
                .checkpoints = [] { return store::CheckpointStats{}; },
                .version = "1",
                .reads_kafka = true}};
};

TEST_F(Readiness, APartitionOfWhichNothingIsKnownYetIsNotCaughtUp) {
  EXPECT_EQ(status(), 503u);
  ingest_.connected = true;
  ingest_.partitions.resize(2);
  EXPECT_EQ(status(), 503u);
  ingest_.partitions[0] = {.topic = "t", .records = 10, .next_offset = 10, .end_offset = 10};
  EXPECT_EQ(status(), 503u);  // the other one's end is unknown
  ingest_.partitions[1] = {.topic = "t", .end_offset = 1'000'000, .lag_records = 1'000'000};
  EXPECT_EQ(status(), 503u);  // and then far away
  ingest_.partitions[1] = {
      .topic = "t", .records = 1, .end_offset = 1'000'000, .lag_records = 999'999, .lag_seconds = 3'600};
  EXPECT_EQ(status(), 503u);
  ingest_.partitions[1].lag_seconds = 5;
  EXPECT_EQ(status(), 200u);
}

TEST_F(Readiness, OnceCaughtUpAMomentOfLagDoesNotTakeItOutOfService) {
  ingest_.connected = true;
  ingest_.partitions.push_back({.topic = "t", .end_offset = 0});
  EXPECT_EQ(status(), 200u);
  ingest_.partitions[0] = {
      .topic = "t", .records = 1, .end_offset = 1'000'000, .lag_records = 999'999, .lag_seconds = 3'600};
  EXPECT_EQ(status(), 200u);
  ingest_.connected = false;
  EXPECT_EQ(status(), 503u);
}

}  // namespace
}  // namespace drover::server

#include "drover/metrics/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace drover::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

std::int64_t now_ns = 0;

ingest::IngestStats some_ingest() {
  ingest::IngestStats ingest;
  ingest.group = "drover";
  for (int partition = 0; partition < 2; ++partition) {
    ingest::PartitionStats stats;
    stats.topic = "fleet";
    stats.partition = partition;
    stats.records = 100 + static_cast<std::uint64_t>(partition);
    stats.bytes = 11'000;
    stats.lag_records = 7;
    stats.lag_seconds = 1.5;
    stats.last_advance_ms = 1'700'000'000'500;
    stats.paused = partition == 1;
    stats.direct = partition == 0;
    ingest.partitions.push_back(stats);
  }
  ingest::IngestStats::TopicRejects rejects;
  rejects.topic = "fleet";
  rejects.by_reason[static_cast<std::size_t>(ingest::RejectReason::kNotJson)] = 3;
  ingest.rejects.push_back(rejects);
  ingest.rebalances = 2;
  ingest.rows_dropped = 5;
  ingest.hand_backs = 4;
  ingest.renewals = 6;
  ingest.records_missed = 7;
  ingest.connected = true;
  return ingest;
}

/// A table with two shards, and its index.
store::StoreStats some_store(std::uint64_t collections = 3) {
  store::StoreStats store;
  store.rows_stored = 90;
  store.rows_repeated = 4;
  store.rows_conflicting = 1;
  store.rows_late = 6;
  store.rows_refused = 8;
  store.rows_over_limit = 3;
  for (const char* index : {"", "depot"}) {
    store::SpaceStats space;
    space.table = "telemetry";
    space.index = index;
    for (std::uint16_t number = 0; number < 2; ++number) {
      store::ShardStats shard;
      shard.shard = number;
      shard.heat = {.writer_time_ns = 2'500'000'000, .records = 45, .bytes = 4'500, .reads = 12, .batches = 9};
      shard.queue_depth = 1;
      shard.queue_capacity = 8;
      shard.collections = collections;
      shard.items = 10 * collections;
      shard.bytes = 1'000 * collections;
      shard.hot_keys = {{"VEH#HOT", 30, 1}, {"VEH#WARM", 12, 10}};
      shard.hot_key_samples = 100;
      space.shards.push_back(shard);
    }
    space.collections_by_items = {1, 2, 3, 0, 0, 0, 0, 0, 4};
    space.collections_by_bytes = {0, 10, 0, 0, 0, 0, 0, 0, 0};
    space.items_expired = space.index.empty() ? 21 : 0;
    space.largest_collection_items = 1'234;
    space.largest_collection_bytes = 56'789;
    space.largest_collection_key = "VEH#LARGEST";
    store.spaces.push_back(space);
  }
  return store;
}

ApiStats some_api() {
  OperationStats query;
  query.operation = "Query";
  query.ok = 40;
  query.client_errors = 2;
  query.throttled = 1;
  query.by_duration[0] = 30;
  query.by_duration[3] = 12;
  query.by_duration.back() = 1;
  query.duration_seconds_sum = 2.25;
  return {.operations = {query}};
}

Sources some_sources() {
  return {.ingest = &some_ingest,
          .store = [] { return some_store(); },
          .api = &some_api,
          .checkpoints = [] { return store::CheckpointStats{}; },
          .version = "1.2.3",
          .steady_clock_ns = [] { return now_ns; }};
}

std::string scrape() {
  return Collector(some_sources()).scrape();
}

/// Every series, without its value.
std::size_t series_count(const std::string& scraped) {
  std::istringstream lines(scraped);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) count += !line.empty() && line[0] != '#' ? 1 : 0;
  return count;
}

TEST(Collector, CountsWhatCameFromKafkaByTopicAndPartition) {
  const std::string scraped = scrape();
  EXPECT_THAT(scraped, HasSubstr("drover_records_consumed_total{topic=\"fleet\",partition=\"0\"} 100\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_records_consumed_total{topic=\"fleet\",partition=\"1\"} 101\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_bytes_consumed_total{topic=\"fleet\",partition=\"0\"} 11000\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_consumer_lag_records{group=\"drover\",topic=\"fleet\",partition=\"1\"} 7\n"));
  EXPECT_THAT(scraped,
              HasSubstr("drover_consumer_lag_seconds{group=\"drover\",topic=\"fleet\",partition=\"1\"} 1.5\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_partition_paused{topic=\"fleet\",partition=\"0\"} 0\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_partition_paused{topic=\"fleet\",partition=\"1\"} 1\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_kafka_connected 1\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_partition_direct{topic=\"fleet\",partition=\"0\"} 1\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_partition_direct{topic=\"fleet\",partition=\"1\"} 0\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_rebalances_total 2\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_hand_backs_total 4\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_sources_renewed_total 6\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_records_missed_total 7\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_records_dropped_total 5\n"));
}

TEST(Collector, ShowsEveryRejectReasonAlsoTheOnesThatNeverHappened) {
  const std::string scraped = scrape();
  EXPECT_THAT(scraped, HasSubstr("drover_records_rejected_total{topic=\"fleet\",reason=\"not_json\"} 3\n"));
  for (std::size_t reason = 0; reason < static_cast<std::size_t>(ingest::RejectReason::kCount); ++reason) {
    const std::string name(ingest::wire_name(static_cast<ingest::RejectReason>(reason)));
    EXPECT_THAT(scraped, HasSubstr("drover_records_rejected_total{topic=\"fleet\",reason=\"" + name + "\"}"));
  }
}

TEST(Collector, CountsWhatTheStoreDidWithTheRecords) {
  const std::string scraped = scrape();
  EXPECT_THAT(scraped, HasSubstr("drover_records_stored_total 90\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_records_duplicate_total{kind=\"exact\"} 4\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_records_duplicate_total{kind=\"conflict\"} 1\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_records_late_total 6\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_records_refused_total{reason=\"item\"} 5\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_records_refused_total{reason=\"collection\"} 3\n"));
}

TEST(Collector, CountsExpiredItemsByTableAlone) {
  const std::string scraped = scrape();
  EXPECT_THAT(scraped, HasSubstr("drover_items_expired_total{table=\"telemetry\"} 21\n"));
  EXPECT_EQ(scraped.find("drover_items_expired_total{", scraped.find("drover_items_expired_total{") + 1),
            std::string::npos);
}

TEST(Collector, ShowsHeatPerShardOfTablesAndIndexes) {
  const std::string scraped = scrape();
  EXPECT_THAT(scraped,
              HasSubstr("drover_shard_writer_seconds_total{table=\"telemetry\",index=\"depot\",shard=\"1\"} 2.5\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_shard_records_total{table=\"telemetry\",index=\"\",shard=\"0\"} 45\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_shard_bytes_total{table=\"telemetry\",index=\"\",shard=\"0\"} 4500\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_shard_items_read_total{table=\"telemetry\",index=\"\",shard=\"0\"} 12\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_shard_queue_depth{table=\"telemetry\",index=\"\",shard=\"0\"} 1\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_shard_queue_capacity{table=\"telemetry\",index=\"\",shard=\"0\"} 8\n"));
}

TEST(Collector, MakesAHeatRatioOutOfTwoScrapes) {
  std::uint64_t writer_time_ns = 0;
  Sources sources = some_sources();
  sources.store = [&] {
    store::StoreStats store = some_store();
    store.spaces[0].shards[1].heat.writer_time_ns = writer_time_ns;
    return store;
  };
  const Collector collector(sources);
  now_ns = 1'000'000'000;
  collector.scrape();
  now_ns = 5'000'000'000;
  writer_time_ns = 3'000'000'000;
  const std::string scraped = collector.scrape();
  EXPECT_THAT(scraped, HasSubstr("drover_shard_heat_ratio{table=\"telemetry\",index=\"\",shard=\"1\"} 0.75\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_shard_heat_ratio{table=\"telemetry\",index=\"\",shard=\"0\"} 0\n"));
}

TEST(Collector, SumsCollectionsOverShardsAndShowsTheirSizesAsAHistogram) {
  const std::string scraped = scrape();
  EXPECT_THAT(scraped, HasSubstr("drover_collections{table=\"telemetry\",index=\"\"} 6\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_items{table=\"telemetry\",index=\"\"} 60\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_item_bytes{table=\"telemetry\",index=\"\"} 6000\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_largest_collection_items{table=\"telemetry\",index=\"\"} 1234\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_largest_collection_bytes{table=\"telemetry\",index=\"\"} 56789\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_collection_items_bucket{table=\"telemetry\",index=\"\",le=\"1\"} 1\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_collection_items_bucket{table=\"telemetry\",index=\"\",le=\"100\"} 6\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_collection_items_bucket{table=\"telemetry\",index=\"\",le=\"+Inf\"} 10\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_collection_items_sum{table=\"telemetry\",index=\"\"} 60\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_collection_bytes_bucket{table=\"telemetry\",index=\"\",le=\"16384\"} 10\n"));
}

TEST(Collector, CountsHotKeysByWhatTheyAreSureToHaveAndNamesNone) {
  const std::string scraped = scrape();
  EXPECT_THAT(scraped, HasSubstr("drover_hot_keys{table=\"telemetry\",index=\"\"} 2\n")) << "one in each of two shards";
  EXPECT_THAT(scraped, Not(HasSubstr("VEH#")));
}

TEST(Collector, CountsQueriesByOperationAndResultAndTimesThem) {
  const std::string scraped = scrape();
  EXPECT_THAT(scraped, HasSubstr("drover_queries_total{op=\"Query\",result=\"ok\"} 40\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_queries_total{op=\"Query\",result=\"client_error\"} 2\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_queries_total{op=\"Query\",result=\"throttled\"} 1\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_query_duration_seconds_bucket{op=\"Query\",le=\"0.001\"} 42\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_query_duration_seconds_bucket{op=\"Query\",le=\"+Inf\"} 43\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_query_duration_seconds_count{op=\"Query\"} 43\n"));
  EXPECT_THAT(scraped, HasSubstr("drover_query_duration_seconds_sum{op=\"Query\"} 2.25\n"));
}

TEST(Collector, TheNumberOfSeriesDoesNotDependOnTheNumberOfVehicles) {
  Sources few = some_sources();
  Sources many = some_sources();
  many.store = [] {
    store::StoreStats store = some_store(1'000'000);
    for (int key = 0; key < 1'000; ++key)
      store.spaces[0].shards[0].hot_keys.push_back({"VEH#" + std::to_string(key), 50, 0});
    return store;
  };
  EXPECT_EQ(series_count(Collector(few).scrape()), series_count(Collector(many).scrape()));
}

TEST(Collector, ShowsTheProcess) {
  const std::string scraped = scrape();
  const auto value_of = [&](const std::string& name) {
    const std::size_t at = scraped.find("\n" + name + " ");
    return at == std::string::npos ? -1.0 : std::stod(scraped.substr(at + name.size() + 2));
  };
  EXPECT_THAT(scraped, HasSubstr("drover_build_info{version=\"1.2.3\"} 1\n"));
  EXPECT_GE(value_of("process_cpu_seconds_total"), 0);
  EXPECT_GT(value_of("process_resident_memory_bytes"), 1e6);
  EXPECT_GE(value_of("process_virtual_memory_bytes"), value_of("process_resident_memory_bytes"));
  EXPECT_GE(value_of("process_open_fds"), 3);
  EXPECT_GE(value_of("process_max_fds"), value_of("process_open_fds"));
  EXPECT_GE(value_of("process_threads"), 1);
  EXPECT_NEAR(value_of("process_start_time_seconds"), static_cast<double>(std::time(nullptr)), 3'600);
}

TEST(Collector, AnEmptyDroverHasMetricsToo) {
  Sources sources{.ingest = [] { return ingest::IngestStats{}; },
                  .store = [] { return store::StoreStats{}; },
                  .api = [] { return ApiStats{}; },
                  .checkpoints = [] { return store::CheckpointStats{}; },
                  .version = "1.2.3"};
  EXPECT_THAT(Collector(sources).scrape(), HasSubstr("drover_records_stored_total 0\n"));
}

TEST(Collector, PromtoolAcceptsTheScrape) {
  const std::filesystem::path file =
      std::filesystem::path(testing::TempDir()) / ("drover-scrape-" + std::to_string(getpid()) + ".txt");
  std::ofstream(file) << scrape();
  FILE* promtool = popen(("promtool check metrics < " + file.string() + " 2>&1").c_str(), "r");
  ASSERT_NE(promtool, nullptr);
  std::string said;
  for (int byte = 0; (byte = std::fgetc(promtool)) != EOF;) said += static_cast<char>(byte);
  const int status = pclose(promtool);
  std::filesystem::remove(file);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << said;
  EXPECT_EQ(said, "");
}

}  // namespace
}  // namespace drover::metrics

#include "loadtest/quickstart/feeder.h"

#include <algorithm>
#include <chrono>

namespace drover::loadtest {
namespace {

constexpr std::int64_t kLookAtPipelineEvery = 1'024;  // records
constexpr auto kTick = std::chrono::milliseconds(20);

}  // namespace

std::int64_t records_ahead(KafkaFeed& feed, const server::Pipeline& pipeline) {
  std::vector<std::int64_t> left = feed.delivered();
  for (const ingest::PartitionStats& partition : pipeline.ingest_stats().partitions) {
    const auto index = static_cast<std::size_t>(partition.partition);
    if (index < left.size()) left[index] -= std::max<std::int64_t>(partition.next_offset, 0);
  }
  std::int64_t ahead = feed.waiting();
  for (const std::int64_t records : left) ahead += std::max<std::int64_t>(records, 0);
  return ahead;
}

Feeder::Feeder(Options options, KafkaFeed& feed, const server::Pipeline& pipeline)
    : options_(std::move(options)), feed_(feed), pipeline_(pipeline), fleet_(options_.fleet) {
  if (!options_.record_file.empty()) record_file_.open(options_.record_file, std::ios::binary);
  thread_ = std::thread([this] { run(); });
}

Feeder::~Feeder() {
  stop();
}

void Feeder::stop() {
  stopping_.store(true);
  if (thread_.joinable()) thread_.join();
}

void Feeder::run() {
  for (std::uint32_t vehicle = 0; vehicle < options_.fleet.vehicles && !stopping(); ++vehicle) {
    send(fleet_.vehicle_id(vehicle), fleet_.meta_value(vehicle));
  }
  const std::int64_t live_from_ms = options_.fleet.begin_ms + options_.history_ms;
  send_until(live_from_ms);
  while (!stopping() && feed_.waiting() > 0) std::this_thread::sleep_for(kTick);
  if (record_file_.is_open()) record_file_ << std::endl;
  history_sent_.store(true);

  while (!stopping() && !live_.load()) std::this_thread::sleep_for(kTick);
  const auto begin = std::chrono::steady_clock::now();
  while (!stopping()) {
    const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begin;
    send_until(live_from_ms + static_cast<std::int64_t>(passed.count() * options_.speedup));
    std::this_thread::sleep_for(kTick);
  }
}

void Feeder::send_until(std::int64_t fleet_time_ms) {
  while (!stopping() && fleet_.now_ms() < fleet_time_ms) {
    const Reading reading = fleet_.next();
    send(fleet_.vehicle_id(reading.vehicle), fleet_.value(reading));
  }
}

void Feeder::send(std::string_view key, std::string_view value) {
  if (records_sent_ % kLookAtPipelineEvery == 0) {
    while (!stopping() && records_ahead(feed_, pipeline_) > kRunAheadRecordsMax) std::this_thread::sleep_for(kTick);
  }
  feed_.send(key, value);
  if (record_file_.is_open()) record_file_ << value << '\n';
  ++records_sent_;
}

}  // namespace drover::loadtest

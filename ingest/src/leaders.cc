#include "leaders.h"

#include <span>

namespace drover::ingest {
namespace {

constexpr int kTimeoutMs = 1'000;
constexpr std::int64_t kAgeNsMax = 1'000'000'000;

}  // namespace

std::optional<BrokerAddress> Leaders::find(rd_kafka_t* handle, const std::string& topic, std::int32_t partition,
                                           std::int64_t now_ns) {
  if (asked_ns_ < 0 || now_ns - asked_ns_ > kAgeNsMax) {
    asked_ns_ = now_ns;
    ask(handle);
  }
  const auto leader = leaders_.find({topic, partition});
  return leader != leaders_.end() ? std::optional(leader->second) : std::nullopt;
}

void Leaders::ask(rd_kafka_t* handle) {
  leaders_.clear();
  const struct rd_kafka_metadata* metadata = nullptr;
  if (rd_kafka_metadata(handle, 0, nullptr, &metadata, kTimeoutMs) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
  const Holder<const struct rd_kafka_metadata, rd_kafka_metadata_destroy> holder(metadata);
  std::map<std::int32_t, BrokerAddress> brokers;
  for (const auto& broker : std::span(metadata->brokers, static_cast<std::size_t>(metadata->broker_cnt))) {
    brokers[broker.id] = {broker.host, static_cast<std::uint16_t>(broker.port)};
  }
  for (const auto& topic : std::span(metadata->topics, static_cast<std::size_t>(metadata->topic_cnt))) {
    for (const auto& partition : std::span(topic.partitions, static_cast<std::size_t>(topic.partition_cnt))) {
      const auto leader = brokers.find(partition.leader);
      if (leader != brokers.end()) leaders_[{topic.topic, partition.id}] = leader->second;
    }
  }
}

}  // namespace drover::ingest

#include "heat_report.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>
#include <vector>

#include "drover/model/clock.h"
#include "drover/model/key.h"

namespace drover::server {
namespace {

namespace json = boost::json;

constexpr std::size_t kHottestKeysMax = 20;  // of a table or index

/// How an encoded partition key is shown to people. (Empty: there is none.)
std::string key_text(model::KeyType type, std::string_view encoded) {
  if (encoded.empty()) return "";
  const model::AttributeValue value = model::key_value(type, encoded);
  switch (type) {
    case model::KeyType::kString:
      return value.bytes;
    case model::KeyType::kNumber:
      return value.number.text();
    case model::KeyType::kBinary:
      break;
  }
  constexpr char kHex[] = "0123456789abcdef";
  std::string text = "0x";
  for (const char byte : value.bytes) {
    text += kHex[static_cast<unsigned char>(byte) >> 4];
    text += kHex[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

/// What a counter has gained. It may have begun anew: a table that was deleted and created again.
double gained(std::uint64_t now, std::uint64_t before) {
  return static_cast<double>(now < before ? now : now - before);
}

struct HotKey {
  std::string key;
  double share_of_shard = 0;
  double records_per_second = 0;
  std::uint16_t shard = 0;
};

json::array to_json(std::vector<HotKey> keys) {
  std::sort(keys.begin(), keys.end(), [](const HotKey& a, const HotKey& b) {
    return std::tie(b.records_per_second, b.share_of_shard, a.key) <
           std::tie(a.records_per_second, a.share_of_shard, b.key);
  });
  keys.resize(std::min(keys.size(), kHottestKeysMax));
  json::array out;
  for (const HotKey& key : keys) {
    out.push_back(json::object{{"key", key.key},
                               {"shard", key.shard},
                               {"share_of_shard", key.share_of_shard},
                               {"records_per_second", key.records_per_second}});
  }
  return out;
}

/// The key type of a table's or an index's partition key; text if it has just been deleted.
model::KeyType partition_key_type(const store::Store& store, const store::SpaceStats& space) {
  const auto table = store.find_table(space.table);
  if (table == nullptr) return model::KeyType::kString;
  if (space.index.empty()) return table->schema().key.partition_key.type;
  const model::IndexSchema* index = table->schema().find_index(space.index);
  return index == nullptr ? model::KeyType::kString : index->key.partition_key.type;
}

}  // namespace

HeatReport::HeatReport(const store::Store& store) : store_(store), last_report_ns_(model::steady_clock_ns()) {}

std::string HeatReport::json() {
  const store::StoreStats stats = store_.stats();
  const std::int64_t now_ns = model::steady_clock_ns();
  const double window_seconds = std::max(1e-3, static_cast<double>(now_ns - last_report_ns_) / 1e9);
  std::map<ShardKey, partitioner::ShardHeat> heat_now;

  json::array spaces;
  for (const store::SpaceStats& space : stats.spaces) {
    const model::KeyType key_type = partition_key_type(store_, space);
    json::array shards;
    std::vector<HotKey> hot_keys;
    for (const store::ShardStats& shard : space.shards) {
      const ShardKey key{space.table, space.index, shard.shard};
      const partitioner::ShardHeat& heat = heat_now[key] = shard.heat;
      const partitioner::ShardHeat before = last_heat_[key];
      const double records_per_second = gained(heat.records, before.records) / window_seconds;
      shards.push_back(
          json::object{{"shard", shard.shard},
                       {"segments", json::array{shard.segment_begin, shard.segment_end}},
                       {"records", heat.records},
                       {"bytes", heat.bytes},
                       {"items_read", heat.reads},
                       {"writer_time_seconds", static_cast<double>(heat.writer_time_ns) / 1e9},
                       {"heat_ratio", gained(heat.writer_time_ns, before.writer_time_ns) / 1e9 / window_seconds},
                       {"records_per_second", records_per_second},
                       {"items_read_per_second", gained(heat.reads, before.reads) / window_seconds},
                       {"queue_depth", shard.queue_depth},
                       {"queue_capacity", shard.queue_capacity},
                       {"collections", shard.collections},
                       {"items", shard.items},
                       {"stored_bytes", shard.bytes}});
      for (const partitioner::HotKey& hot : shard.hot_keys) {
        const double share =
            static_cast<double>(hot.count) / static_cast<double>(std::max<std::uint64_t>(1, shard.hot_key_samples));
        hot_keys.push_back({key_text(key_type, hot.partition_key), share, share * records_per_second, shard.shard});
      }
    }
    spaces.push_back(
        json::object{{"table", space.table},
                     {"index", space.index},
                     {"shards", std::move(shards)},
                     {"hottest_keys", to_json(std::move(hot_keys))},
                     {"largest_collection", json::object{{"key", key_text(key_type, space.largest_collection_key)},
                                                         {"items", space.largest_collection_items},
                                                         {"bytes", space.largest_collection_bytes}}}});
  }
  last_report_ns_ = now_ns;
  last_heat_ = std::move(heat_now);
  return json::serialize(json::object{{"window_seconds", window_seconds}, {"spaces", std::move(spaces)}}) + "\n";
}

}  // namespace drover::server

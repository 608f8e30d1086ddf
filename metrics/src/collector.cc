#include "drover/metrics/collector.h"

#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "drover/model/sync.h"
#include "families.h"
#include "heat_window.h"
#include "process.h"

namespace drover::metrics {
namespace {

using Families = std::vector<prometheus::MetricFamily>;

/// A key is hot when it makes up this share of its shard's records, or more.
constexpr double kHotKeyShare = 0.1;

Labels of_space(const store::SpaceStats& space) {
  return {{"table", space.table}, {"index", space.index}};
}
Labels of_shard(const store::SpaceStats& space, const store::ShardStats& shard) {
  return {{"table", space.table}, {"index", space.index}, {"shard", std::to_string(shard.shard)}};
}
Labels of_partition(const ingest::PartitionStats& partition) {
  return {{"topic", partition.topic}, {"partition", std::to_string(partition.partition)}};
}

void collect_ingest(const ingest::IngestStats& ingest, Families& out) {
  Family records = counter("drover_records_consumed_total", "Records consumed from Kafka.");
  Family bytes = counter("drover_bytes_consumed_total", "Bytes of the values of the records consumed.");
  Family lag_records =
      gauge("drover_consumer_lag_records", "Records between the next one to consume and the partition's end.");
  Family lag_seconds =
      gauge("drover_consumer_lag_seconds", "Age of the record consumed last while more are waiting; 0 when none is.");
  Family last_advance = gauge("drover_partition_last_advance_timestamp_seconds",
                              "When a record of the partition was consumed last, seconds since 1970; 0: not yet.");
  Family paused =
      gauge("drover_partition_paused", "1 while the partition is not polled because a shard's inbox is full.");
  Family direct =
      gauge("drover_partition_direct", "1 while Drover fetches the partition itself, 0 while librdkafka does it.");
  for (const ingest::PartitionStats& partition : ingest.partitions) {
    Labels group = of_partition(partition);
    group.insert(group.begin(), {"group", ingest.group});
    records.add(of_partition(partition), partition.records);
    bytes.add(of_partition(partition), partition.bytes);
    lag_records.add(group, partition.lag_records);
    lag_seconds.add(group, partition.lag_seconds);
    last_advance.add(of_partition(partition), static_cast<double>(partition.last_advance_ms) / 1e3);
    paused.add(of_partition(partition), partition.paused ? 1 : 0);
    direct.add(of_partition(partition), partition.direct ? 1 : 0);
  }
  for (Family* family : {&records, &bytes, &lag_records, &lag_seconds, &last_advance, &paused, &direct})
    family->move_to(out);

  Family rejected = counter("drover_records_rejected_total", "Records that were skipped, by what was wrong with them.");
  for (const ingest::IngestStats::TopicRejects& topic : ingest.rejects) {
    for (std::size_t reason = 0; reason < topic.by_reason.size(); ++reason) {
      const std::string name(ingest::wire_name(static_cast<ingest::RejectReason>(reason)));
      rejected.add({{"topic", topic.topic}, {"reason", name}}, topic.by_reason[reason]);
    }
  }
  rejected.move_to(out);
  counter("drover_rebalances_total", "Rebalances of the consumer group that this process saw.")
      .add({}, ingest.rebalances)
      .move_to(out);
  counter("drover_hand_backs_total",
          "Times that a partition which Drover fetched itself was given back to librdkafka: another leader, a lost "
          "connection, an offset that is gone, aborted transactions.")
      .add({}, ingest.hand_backs)
      .move_to(out);
  counter(
      "drover_sources_renewed_total",
      "Kafka partitions whose topic was deleted and made anew while Drover was stopped: all of the new one is read.")
      .add({}, ingest.renewals)
      .move_to(out);
  counter(
      "drover_records_missed_total",
      "Offsets that Kafka had let go of before they were read, since Drover was stopped for longer than it keeps them.")
      .add({}, ingest.records_missed)
      .move_to(out);
  counter("drover_records_dropped_total", "Records whose table was deleted while they were on their way.")
      .add({}, ingest.rows_dropped)
      .move_to(out);
  gauge("drover_kafka_connected", "1 while a broker answers and partitions are assigned.")
      .add({}, ingest.connected ? 1 : 0)
      .move_to(out);
}

void collect_totals(const store::StoreStats& store, Families& out) {
  counter("drover_records_stored_total", "Records that changed a table.").add({}, store.rows_stored).move_to(out);
  counter("drover_records_duplicate_total",
          "Records whose key was there already: exact repeats change nothing, of conflicting ones the newer stays.")
      .add({{"kind", "exact"}}, store.rows_repeated)
      .add({{"kind", "conflict"}}, store.rows_conflicting)
      .move_to(out);
  counter("drover_records_late_total", "Records stored in front of their collection's newest item.")
      .add({}, store.rows_late)
      .move_to(out);
  counter("drover_records_refused_total",
          "Records not stored: with what it inherits the item would pass 400 KB or can't be a key of an index (item), "
          "or its collection is as large as a local index allows (collection).")
      .add({{"reason", "item"}}, store.rows_refused - store.rows_over_limit)
      .add({{"reason", "collection"}}, store.rows_over_limit)
      .move_to(out);
}

void collect_shards(const store::StoreStats& store, const HeatWindow& window, Families& out) {
  Family heat = gauge("drover_shard_heat_ratio",
                      "Share of the last 10 to 20 s that the shard's writer ran: 1 is a shard that can take no more.");
  Family writer_time = counter("drover_shard_writer_seconds_total", "Time that the shard's writer ran.");
  Family records = counter("drover_shard_records_total", "Rows that the shard's writer applied.");
  Family bytes = counter("drover_shard_bytes_total", "Bytes of the rows that the shard's writer applied.");
  Family reads = counter("drover_shard_items_read_total", "Items that queries read from the shard.");
  Family depth = gauge("drover_shard_queue_depth", "Batches that wait in the shard's inbox.");
  Family capacity =
      gauge("drover_shard_queue_capacity", "Batches that the shard's inbox takes; full, it stops the polling.");
  for (const store::SpaceStats& space : store.spaces) {
    for (const store::ShardStats& shard : space.shards) {
      const Labels labels = of_shard(space, shard);
      heat.add(labels, window.ratio(space, shard));
      writer_time.add(labels, static_cast<double>(shard.heat.writer_time_ns) / 1e9);
      records.add(labels, shard.heat.records);
      bytes.add(labels, shard.heat.bytes);
      reads.add(labels, shard.heat.reads);
      depth.add(labels, shard.queue_depth);
      capacity.add(labels, shard.queue_capacity);
    }
  }
  for (Family* family : {&heat, &writer_time, &records, &bytes, &reads, &depth, &capacity}) family->move_to(out);
}

std::size_t hot_keys(const store::ShardStats& shard) {
  return static_cast<std::size_t>(
      std::count_if(shard.hot_keys.begin(), shard.hot_keys.end(), [&](const partitioner::HotKey& key) {
        return static_cast<double>(key.count - key.error) >= kHotKeyShare * static_cast<double>(shard.hot_key_samples);
      }));
}

void collect_collections(const store::StoreStats& store, Families& out) {
  Family collections = gauge("drover_collections", "Item collections of a table (index: empty) or an index.");
  Family items = gauge("drover_items", "Items of a table (index: empty) or an index.");
  Family bytes = gauge("drover_item_bytes", "Bytes of the items as they are stored.");
  Family hot =
      gauge("drover_hot_keys", "Partition keys that make up a tenth of their shard's records or more; see /heat.");
  Family largest_items =
      gauge("drover_largest_collection_items", "Items of the largest collection; its key is at /heat.");
  Family largest_bytes =
      gauge("drover_largest_collection_bytes", "Bytes of the largest collection; its key is at /heat.");
  Family expired =
      counter("drover_items_expired_total", "Items of a table that were removed when their time had come.");
  Family by_items = histogram("drover_collection_items",
                              "Collections by their number of items, as they are now: use it without rate().");
  Family by_bytes = histogram("drover_collection_bytes",
                              "Collections by their stored bytes, as they are now: use it without rate().");
  for (const store::SpaceStats& space : store.spaces) {
    std::uint64_t collection_count = 0;
    std::uint64_t item_count = 0;
    std::uint64_t byte_count = 0;
    std::size_t hot_key_count = 0;
    for (const store::ShardStats& shard : space.shards) {
      collection_count += shard.collections;
      item_count += shard.items;
      byte_count += shard.bytes;
      hot_key_count += hot_keys(shard);
    }
    const Labels labels = of_space(space);
    collections.add(labels, collection_count);
    items.add(labels, item_count);
    bytes.add(labels, byte_count);
    hot.add(labels, hot_key_count);
    if (space.index.empty()) expired.add({{"table", space.table}}, space.items_expired);
    largest_items.add(labels, space.largest_collection_items);
    largest_bytes.add(labels, space.largest_collection_bytes);
    by_items.add_histogram(labels, store::kCollectionItemsBounds, space.collections_by_items,
                           static_cast<double>(item_count));
    by_bytes.add_histogram(labels, store::kCollectionBytesBounds, space.collections_by_bytes,
                           static_cast<double>(byte_count));
  }
  for (Family* family :
       {&collections, &items, &bytes, &hot, &expired, &largest_items, &largest_bytes, &by_items, &by_bytes}) {
    family->move_to(out);
  }
}

void collect_queries(const ApiStats& api, Families& out) {
  Family queries = counter("drover_queries_total", "Requests at the DynamoDB address, by operation and result.");
  Family duration =
      histogram("drover_query_duration_seconds", "From the request's arrival to its answer, by operation.");
  for (const OperationStats& operation : api.operations) {
    queries.add({{"op", operation.operation}, {"result", "ok"}}, operation.ok)
        .add({{"op", operation.operation}, {"result", "client_error"}}, operation.client_errors)
        .add({{"op", operation.operation}, {"result", "throttled"}}, operation.throttled);
    duration.add_histogram({{"op", operation.operation}}, kQueryDurationBounds, operation.by_duration,
                           operation.duration_seconds_sum);
  }
  queries.move_to(out);
  duration.move_to(out);
}

void collect_checkpoints(const store::CheckpointStats& checkpoints, Families& out) {
  if (!checkpoints.durable) return;
  constexpr double kNsPerSecond = 1e9;
  counter("drover_checkpoints_total", "Checkpoints, by whether they could be written.")
      .add({{"result", "ok"}}, checkpoints.written)
      .add({{"result", "failed"}}, checkpoints.failed)
      .move_to(out);
  gauge("drover_checkpoint_last_timestamp_seconds",
        "When the last checkpoint was durable, seconds since 1970; 0: none since the start.")
      .add({}, static_cast<double>(checkpoints.last_ms) / 1e3)
      .move_to(out);
  counter("drover_checkpoint_bytes_total", "Bytes that checkpoints handed to RocksDB.")
      .add({}, checkpoints.bytes)
      .move_to(out);
  gauge("drover_checkpoint_duration_seconds", "How long the last checkpoint took, from the cut to the device.")
      .add({}, static_cast<double>(checkpoints.last_duration_ns) / kNsPerSecond)
      .move_to(out);
  counter("drover_checkpoint_hold_seconds_total", "How long ingest was held for cuts.")
      .add({}, static_cast<double>(checkpoints.hold_ns_sum) / kNsPerSecond)
      .move_to(out);
  gauge("drover_checkpoint_hold_seconds", "How long ingest was held for the last cut.")
      .add({}, static_cast<double>(checkpoints.last_hold_ns) / kNsPerSecond)
      .move_to(out);
  gauge("drover_store_free_bytes", "Free room on the device of store.directory.")
      .add({}, checkpoints.free_bytes)
      .move_to(out);
  gauge("drover_store_size_bytes", "Size of the device of store.directory.")
      .add({}, checkpoints.total_bytes)
      .move_to(out);
  gauge("drover_store_writable", "0 while store.directory can't be written and ingest waits.")
      .add({}, checkpoints.error.empty() ? 1 : 0)
      .move_to(out);
}

}  // namespace

class Collector::Impl final : public prometheus::Collectable {
 public:
  explicit Impl(Sources sources) : sources_(std::move(sources)) {}

  Families Collect() const override {
    const store::StoreStats store = sources_.store();
    Families out;
    collect_ingest(sources_.ingest(), out);
    collect_totals(store, out);
    {
      model::LockGuard lock(mutex_);
      window_.advance(store, sources_.steady_clock_ns());
      collect_shards(store, window_, out);
    }
    collect_collections(store, out);
    collect_queries(sources_.api(), out);
    collect_checkpoints(sources_.checkpoints(), out);
    gauge("drover_build_info", "1, with the version as a label.").add({{"version", sources_.version}}, 1).move_to(out);
    collect_process(out);
    return out;
  }

 private:
  const Sources sources_;
  mutable model::Mutex mutex_;
  mutable HeatWindow window_ GUARDED_BY(mutex_);
};

Collector::Collector(Sources sources) : impl_(std::make_unique<Impl>(std::move(sources))) {}
Collector::~Collector() = default;

std::string Collector::scrape() const {
  return prometheus::TextSerializer().Serialize(impl_->Collect());
}

}  // namespace drover::metrics

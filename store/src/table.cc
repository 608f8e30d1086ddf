#include "table.h"

#include <algorithm>

namespace drover::store {
namespace {

std::uint16_t shards_of(const Shared& shared) {
  const std::uint16_t configured = shared.options.shards_per_table;
  return configured != 0 ? configured
                         : static_cast<std::uint16_t>(std::min<std::uint32_t>(shared.executor.workers() * 2, 256));
}

bool below(std::string_view key, const KeyRange::Bound& bound) {
  return bound.inclusive ? key < bound.key : key <= bound.key;
}
bool above(std::string_view key, const KeyRange::Bound& bound) {
  return bound.inclusive ? key > bound.key : key >= bound.key;
}

/// Visits a collection's items within `range`; false: the visitor has seen enough.
bool visit_range(const Collection& collection, const KeyRange& range, bool ascending, const Visit& visit,
                 model::Status& status) {
  Cursor cursor(collection);
  bool more = false;
  if (ascending) {
    if (!range.lower) {
      cursor.seek_first();
    } else if (range.lower->inclusive) {
      cursor.seek_lower_bound(range.lower->key);
    } else {
      cursor.seek_upper_bound(range.lower->key);
    }
    more = cursor.at_row();
  } else {
    if (!range.upper) {
      cursor.seek_end();
    } else if (range.upper->inclusive) {
      cursor.seek_upper_bound(range.upper->key);
    } else {
      cursor.seek_lower_bound(range.upper->key);
    }
    more = cursor.previous();
  }
  for (; more; more = ascending ? cursor.next() : cursor.previous()) {
    const model::RowView row = cursor.row();
    if (ascending ? range.upper && above(row.sort_key(), *range.upper)
                  : range.lower && below(row.sort_key(), *range.lower)) {
      break;
    }
    // What lies in front of a block that can't be read is as good as before it was met.
    if (!cursor.status().ok()) break;
    if (!row.tombstone() && !visit({collection.partition_key(), row})) return false;
  }
  if (!cursor.status().ok()) status = {model::StatusCode::kUnavailable, cursor.status().message()};
  return true;
}

}  // namespace

std::shared_ptr<MemoryTable> MemoryTable::make(Shared& shared, const model::TableSchema& schema, Identity identity) {
  std::shared_ptr<MemoryTable> table(new MemoryTable(shared, schema, std::move(identity)));
  for (const auto& shard : table->shards_) {
    shard->set_owner(table);
    shard->set_table_id(table->id());
  }
  for (const auto& index : table->indexes_) {
    for (const auto& shard : index->shards) shard->set_owner(table);
  }
  return table;
}

MemoryTable::MemoryTable(Shared& shared, const model::TableSchema& schema, Identity identity)
    : shared_(shared),
      schema_(schema),
      identity_(std::move(identity)),
      space_(CollectionTuning{}),
      map_(partitioner::ShardMap::uniform(shards_of(shared_))),
      retention_(identity_.retention) {
  std::vector<GlobalIndex*> global;
  for (const model::IndexSchema& index : schema_.indexes) {
    if (index.local) continue;
    indexes_.push_back(std::make_unique<GlobalIndex>(shared_, schema_, index, shards_of(shared_)));
    global.push_back(indexes_.back().get());
  }
  std::vector<TableShard*> upstream;
  for (std::uint16_t i = 0; i < shards_of(shared_); ++i) {
    shards_.push_back(
        std::make_unique<TableShard>(shared_, space_, partitioner::ShardId{i}, schema_, global, stamps_, counters_));
    upstream.push_back(shards_.back().get());
  }
  for (GlobalIndex* index : global) {
    for (const auto& shard : index->shards) shard->set_upstream(upstream);
  }
}

std::vector<partitioner::RoutedBatch> MemoryTable::route(std::shared_ptr<const model::RowBatch> rows) const {
  return partitioner::route(rows, map_.current());
}

model::Status MemoryTable::submit(partitioner::RoutedBatch&& batch) {
  if (closed_.load(std::memory_order_acquire)) return {model::StatusCode::kStopping, "table deleted: " + schema_.name};
  Delivery delivery{std::move(batch), nullptr};
  if (shards_[delivery.batch.shard.value]->offer(std::move(delivery))) return {};
  batch = std::move(delivery.batch);  // NOLINT(bugprone-use-after-move): moved from only on success
  return {model::StatusCode::kFull, {}};
}

model::Status MemoryTable::write(ItemWrite&& write) {
  Write handed{std::move(write), std::nullopt};
  model::Status status = hand_over(std::move(handed));
  if (!status.ok()) write = std::move(handed);  // NOLINT(bugprone-use-after-move): moved from only on success
  return status;
}

model::Status MemoryTable::trim(model::Bytes partition_key, const Trim& trim, std::function<void(model::Status)> done) {
  return hand_over({{std::move(partition_key), {}, nullptr, std::move(done)}, trim});
}

model::Status MemoryTable::hand_over(Write&& write) {
  if (closed_.load(std::memory_order_acquire)) return {model::StatusCode::kStopping, "table deleted: " + schema_.name};
  const partitioner::ShardId shard = map_.current().owner(model::hash_key(write.partition_key));
  if (shards_[shard.value]->offer(std::move(write))) return {};
  return {model::StatusCode::kFull, "too many writes are waiting; try again"};
}

std::optional<MemoryTable::Readable> MemoryTable::readable(std::string_view name) const {
  if (name.empty()) return Readable{&space_, &map_, nullptr};
  for (const auto& index : indexes_) {
    if (index->schema.name == name) return Readable{&index->space, &index->map, index.get()};
  }
  return std::nullopt;
}

void MemoryTable::count_reads(const Readable& from, model::KeyHash hash, std::uint64_t items) const {
  const std::uint16_t shard = from.map->current().owner(hash).value;
  if (from.index != nullptr) {
    from.index->shards[shard]->count_reads(items);
  } else {
    shards_[shard]->count_reads(items);
  }
}

model::Status MemoryTable::read(std::string_view index, std::string_view partition_key, const KeyRange& range,
                                bool ascending, const Visit& visit) const {
  const std::optional<Readable> from = readable(index);
  if (!from) return {model::StatusCode::kNotFound, "no such index: " + std::string(index)};
  const model::KeyHash hash = model::hash_key(partition_key);
  std::uint64_t items = 0;
  model::Status status;
  {
    const EpochDomain::Guard guard(shared_.epochs);
    if (const Collection* collection = from->space->find(hash, partition_key)) {
      visit_range(
          *collection, range, ascending, [&](const StoredItem& item) { return ++items, visit(item); }, status);
    }
  }
  count_reads(*from, hash, items);
  return status;
}

model::Status MemoryTable::scan(std::string_view index, std::uint32_t segment_begin, std::uint32_t segment_end,
                                const std::optional<ScanPosition>& after, const Visit& visit) const {
  const std::optional<Readable> from = readable(index);
  if (!from) return {model::StatusCode::kNotFound, "no such index: " + std::string(index)};
  const model::KeyHash after_hash = after ? model::hash_key(after->partition_key) : 0;
  if (after) segment_begin = std::max(segment_begin, model::segment_of(after_hash));
  for (std::uint32_t segment = segment_begin; segment < segment_end; ++segment) {
    const EpochDomain::Guard guard(shared_.epochs);
    for (const Collection* collection : from->space->collections(segment)) {
      KeyRange range;
      if (after && collection->hash() <= after_hash) {
        if (collection->hash() < after_hash || collection->partition_key() < after->partition_key) continue;
        if (collection->partition_key() == after->partition_key) range.lower = KeyRange::Bound{after->sort_key, false};
      }
      std::uint64_t items = 0;
      model::Status status;
      const bool more = visit_range(
          *collection, range, true, [&](const StoredItem& item) { return ++items, visit(item); }, status);
      count_reads(*from, collection->hash(), items);
      if (!more || !status.ok()) return status;
    }
  }
  return {};
}

Table::Size MemoryTable::size(std::string_view index) const {
  Size total;
  const auto add = [&](const Shard& shard) {
    total.items += shard.size().items;
    total.bytes += shard.size().bytes;
  };
  if (const std::optional<Readable> from = readable(index); from && from->index != nullptr) {
    for (const auto& shard : from->index->shards) add(*shard);
  } else {
    for (const auto& shard : shards_) add(*shard);
  }
  return total;
}

void MemoryTable::close() {
  closed_.store(true, std::memory_order_release);  // pairs with submit() and write()
  for (const auto& shard : shards_) shard->close();
  for (const auto& index : indexes_) {
    for (const auto& shard : index->shards) shard->close();
  }
}

void MemoryTable::flush_indexes() {
  for (const auto& index : indexes_) {
    for (const auto& shard : index->shards) shard->flush();
  }
}

void MemoryTable::resume() {
  for (const auto& shard : shards_) shard->resume();
}

std::vector<SpaceChanges> MemoryTable::begin_interval(std::uint32_t next) {
  std::vector<SpaceChanges> ended;
  const auto end = [&](const Space& space, const auto& shards) {
    SpaceChanges& changes = ended.emplace_back();
    changes.id = {identity_.id, static_cast<std::uint16_t>(ended.size() - 1)};
    changes.space = &space;
    for (const auto& shard : shards) changes.parts.push_back({shard.get(), shard->changes().begin(next)});
  };
  end(space_, shards_);
  for (const auto& index : indexes_) end(index->space, index->shards);
  return ended;
}

std::vector<const Space*> MemoryTable::spaces() const {
  std::vector<const Space*> spaces{&space_};
  for (const auto& index : indexes_) spaces.push_back(&index->space);
  return spaces;
}

std::vector<MemoryTable::Restorable> MemoryTable::restorables() {
  std::vector<Restorable> found;
  std::uint16_t number = 0;
  const auto add = [&](const partitioner::ShardMap& map, const auto& shards) {
    std::uint16_t shard = 0;
    for (const auto& each : shards) {
      found.push_back({{identity_.id, number}, map.range(partitioner::ShardId{shard++}), each.get()});
    }
    ++number;
  };
  add(map_.current(), shards_);
  for (const auto& index : indexes_) add(index->map.current(), index->shards);
  return found;
}

void MemoryTable::add_stats(StoreStats& out) const {
  const auto range_of = [](SpaceStats& space, const partitioner::ShardMap& map) {
    for (ShardStats& shard : space.shards) {
      const partitioner::ShardMap::Range range = map.range(partitioner::ShardId{shard.shard});
      shard.segment_begin = range.begin;
      shard.segment_end = range.end;
    }
  };
  const auto counted = [](const std::atomic<std::uint64_t>& value) { return value.load(std::memory_order_relaxed); };
  out.rows_stored += counted(counters_.stored);
  out.rows_repeated += counted(counters_.repeated);
  out.rows_conflicting += counted(counters_.conflicting);
  out.rows_late += counted(counters_.late);
  out.rows_refused += counted(counters_.refused);
  out.rows_unreadable = counted(shared_.rows_unreadable);
  const EpochDomain::Guard guard(shared_.epochs);
  SpaceStats base;
  base.table = schema_.name;
  base.items_expired = counted(counters_.expired);
  for (const auto& shard : shards_) shard->add_stats(base);
  range_of(base, map_.current());
  out.spaces.push_back(std::move(base));
  for (const auto& index : indexes_) {
    SpaceStats stats;
    stats.table = schema_.name;
    stats.index = index->schema.name;
    for (const auto& shard : index->shards) shard->add_stats(stats);
    range_of(stats, index->map.current());
    out.spaces.push_back(std::move(stats));
  }
}

}  // namespace drover::store

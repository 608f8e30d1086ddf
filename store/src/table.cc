#include "table.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

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

std::shared_ptr<MemoryTable> MemoryTable::make(Shared& shared, const model::TableSchema& schema, Identity identity,
                                               const std::vector<IndexIdentity>& indexes) {
  std::shared_ptr<MemoryTable> table(new MemoryTable(shared, schema, std::move(identity)));
  const auto made = std::make_shared<Indexes>();
  for (const model::IndexSchema& index : schema.indexes) {
    if (!index.local) made->push_back(table->make_index(index, indexes[made->size()]));
  }
  const std::shared_ptr<const Indexes> all = made;
  for (std::uint16_t i = 0; i < shards_of(shared); ++i) {
    table->shards_.push_back(std::make_unique<TableShard>(shared, table->space_, partitioner::ShardId{i},
                                                          table->schema(), all, table->stamps_, table->counters_));
    table->shards_.back()->set_owner(table);
    table->shards_.back()->set_table_id(table->id());
  }
  for (const auto& index : *all) table->connect(*index);
  const model::LockGuard lock(table->indexes_mutex_);
  table->indexes_ = all;
  table->readable_indexes_.store(all.get(), std::memory_order_release);  // pairs with readable()
  return table;
}

MemoryTable::MemoryTable(Shared& shared, const model::TableSchema& schema, Identity identity)
    : shared_(shared),
      identity_(std::move(identity)),
      space_(CollectionTuning{}),
      map_(partitioner::ShardMap::uniform(shards_of(shared_))),
      retention_(identity_.retention) {
  schemas_.push_back(std::make_unique<const model::TableSchema>(schema));
  schema_.store(schemas_.back().get(), std::memory_order_release);
}

std::shared_ptr<GlobalIndex> MemoryTable::make_index(const model::IndexSchema& schema, IndexIdentity identity) {
  auto index = std::make_shared<GlobalIndex>(shared_, *schemas_.front(), schema, identity.number, shards_of(shared_));
  index->filled.store(identity.filled, std::memory_order_relaxed);  // nobody else knows it yet
  index->filled_on_disk = identity.filled;
  for (const auto& shard : index->shards) shard->set_owner(index);
  return index;
}

/// Has the index's shards wake the table's.
void MemoryTable::connect(GlobalIndex& index) {
  std::vector<TableShard*> upstream;
  for (const auto& shard : shards_) upstream.push_back(shard.get());
  for (const auto& shard : index.shards) shard->set_upstream(weak_from_this(), upstream);
}

void MemoryTable::set_indexes(std::unique_ptr<const model::TableSchema> schema,
                              const std::shared_ptr<const Indexes>& indexes, const std::shared_ptr<Filling>& filling) {
  {
    const model::LockGuard lock(indexes_mutex_);
    indexes_ = indexes;
    readable_indexes_.store(indexes.get(), std::memory_order_release);  // pairs with readable()
  }
  if (schema != nullptr) {
    schemas_.push_back(std::move(schema));
    schema_.store(schemas_.back().get(), std::memory_order_release);  // pairs with schema()
  }
  std::uint16_t i = 0;
  for (const auto& shard : shards_) {
    shard->set_indexes(indexes, filling, map_.current().range(partitioner::ShardId{i++}));
  }
}

void MemoryTable::add_index(const model::IndexSchema& schema, std::uint16_t number, std::uint32_t interval) {
  auto changed = std::make_unique<model::TableSchema>(this->schema());
  changed->indexes.push_back(schema);
  const std::shared_ptr<GlobalIndex> index = make_index(schema, {number, false});
  connect(*index);
  for (const auto& shard : index->shards) shard->changes().begin(interval);
  const auto all = std::make_shared<Indexes>(*indexes());
  all->push_back(index);
  set_indexes(std::move(changed), all, std::make_shared<Filling>(index));
}

void MemoryTable::remove_index(std::string_view name) {
  auto changed = std::make_unique<model::TableSchema>(schema());
  std::erase_if(changed->indexes, [&](const model::IndexSchema& index) { return index.name == name; });
  const auto all = std::make_shared<Indexes>(*indexes());
  std::erase_if(*all, [&](const std::shared_ptr<GlobalIndex>& index) { return index->schema.name == name; });
  set_indexes(std::move(changed), all, nullptr);
}

void MemoryTable::fill_indexes() {
  const std::shared_ptr<const Indexes> all = indexes();
  for (const auto& index : *all) {
    if (!index->filled.load(std::memory_order_acquire)) set_indexes(nullptr, all, std::make_shared<Filling>(index));
  }
}

std::shared_ptr<const Indexes> MemoryTable::indexes() const {
  const model::LockGuard lock(indexes_mutex_);
  return indexes_;
}

bool MemoryTable::is_filling(std::string_view index) const {
  const EpochDomain::Guard guard(shared_.epochs);
  const model::Result<Readable> found = readable(index);
  return !found.ok() && found.status().code() == model::StatusCode::kUnavailable;
}

std::vector<partitioner::RoutedBatch> MemoryTable::route(std::shared_ptr<const model::RowBatch> rows) const {
  return partitioner::route(rows, map_.current());
}

model::Status MemoryTable::submit(partitioner::RoutedBatch&& batch) {
  if (closed_.load(std::memory_order_acquire)) return {model::StatusCode::kStopping, "table deleted: " + schema().name};
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
  return hand_over(
      {{.partition_key = std::move(partition_key), .sort_key = {}, .decide = nullptr, .done = std::move(done)}, trim});
}

model::Status MemoryTable::hand_over(Write&& write) {
  if (closed_.load(std::memory_order_acquire)) return {model::StatusCode::kStopping, "table deleted: " + schema().name};
  const partitioner::ShardId shard = map_.current().owner(model::hash_key(write.partition_key));
  if (shards_[shard.value]->offer(std::move(write))) return {};
  return {model::StatusCode::kFull, "too many writes are waiting; try again"};
}

model::Result<MemoryTable::Readable> MemoryTable::readable(std::string_view name) const {
  if (name.empty()) return Readable{&space_, &map_, nullptr};
  for (const auto& index : *readable_indexes_.load(std::memory_order_acquire)) {  // pairs with set_indexes()
    if (index->schema.name != name) continue;
    if (index->filled.load(std::memory_order_acquire)) return Readable{&index->space, &index->map, &index};
    return model::Status{model::StatusCode::kUnavailable, "the index is being filled: " + std::string(name)};
  }
  return model::Status{model::StatusCode::kNotFound, "no such index: " + std::string(name)};
}

void MemoryTable::count_reads(const Readable& from, model::KeyHash hash, std::uint64_t items) const {
  const std::uint16_t shard = from.map->current().owner(hash).value;
  if (from.index != nullptr) {
    (*from.index)->shards[shard]->count_reads(items);
  } else {
    shards_[shard]->count_reads(items);
  }
}

model::Status MemoryTable::read(std::string_view index, std::string_view partition_key, const KeyRange& range,
                                bool ascending, const Visit& visit) const {
  const EpochDomain::Guard guard(shared_.epochs);
  const model::Result<Readable> from = readable(index);
  if (!from.ok()) return from.status();
  const model::KeyHash hash = model::hash_key(partition_key);
  std::uint64_t items = 0;
  model::Status status;
  if (const Collection* collection = from->space->find(hash, partition_key)) {
    visit_range(
        *collection, range, ascending, [&](const StoredItem& item) { return ++items, visit(item); }, status);
  }
  count_reads(*from, hash, items);
  return status;
}

model::Status MemoryTable::scan(std::string_view index, std::uint32_t segment_begin, std::uint32_t segment_end,
                                const std::optional<ScanPosition>& after, const Visit& visit) const {
  Readable from;
  std::shared_ptr<GlobalIndex> kept;  // from one guard to the next
  {
    const EpochDomain::Guard guard(shared_.epochs);
    const model::Result<Readable> found = readable(index);
    if (!found.ok()) return found.status();
    from = *found;
    if (from.index != nullptr) kept = *from.index;
  }
  if (from.index != nullptr) from.index = &kept;
  const model::KeyHash after_hash = after ? model::hash_key(after->partition_key) : 0;
  if (after) segment_begin = std::max(segment_begin, model::segment_of(after_hash));
  for (std::uint32_t segment = segment_begin; segment < segment_end; ++segment) {
    const EpochDomain::Guard guard(shared_.epochs);
    for (const Collection* collection : from.space->collections(segment)) {
      KeyRange range;
      if (after && collection->hash() <= after_hash) {
        if (collection->hash() < after_hash || collection->partition_key() < after->partition_key) continue;
        if (collection->partition_key() == after->partition_key) range.lower = KeyRange::Bound{after->sort_key, false};
      }
      std::uint64_t items = 0;
      model::Status status;
      const bool more = visit_range(
          *collection, range, true, [&](const StoredItem& item) { return ++items, visit(item); }, status);
      count_reads(from, collection->hash(), items);
      if (!more || !status.ok()) return status;
    }
  }
  return {};
}

Table::Size MemoryTable::size(std::string_view index) const {
  Size total;
  const auto add = [&](const auto& shards) {
    for (const auto& shard : shards) {
      total.items += shard->size().items;
      total.bytes += shard->size().bytes;
    }
  };
  if (index.empty()) add(shards_);
  const auto all = indexes();
  for (const auto& each : *all) {
    if (each->schema.name == index) add(each->shards);
  }
  return total;
}

void MemoryTable::close() {
  closed_.store(true, std::memory_order_release);  // pairs with submit() and write()
  for (const auto& shard : shards_) shard->close();
  const auto all = indexes();
  for (const auto& index : *all) {
    for (const auto& shard : index->shards) shard->close();
  }
}

void MemoryTable::flush_indexes() {
  const auto all = indexes();
  for (const auto& index : *all) {
    for (const auto& shard : index->shards) shard->flush();
  }
}

void MemoryTable::resume() {
  for (const auto& shard : shards_) shard->resume();
}

std::vector<SpaceChanges> MemoryTable::begin_interval(std::uint32_t next) {
  std::vector<SpaceChanges> ended;
  const auto end = [&](std::uint16_t number, const Space& space, const auto& shards, std::shared_ptr<void> owner) {
    SpaceChanges& changes = ended.emplace_back();
    changes.id = {identity_.id, number};
    changes.space = &space;
    changes.owner = std::move(owner);
    for (const auto& shard : shards) changes.parts.push_back({shard.get(), shard->changes().begin(next)});
  };
  end(0, space_, shards_, shared_from_this());
  const auto all = indexes();
  for (const auto& index : *all) end(index->number, index->space, index->shards, index);
  return ended;
}

std::vector<std::shared_ptr<const Space>> MemoryTable::spaces() {
  std::vector<std::shared_ptr<const Space>> spaces;
  spaces.emplace_back(shared_from_this(), &space_);
  const auto all = indexes();
  for (const auto& index : *all) spaces.emplace_back(index, &index->space);
  return spaces;
}

std::vector<MemoryTable::Restorable> MemoryTable::restorables() {
  std::vector<Restorable> found;
  const auto add = [&](std::uint16_t number, const partitioner::ShardMap& map, const auto& shards) {
    std::uint16_t shard = 0;
    for (const auto& each : shards) {
      found.push_back({{identity_.id, number}, map.range(partitioner::ShardId{shard++}), each.get()});
    }
  };
  add(0, map_.current(), shards_);
  const auto all = indexes();
  for (const auto& index : *all) add(index->number, index->map.current(), index->shards);
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
  out.rows_over_limit += counted(counters_.over_limit);
  out.rows_unreadable = counted(shared_.rows_unreadable);
  const EpochDomain::Guard guard(shared_.epochs);
  SpaceStats base;
  base.table = schema().name;
  base.items_expired = counted(counters_.expired);
  for (const auto& shard : shards_) shard->add_stats(base);
  range_of(base, map_.current());
  out.spaces.push_back(std::move(base));
  const auto all = indexes();
  for (const auto& index : *all) {
    SpaceStats stats;
    stats.table = schema().name;
    stats.index = index->schema.name;
    for (const auto& shard : index->shards) shard->add_stats(stats);
    range_of(stats, index->map.current());
    out.spaces.push_back(std::move(stats));
  }
}

}  // namespace drover::store

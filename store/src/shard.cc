#include "shard.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "drover/model/clock.h"
#include "drover/model/limits.h"

namespace drover::store {
namespace {

/// The class of a size, which is mostly the one it was in: the first whose bound it does not exceed.
template <std::size_t N>
[[gnu::always_inline]] inline std::uint8_t class_of(const std::array<std::uint64_t, N>& bounds, std::int64_t value,
                                                    std::uint8_t before) {
  const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
  if ((before == N || size <= bounds[before]) && (before == 0 || size > bounds[before - 1u])) [[likely]]
    return before;
  return static_cast<std::uint8_t>(std::lower_bound(bounds.begin(), bounds.end(), size) - bounds.begin());
}

template <typename Integer>
void add(std::atomic<Integer>& counter, Integer value) {
  if (value != 0) counter.fetch_add(value, std::memory_order_relaxed);  // a statistic
}

model::Status table_gone() {
  return {model::StatusCode::kStopping, "the table is being deleted"};
}

/// How many bytes two texts begin with alike.
std::size_t common_size(std::string_view a, std::string_view b) {
  if (b.starts_with(a)) return a.size();
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

/// The first eight bytes as a number that orders as they do.
std::uint64_t head_of(std::string_view bytes) {
  char head[sizeof(std::uint64_t)] = {};
  std::memcpy(head, bytes.data(), std::min(bytes.size(), sizeof head));
  std::uint64_t number;
  std::memcpy(&number, head, sizeof number);
  return __builtin_bswap64(number);
}

/// Sorts by merging the runs that are there already: what a delivery brings is mostly in order. Stable.
template <typename T, typename Less>
void sort_runs(std::vector<T>& values, Less less) {
  std::vector<std::size_t> ends;  // of the runs
  for (std::size_t i = 1; i <= values.size(); ++i) {
    if (i == values.size() || less(values[i], values[i - 1])) ends.push_back(i);
  }
  std::vector<T> merged(ends.size() > 1 ? values.size() : 0);
  const auto at = [](std::vector<T>& in, std::size_t i) { return in.begin() + static_cast<std::ptrdiff_t>(i); };
  while (ends.size() > 1) {
    std::vector<std::size_t> merged_ends;
    std::size_t begin = 0;
    for (std::size_t run = 0; run < ends.size(); run += 2) {
      const std::size_t middle = ends[run];
      const std::size_t end = run + 1 < ends.size() ? ends[run + 1] : middle;
      std::merge(at(values, begin), at(values, middle), at(values, middle), at(values, end), at(merged, begin), less);
      merged_ends.push_back(begin = end);
    }
    values.swap(merged);
    ends = std::move(merged_ends);
  }
}

}  // namespace

Acknowledgement::~Acknowledgement() {
  for (const auto& acknowledge : done) {
    acknowledge(dropped.load(std::memory_order_relaxed) ? table_gone() : logged);
  }
}

Shard::Shard(Shared& shared, Space& space, partitioner::ShardId id, std::size_t inbox_batches)
    : shared_(shared), space_(space), id_(id), retired_(shared.epochs) {
  inbox_.set_capacity(static_cast<std::ptrdiff_t>(inbox_batches));
}

Shard::~Shard() = default;

bool Shard::offer(Delivery&& delivery) {
  shared_.in_flight.fetch_add(1, std::memory_order_acq_rel);  // counted first, so that idle() never misses one
  if (!inbox_.try_push(std::move(delivery))) {
    shared_.in_flight.fetch_sub(1, std::memory_order_acq_rel);
    return false;
  }
  if (is_due()) schedule();
  return true;
}

void Shard::close() {
  closed_.store(true, std::memory_order_release);  // pairs with closed()
  schedule();
}

void Shard::schedule() {
  if (scheduled_.exchange(true)) return;  // S2
  auto owner = owner_.lock();
  if (owner == nullptr) return;  // the table is being destroyed, which drops what waits
  shared_.executor.enqueue([this, owner = std::move(owner)] { turn(); });
}

void Shard::turn() {
  const std::int64_t begin = model::steady_clock_ns();
  const bool was_closed = closed();
  {
    const EpochDomain::Guard guard(shared_.epochs);  // of cold blocks a checkpoint may leave to the disk meanwhile
    apply_seals();
    if (was_closed) {
      drop_all();
    } else {
      run();
    }
  }
  retired_.collect();
  add(writer_time_ns_, static_cast<std::uint64_t>(model::steady_clock_ns() - begin));
  scheduled_.exchange(false);                                                    // T2
  if (has_work() || has_seals_.load() || (!was_closed && closed())) schedule();  // T3
}

void Shard::offer(std::vector<Seals> seals) {
  if (seals.empty()) return;
  {
    const model::LockGuard lock(seals_mutex_);
    shared_.in_flight.fetch_add(static_cast<std::int64_t>(seals.size()), std::memory_order_acq_rel);
    seals_.insert(seals_.end(), std::make_move_iterator(seals.begin()), std::make_move_iterator(seals.end()));
  }
  has_seals_.store(true);
  schedule();
}

void Shard::apply_seals() {
  if (!has_seals_.load(std::memory_order_relaxed)) [[likely]]
    return;
  has_seals_.exchange(false);
  std::vector<Seals> seals;
  {
    const model::LockGuard lock(seals_mutex_);
    seals.swap(seals_);
  }
  for (Seals& each : seals) {
    changes_.about_to_change(*each.collection);
    const std::size_t failed = each.collection->seal(each.seals, retired_);
    for (const Seal& seal : std::span(each.seals).last(failed)) {
      changes_.add_apart(*each.collection, seal.cold->first_key(), seal.cold->last_key());
    }
  }
  shared_.in_flight.fetch_sub(static_cast<std::int64_t>(seals.size()), std::memory_order_acq_rel);
}

void Shard::publish_stats() {
  add(records_, tally_.records);
  add(bytes_applied_, tally_.bytes);
  add(batches_, tally_.batches);
  add(items_, tally_.items);
  add(bytes_, tally_.bytes_stored);
  tally_ = {};
}

Collection& Shard::collection_of(model::KeyHash hash, std::string_view partition_key) {
  if (Collection* found = space_.find(hash, partition_key); found != nullptr) return *found;
  add<std::int64_t>(collections_, 1);
  add<std::int64_t>(by_items_[0], 1);
  add<std::int64_t>(by_bytes_[0], 1);
  return space_.find_or_create(hash, partition_key, retired_);
}

void Shard::restore(model::KeyHash hash, std::string_view partition_key, const Pieces& history, Block* tail) {
  Collection& collection = collection_of(hash, partition_key);
  collection.restore(history, tail, retired_);
  note_size(collection, 0, 0);
}

void Shard::note_size(Collection& collection, std::int64_t items_before, std::int64_t bytes_before) {
  const Collection::WriterState& state = collection.writer;
  Collection::SizeClasses& classes = collection.size_classes;
  tally_.items += state.items - items_before;
  tally_.bytes_stored += state.bytes - bytes_before;
  const std::uint8_t items_class = class_of(kCollectionItemsBounds, state.items, classes.items);
  if (items_class != classes.items) {
    add<std::int64_t>(by_items_[std::exchange(classes.items, items_class)], -1);
    add<std::int64_t>(by_items_[items_class], 1);
  }
  const std::uint8_t bytes_class = class_of(kCollectionBytesBounds, state.bytes, classes.bytes);
  if (bytes_class != classes.bytes) {
    add<std::int64_t>(by_bytes_[std::exchange(classes.bytes, bytes_class)], -1);
    add<std::int64_t>(by_bytes_[bytes_class], 1);
  }
  if (state.items > largest_items_.load(std::memory_order_relaxed)) {
    largest_items_.store(state.items, std::memory_order_relaxed);
    largest_.store(&collection, std::memory_order_release);  // pairs with add_stats(), which reads its key
  }
  if (state.bytes > largest_bytes_.load(std::memory_order_relaxed)) {
    largest_bytes_.store(state.bytes, std::memory_order_relaxed);
  }
}

template <typename Apply>
void Shard::for_each_row(const partitioner::RoutedBatch& batch, Apply&& apply) {
  constexpr std::size_t kAhead = 32;  // rows whose look-ups overlap
  std::array<Space::Probe, kAhead> probes;
  const model::RowBatch& rows = *batch.rows;
  for (std::size_t begin = 0; begin < batch.selected.size(); begin += kAhead) {
    const std::size_t count = std::min(kAhead, batch.selected.size() - begin);
    const std::uint32_t* const selected = batch.selected.data() + begin;
    for (std::size_t i = 0; i < count; ++i) {
      const model::RowBatch::Row& row = rows.rows[selected[i]];
      probes[i].begin(space_, row.hash);
      touch(rows.bytes.data() + row.begin);
      touch(rows.bytes.data() + row.begin + row.partition_key_size + row.row_size - 1);
    }
    for (std::size_t i = 0; i < count; ++i) probes[i].to_slot();
    for (std::size_t i = 0; i < count; ++i) probes[i].to_collection();
    for (std::size_t i = 0; i < count; ++i) probes[i].to_tail();
    for (std::size_t i = 0; i < count; ++i) {
      const model::RowBatch::Row& row = rows.rows[selected[i]];
      const std::string_view partition_key = rows.partition_key(row);
      if (--until_sample_ == 0) [[unlikely]]
        sample(row.hash, partition_key);
      tally_.bytes += row.row_size;
      Collection* const found = probes[i].found(partition_key);
      apply(found != nullptr ? *found : collection_of(row.hash, partition_key), rows.row_bytes(row));
    }
  }
  tally_.records += batch.selected.size();
  ++tally_.batches;
}

void Shard::sample(model::KeyHash hash, std::string_view partition_key) {
  until_sample_ = partitioner::kHeatSampleEvery;
  hot_keys_.add(hash, partition_key);
  if (--until_decay_ != 0) return;
  until_decay_ = kSamplesPerDecay;
  hot_keys_.decay();
}

Table::Size Shard::size() const {
  return {static_cast<std::uint64_t>(std::max<std::int64_t>(0, items_.load(std::memory_order_relaxed))),
          static_cast<std::uint64_t>(std::max<std::int64_t>(0, bytes_.load(std::memory_order_relaxed)))};
}

void Shard::add_stats(SpaceStats& out) const {
  const auto count = [](const std::atomic<std::int64_t>& value) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, value.load(std::memory_order_relaxed)));
  };
  ShardStats stats;
  stats.shard = id_.value;
  stats.heat = {writer_time_ns_.load(std::memory_order_relaxed), records_.load(std::memory_order_relaxed),
                bytes_applied_.load(std::memory_order_relaxed), reads_.load(std::memory_order_relaxed),
                batches_.load(std::memory_order_relaxed)};
  stats.queue_depth = static_cast<std::uint64_t>(std::max<std::ptrdiff_t>(0, inbox_.size()));
  stats.queue_capacity = static_cast<std::uint64_t>(inbox_.capacity());
  stats.collections = count(collections_);
  stats.items = count(items_);
  stats.bytes = count(bytes_);
  stats.hot_keys = hot_keys_.top(10);
  stats.hot_key_samples = hot_keys_.total();
  for (std::size_t i = 0; i < by_items_.size(); ++i) out.collections_by_items[i] += count(by_items_[i]);
  for (std::size_t i = 0; i < by_bytes_.size(); ++i) out.collections_by_bytes[i] += count(by_bytes_[i]);
  if (count(largest_items_) > out.largest_collection_items) {
    out.largest_collection_items = count(largest_items_);
    if (const Collection* largest = largest_.load(std::memory_order_acquire)) {  // pairs with note_size()
      out.largest_collection_key = largest->partition_key();
    }
  }
  out.largest_collection_bytes = std::max(out.largest_collection_bytes, count(largest_bytes_));
  out.shards.push_back(std::move(stats));
}

// ---- Index shards

void IndexShard::flush() {
  if (inbox_.empty()) return;
  flush_.store(true);
  schedule();
}

void IndexShard::run() {
  flush_.exchange(false);
  // Everything that waits, as one merge: a block that several batches touch is rebuilt once.
  std::vector<Delivery> deliveries;
  for (Delivery delivery; inbox_.try_pop(delivery);) {
    deliveries.push_back(std::move(delivery));
    if (deliveries.size() == static_cast<std::size_t>(inbox_.capacity())) break;
  }
  std::vector<Collection*> collections;
  std::vector<std::vector<Entry>> entries;
  for (const Delivery& delivery : deliveries) {
    for_each_row(delivery.batch, [&](Collection& collection, std::string_view bytes) {
      std::uint32_t& group = collection.group;
      if (group >= collections.size() || collections[group] != &collection) {
        group = static_cast<std::uint32_t>(collections.size());
        collections.push_back(&collection);
        entries.emplace_back();
      }
      const model::RowView row(bytes);
      entries[group].push_back({0, row.sort_key(), {bytes, row.tombstone()}});
    });
  }
  for (std::size_t i = 0; i < collections.size(); ++i) merge(*collections[i], entries[i]);
  publish_stats();
  shared_.in_flight.fetch_sub(static_cast<std::int64_t>(deliveries.size()),
                              std::memory_order_acq_rel);  // pairs with idle()
  deliveries.clear();
  for (TableShard* shard : upstream_) shard->wake();
}

void IndexShard::merge(Collection& collection, std::vector<Entry>& entries) {
  std::string_view common = entries.front().sort_key;
  for (const Entry& entry : entries) common = common.substr(0, common_size(common, entry.sort_key));
  for (Entry& entry : entries) entry.head = head_of(entry.sort_key.substr(common.size()));
  sort_runs(entries, [](const Entry& a, const Entry& b) {
    return a.head != b.head ? a.head < b.head : a.sort_key < b.sort_key;
  });
  std::vector<Change> changes;
  changes.reserve(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    // Of one key's changes the last one counts: one table shard sent them all, in order.
    if (i + 1 < entries.size() && entries[i].head == entries[i + 1].head &&
        entries[i].sort_key == entries[i + 1].sort_key) {
      continue;
    }
    changes.push_back(entries[i].change);
  }
  changes_.about_to_change(collection);
  const std::int64_t items = collection.writer.items;
  const std::int64_t bytes = collection.writer.bytes;
  if (collection.is_append(entries.front().sort_key)) {
    for (const Change& change : changes) {
      if (!change.remove) collection.append(model::RowView(change.row), retired_);
    }
  } else {
    const SizeDelta delta = collection.merge(changes, retired_, changes_.gone_keys());
    add<std::uint64_t>(shared_.rows_unreadable, delta.unreadable);
    changes_.add_gone(collection);
  }
  note_size(collection, items, bytes);
}

void IndexShard::drop_all() {
  flush_.exchange(false);  // or has_work() would ask for turns for ever
  for (Delivery delivery; inbox_.try_pop(delivery);) {
    delivery.ack->dropped.store(true, std::memory_order_relaxed);
    shared_.in_flight.fetch_sub(1, std::memory_order_acq_rel);
  }
}

GlobalIndex::GlobalIndex(Shared& shared, const model::TableSchema& table, const model::IndexSchema& index,
                         std::uint16_t shard_count)
    : schema(index),
      plan(table, index, shared.names),
      space(CollectionTuning{}),
      map(partitioner::ShardMap::uniform(shard_count)) {
  for (std::uint16_t i = 0; i < shard_count; ++i) {
    shards.push_back(std::make_unique<IndexShard>(shared, space, partitioner::ShardId{i},
                                                  shared.options.inbox_batches * kIndexInboxFactor));
  }
}

// ---- Table shards

const std::string* Stamps::take(std::string stamp) {
  const model::LockGuard lock(mutex_);
  const auto found = users_.try_emplace(std::move(stamp)).first;
  ++found->second;
  return &found->first;
}

void Stamps::give_back(const std::string* stamp) {
  const model::LockGuard lock(mutex_);
  const auto found = users_.find(*stamp);
  if (--found->second == 0) users_.erase(found);
}

TableShard::TableShard(Shared& shared, Space& space, partitioner::ShardId id, const model::TableSchema& schema,
                       std::vector<GlobalIndex*> indexes, Stamps& stamps, TableCounters& counters)
    : Shard(shared, space, id, shared.options.inbox_batches),
      schema_(schema),
      indexes_(std::move(indexes)),
      stamps_(stamps),
      counters_(counters),
      entries_(indexes_.size()),
      entry_marks_(indexes_.size()) {
  writes_.set_capacity(static_cast<std::ptrdiff_t>(model::kShardInboxWritesMax));
  for (const std::string& name : schema.inherit) {
    const model::NameId interned = shared.names.intern(name);
    inherited_.push_back(interned);
    if (interned.value < kMaskBits) inherited_mask_ |= std::uint64_t{1} << interned.value;
  }
}

bool TableShard::offer(Delivery&& delivery) {
  counters_.batches_in_hand.fetch_add(1, std::memory_order_acq_rel);
  if (Shard::offer(std::move(delivery))) return true;
  counters_.batches_in_hand.fetch_sub(1, std::memory_order_acq_rel);  // the inbox is full: others are in hand
  return false;
}

bool TableShard::offer(Write&& write) {
  shared_.writes_waiting.fetch_add(1, std::memory_order_acq_rel);
  if (!writes_.try_push(std::move(write))) {
    shared_.writes_waiting.fetch_sub(1, std::memory_order_acq_rel);
    return false;
  }
  schedule();
  return true;
}

void TableShard::resume() {
  if (has_work()) schedule();
}

void TableShard::restore(model::KeyHash hash, std::string_view partition_key, const Pieces& history, Block* tail) {
  Shard::restore(hash, partition_key, history, tail);
  if (inherited_.empty()) return;
  Collection& collection = *space_.find(hash, partition_key);
  const FoundRow meta = collection.find(schema_.inherit_from);
  if (meta.row && !meta.row->tombstone()) learn_stamp(collection, *meta.row);
}

void TableShard::wake() {
  // Always exchanged, be it for the same: so whoever says kWaiting later has read this, and sees the room that was
  // made.
  Room before = room_.load();
  while (!room_.compare_exchange_weak(before, before == Room::kWaiting ? Room::kWoken : before)) {
  }
  if (before == Room::kWaiting) schedule();
}

bool TableShard::has_work() const {
  switch (room_.load()) {
    case Room::kWoken:
      return true;
    case Room::kWaiting:
      return false;
    case Room::kNotWaiting:
      return !inbox_.empty() || (!writes_.empty() && !shared_.holding.load());
  }
  return false;
}

void TableShard::drop_all() {
  for (Delivery delivery; inbox_.try_pop(delivery);) {
    counters_.batches_in_hand.fetch_sub(1, std::memory_order_acq_rel);
    shared_.in_flight.fetch_sub(1, std::memory_order_acq_rel);
  }
  for (Write write; writes_.try_pop(write);) {
    write.done(table_gone());
    shared_.writes_waiting.fetch_sub(1, std::memory_order_acq_rel);
  }
  for (const Undelivered& undelivered : outbox_)
    undelivered.delivery.ack->dropped.store(true, std::memory_order_relaxed);
  shared_.in_flight.fetch_sub(static_cast<std::int64_t>(outbox_.size()), std::memory_order_acq_rel);
  outbox_.clear();
  room_.exchange(Room::kNotWaiting);
  flush_indexes();  // what was delivered and gathers there would else be left lying
}

void TableShard::run() {
  const bool carried = !outbox_.empty();  // maybe with an API write that waits for it
  if (!deliver()) return flush_indexes();
  std::int64_t applied = 1;  // the turn itself: see Shared::holding
  shared_.in_flight.fetch_add(1);
  auto acknowledgement = std::make_shared<Acknowledgement>();
  const bool writes = !shared_.holding.load() && apply_writes(acknowledgement) > 0;
  Delivery delivery;
  const bool stream = inbox_.try_pop(delivery);
  if (stream) {
    for_each_row(delivery.batch, [this](Collection& collection, std::string_view row) { apply(collection, row); });
    ++applied;
  }
  add(counters_.stored, count_.stored);
  add(counters_.repeated, count_.repeated);
  add(counters_.conflicting, count_.conflicting);
  add(counters_.late, count_.late);
  add(counters_.refused, count_.refused);
  count_ = {};
  publish_stats();
  send_index_entries(std::move(acknowledgement));
  deliver();
  // Behind the delivery: who is last has the indexes flushed for all.
  const bool last = stream && counters_.batches_in_hand.fetch_sub(1, std::memory_order_acq_rel) == 1;
  shared_.in_flight.fetch_sub(applied, std::memory_order_acq_rel);  // after the entries were counted: pairs with idle()
  if (carried || writes || last || ++turns_since_flush_ == kTurnsPerFlush) flush_indexes();
}

/// Takes API writes, so many that a batch is never far behind them; returns how many.
std::int64_t TableShard::apply_writes(const std::shared_ptr<Acknowledgement>& acknowledgement) {
  constexpr std::int64_t kWritesPerTurn = 64;
  std::int64_t taken = 0;
  for (Write write; taken < kWritesPerTurn && writes_.try_pop(write); ++taken) {
    shared_.writes_waiting.fetch_sub(1, std::memory_order_acq_rel);  // the turn counts itself meanwhile
    if (write.trim) {
      // A batch comes in between. If there is no room to wait again, the next walk goes on with it.
      const bool goes_on = trim(write) && offer(std::move(write));
      if (!goes_on)
        acknowledgement->done.push_back(std::move(write.done));  // NOLINT(bugprone-use-after-move): it stayed
      ++taken;
      break;
    }
    model::Status status = apply(write);
    if (status.ok()) {
      acknowledgement->done.push_back(std::move(write.done));
    } else {
      write.done(std::move(status));
    }
  }
  if (!log_entries_.empty()) {
    shared_.log->append(std::exchange(log_entries_, {}),
                        [acknowledgement](const model::Status& status) { acknowledgement->logged = status; });
  }
  return taken;
}

/// Has the indexes apply what they were sent, so that nobody waits for entries that gather no further.
void TableShard::flush_indexes() {
  turns_since_flush_ = 0;
  for (GlobalIndex* index : indexes_) {
    for (const auto& shard : index->shards) shard->flush();
  }
}

void TableShard::send_index_entries(std::shared_ptr<Acknowledgement> acknowledgement) {
  for (std::size_t i = 0; i < indexes_.size(); ++i) {
    if (entries_[i].rows.empty()) continue;
    const std::size_t bytes = entries_[i].bytes.size();
    const std::size_t count = entries_[i].rows.size();
    auto rows = std::make_shared<const model::RowBatch>(std::exchange(entries_[i], {}));
    // The next turn likely makes as many.
    entries_[i].bytes.reserve(bytes + bytes / 8);
    entries_[i].rows.reserve(count + count / 8);
    for (partitioner::RoutedBatch& routed : partitioner::route(rows, indexes_[i]->map.current())) {
      IndexShard* to = indexes_[i]->shards[routed.shard.value].get();
      shared_.in_flight.fetch_add(1, std::memory_order_acq_rel);
      outbox_.push_back({to, {std::move(routed), acknowledgement}});
    }
  }
}

bool TableShard::deliver() {
  while (!outbox_.empty()) {
    Undelivered& next = outbox_.front();
    if (!next.to->offer(std::move(next.delivery))) {
      // Says that it waits, then looks once more: of room made before the first it knows through wake()'s exchange,
      // room made later finds kWaiting.
      room_.exchange(Room::kWaiting);
      if (!next.to->offer(std::move(next.delivery))) return false;
    }
    outbox_.pop_front();
    shared_.in_flight.fetch_sub(1, std::memory_order_acq_rel);  // the inbox counts it now
  }
  room_.exchange(Room::kNotWaiting);
  return true;
}

/// What the row inherits, encoded: the collection's stamp but for what the row has itself. Valid until the next call.
std::string_view TableShard::inherited_by(const Collection& collection, const model::RowView& row) {
  if (collection.writer.stamp == nullptr || row.tombstone() || row.sort_key() == schema_.inherit_from) return {};
  const std::string& stamp = *collection.writer.stamp;
  const std::string_view own = row.attributes();
  bool has_own = false;
  for (const char* at = own.data(); at != own.data() + own.size() && !has_own; at = model::skip_value(at)) {
    has_own = is_inherited(model::take_raw_name(at));
  }
  if (!has_own) return stamp;
  stamp_.clear();
  for (const char* at = stamp.data(); at != stamp.data() + stamp.size();) {
    const model::RawAttribute attribute = model::take_raw_attribute(at);
    if (!model::find_attribute(own, attribute.name(shared_.names), shared_.names)) stamp_.append(attribute.encoded);
  }
  return stamp_;
}

/// Remembers what the collection's other items inherit from here on. Requires: this is the item they inherit from.
void TableShard::learn_stamp(Collection& collection, const model::RowView& row) {
  std::string stamp;
  const std::string_view own = row.attributes();
  for (const char* at = own.data(); at != own.data() + own.size();) {
    const model::RawAttribute attribute = model::take_raw_attribute(at);
    if (is_inherited(attribute)) stamp.append(attribute.encoded);
  }
  const std::string* const before = collection.writer.stamp;
  collection.writer.stamp = stamp.empty() ? nullptr : stamps_.take(std::move(stamp));
  if (before != nullptr) stamps_.give_back(before);
}

/// Whether two states of one item are the same but for what was inherited.
bool TableShard::same_content(const model::RowView& present, const model::RowView& incoming) const {
  if (present.tombstone() != incoming.tombstone()) return false;
  if (present.attributes() == incoming.attributes()) return true;
  if (!model::contains_attributes(present.attributes(), incoming.attributes(), shared_.names)) return false;
  const bool may_inherit = present.sort_key() != schema_.inherit_from;
  const std::string_view own = present.attributes();
  for (const char* at = own.data(); at != own.data() + own.size();) {
    const model::RawAttribute attribute = model::take_raw_attribute(at);
    if (may_inherit && is_inherited(attribute)) continue;
    if (!model::find_attribute(incoming.attributes(), attribute.name(shared_.names), shared_.names)) return false;
  }
  return true;
}

/// Adds to the indexes' entries what follows from `row` taking the place of `replaced`. False: an index refuses the
/// row, and nothing was added.
bool TableShard::append_index_entries(const Collection& collection, const model::RowView& row,
                                      std::string_view inherited, const model::RowView* replaced) {
  if (replaced != nullptr && replaced->tombstone()) replaced = nullptr;
  for (std::size_t i = 0; i < indexes_.size(); ++i)
    entry_marks_[i] = {entries_[i].bytes.size(), entries_[i].rows.size()};
  for (std::size_t i = 0; i < indexes_.size(); ++i) {
    const IndexPlan& plan = indexes_[i]->plan;
    const auto append = [&](const model::RowView& from, const std::string_view& more, bool remove) {
      return plan.append_entry({collection.partition_key(), from.sort_key(), from.attributes(), more, row.version()},
                               remove, scratch_, entries_[i]);
    };
    if (replaced != nullptr &&
        (row.tombstone() || !plan.same_place(replaced->attributes(), row.attributes(), inherited)))
      append(*replaced, {}, true);
    if (row.tombstone() || append(row, inherited, false) != IndexPlan::Outcome::kRefused) continue;
    for (std::size_t j = 0; j <= i; ++j) {
      entries_[j].bytes.resize(entry_marks_[j].bytes);
      entries_[j].rows.resize(entry_marks_[j].rows);
    }
    return false;
  }
  return true;
}

/// Stores a row and what it inherits, over what is there. Requires: `newest` is what is_append() says of its key.
void TableShard::put(Collection& collection, const model::RowView& row, std::string_view inherited, bool newest) {
  changes_.about_to_change(collection);
  const std::int64_t items = collection.writer.items;
  const std::int64_t bytes = collection.writer.bytes;
  if (newest) {
    collection.append(row, retired_, inherited);
  } else {
    merge_one(collection, row, inherited);
  }
  if (!inherited_.empty() && row.sort_key() == schema_.inherit_from) learn_stamp(collection, row);
  note_size(collection, items, bytes);
}

void TableShard::merge_one(Collection& collection, const model::RowView& row, std::string_view inherited) {
  changes_.about_to_change(collection);
  row_.assign(row.bytes()).append(inherited);
  const Change change{row_, false};
  collection.merge({&change, 1}, retired_, changes_.gone_keys());
  changes_.add_gone(collection);
}

void TableShard::apply(Collection& collection, std::string_view row_bytes) {
  const model::RowView row(row_bytes);
  const bool newest = collection.is_append(row.sort_key());
  const FoundRow found = newest ? FoundRow{} : collection.find(row.sort_key());
  if (!found.status.ok()) [[unlikely]] {
    add<std::uint64_t>(shared_.rows_unreadable, 1);
    return;
  }
  const std::optional<model::RowView>& present = found.row;
  if (present) {
    if (same_content(*present, row)) {
      ++count_.repeated;
      if (row.version() <= present->version()) return;
      // The same again, but later: the later version counts in a conflict to come, whatever the order of arrival.
      model::Bytes raised;
      const std::uint8_t flags = row.tombstone() ? model::kRowTombstone : 0;
      model::append_row(raised, row.version(), flags, row.sort_key(), present->attributes());
      merge_one(collection, model::RowView(raised), {});
      return;
    }
    if (row.version() <= present->version()) {
      ++count_.conflicting;
      return;
    }
  }
  const std::string_view inherited = inherited_by(collection, row);
  if (row_bytes.size() + inherited.size() > model::kItemSizeBytesMax ||
      (!indexes_.empty() && !append_index_entries(collection, row, inherited, present ? &*present : nullptr))) {
    ++count_.refused;
    return;
  }
  put(collection, row, inherited, newest);
  ++(present ? count_.conflicting : count_.stored);
  if (!newest && !present) ++count_.late;
}

/// Of a durable store: what the turn's API writes are acknowledged behind.
void TableShard::log(std::string_view partition_key, std::string_view row, std::string_view more) {
  if (shared_.log == nullptr) return;
  WriteLog::Entry& entry = log_entries_.emplace_back();
  entry.table = table_id_;
  entry.interval = changes_.interval();
  entry.partition_key = partition_key;
  entry.row.assign(row).append(more);
}

/// Removes what has come of age from a collection, and its index entries; whether there is more for another turn. Not
/// logged: after a crash the same rows have come of age again.
bool TableShard::trim(const Write& write) {
  constexpr std::size_t kRowsPerTurn = 4096;
  Collection* const collection = space_.find(model::hash_key(write.partition_key), write.partition_key);
  if (collection == nullptr) return false;
  changes_.about_to_change(*collection);
  const std::int64_t items = collection->writer.items;
  const std::int64_t bytes = collection->writer.bytes;
  model::Bytes tombstone;
  model::append_row(tombstone, {}, model::kRowTombstone, {}, {});
  const auto leave_indexes = [&](const model::RowView& row) {
    append_index_entries(*collection, model::RowView(tombstone), {}, &row);
  };
  const Collection::Trimmed trimmed =
      collection->trim(*write.trim, indexes_.empty() ? Collection::UseRow() : leave_indexes, kRowsPerTurn, retired_,
                       changes_.gone_keys());
  changes_.add_gone(*collection);
  note_size(*collection, items, bytes);
  add(counters_.expired, static_cast<std::uint64_t>(-trimmed.delta.items));
  return trimmed.more;
}

model::Status TableShard::apply(ItemWrite& write) {
  if (shared_.log != nullptr && !shared_.log->writable()) {
    return {model::StatusCode::kUnavailable, "store.directory can't be written"};
  }
  const model::KeyHash hash = model::hash_key(write.partition_key);
  Collection* collection = space_.find(hash, write.partition_key);
  const FoundRow found = collection != nullptr ? collection->find(write.sort_key) : FoundRow{};
  if (!found.status.ok()) return {model::StatusCode::kUnavailable, found.status.message()};
  const std::optional<model::RowView>& present = found.row;
  const bool visible = present && !present->tombstone();
  const ItemWrite::Decision decision = write.decide(visible ? std::optional(present->attributes()) : std::nullopt);
  const bool changes_nothing =
      decision.action == ItemWrite::Action::kNone || (decision.action == ItemWrite::Action::kDelete && !visible);
  if (changes_nothing) {
    // The deletion that it is told of may not be on the disk yet, or have failed there.
    if (present && present->tombstone()) log(write.partition_key, present->bytes(), {});
    return {};
  }

  const bool remove = decision.action == ItemWrite::Action::kDelete;
  const std::int64_t above = present ? present->version().log_time_ms() + 1 : 0;
  const auto version = model::Version::of(std::max(shared_.options.clock(), above), model::kApiSource, ++api_sequence_);
  model::Bytes plain;
  model::append_row(plain, version, remove ? model::kRowTombstone : 0, write.sort_key,
                    remove ? std::string_view{} : std::string_view(decision.attributes));
  Collection& target = collection != nullptr ? *collection : collection_of(hash, write.partition_key);
  const model::RowView row(plain);
  const std::string_view inherited = inherited_by(target, row);
  // What was written has passed the API's own check; here only what comes on top can be too much.
  if (!inherited.empty() && row.bytes().size() + inherited.size() > model::kItemSizeBytesMax) {
    return model::invalid("Item size has exceeded the maximum allowed size");
  }
  if (!append_index_entries(target, row, inherited, present ? &*present : nullptr)) {
    return model::invalid("One or more parameter values were invalid: Type mismatch for Index Key");
  }
  put(target, row, inherited, target.is_append(row.sort_key()));
  log(write.partition_key, row.bytes(), inherited);
  ++tally_.records;
  tally_.bytes += row.bytes().size() + inherited.size();
  return {};
}

}  // namespace drover::store

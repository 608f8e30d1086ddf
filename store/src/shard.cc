#include "shard.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "drover/model/clock.h"
#include "drover/model/limits.h"
#include "united_item.h"

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

model::Status collection_full() {
  return {model::StatusCode::kTooLarge, "the item collection is as large as a local index allows"};
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

void Shard::restore(model::KeyHash hash, std::string_view partition_key, const Pieces& history, Block* tail,
                    const RestoredLate& late) {
  Collection& collection = collection_of(hash, partition_key);
  collection.restore(history, tail, late, retired_);
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
void Shard::for_each_row(const model::RowBatch& rows, std::span<const std::uint32_t> selected, Apply&& apply) {
  constexpr std::size_t kAhead = 32;  // rows whose look-ups overlap
  std::array<Space::Probe, kAhead> probes;
  for (; !selected.empty(); selected = selected.subspan(std::min(kAhead, selected.size()))) {
    const std::size_t count = std::min(kAhead, selected.size());
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
      Collection* const found = probes[i].found(partition_key);
      apply(found != nullptr ? *found : collection_of(row.hash, partition_key), row);
    }
  }
}

/// Counts the rows of a batch, and samples their keys. `bytes`: of these rows.
void Shard::count_rows(const partitioner::RoutedBatch& batch, std::uint64_t bytes) {
  const model::RowBatch& rows = *batch.rows;
  tally_.bytes += bytes;
  std::size_t at = until_sample_ - 1;
  for (; at < batch.selected.size(); at += partitioner::kHeatSampleEvery) {
    const model::RowBatch::Row& row = rows.rows[batch.selected[at]];
    sample(row.hash, rows.partition_key(row));
  }
  until_sample_ = static_cast<std::uint32_t>(at + 1 - batch.selected.size());
  tally_.records += batch.selected.size();
  ++tally_.batches;
}

void Shard::sample(model::KeyHash hash, std::string_view partition_key) {
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
  std::vector<Delivery> without_entries;  // acknowledged with the others
  std::int64_t taken = 0;
  for (Delivery delivery; taken < inbox_.capacity() && inbox_.try_pop(delivery); ++taken) {
    (delivery.order != nullptr ? deliveries : without_entries).push_back(std::move(delivery));
  }
  merge(deliveries);
  publish_stats();
  shared_.in_flight.fetch_sub(taken, std::memory_order_acq_rel);  // pairs with idle()
  deliveries.clear();
  without_entries.clear();
  if (const auto table = table_.lock()) {
    for (TableShard* shard : upstream_) shard->wake();
  }
}

void IndexShard::merge(std::span<const Delivery> deliveries) {
  if (deliveries.empty()) return;
  merged_.clear();
  group_of_.clear();
  std::string_view prefix = deliveries.front().order->prefix;  // of all sort keys
  for (const Delivery& delivery : deliveries) {
    take_groups(delivery);
    count_rows(delivery.batch, delivery.order->row_bytes);
    prefix = prefix.substr(0, common_size(prefix, delivery.order->prefix));
  }
  HeadBits bits;
  for (const Delivery& delivery : deliveries) {
    bits.see(HeadBehind(delivery.order->prefix, prefix.size())(delivery.order->bits));
  }
  const HeadPacker pack(bits);
  // A counting sort by collection, which keeps the order of arrival within each.
  const auto for_each_entry = [&](auto&& use) {
    const std::uint32_t* merged = group_of_.data();
    for (const Delivery& delivery : deliveries) {
      const HeadBehind head(delivery.order->prefix, prefix.size());
      const char* const bytes = delivery.batch.rows->bytes.data();
      for (const EntryOrder::Mark& mark : delivery.order->marks) use(merged_[merged[mark.group]], mark, head, bytes);
      merged += delivery.order->firsts.size();
    }
  };
  for_each_entry([](Merged& merged, auto&&...) { ++merged.count; });
  std::uint32_t begin = 0;
  for (Merged& merged : merged_) {
    merged.end = begin;
    begin += merged.count;
  }
  entries_.resize(begin);
  for_each_entry([&](Merged& merged, const EntryOrder::Mark& mark, const HeadBehind& head, const char* bytes) {
    entries_[merged.end++] = {pack(head(mark.head)), bytes + mark.begin, mark.row_size, mark.remove};
  });
  for (const Merged& merged : merged_) {
    const std::span entries = std::span(entries_).subspan(merged.end - merged.count, merged.count);
    sorter_.sort(entries, pack.bits());
    merge(*merged.collection, entries);
  }
}

/// Looks up the collections that a delivery's groups belong to: appends to group_of_ where each stands in merged_.
void IndexShard::take_groups(const Delivery& delivery) {
  for_each_row(*delivery.batch.rows, delivery.order->firsts, [&](Collection& collection, const model::RowBatch::Row&) {
    std::uint32_t& at = collection.group;
    if (at >= merged_.size() || merged_[at].collection != &collection) {
      at = static_cast<std::uint32_t>(merged_.size());
      merged_.push_back({&collection});
    }
    group_of_.push_back(at);
  });
}

void IndexShard::merge(Collection& collection, std::span<const Entry> entries) {
  merge_changes_.clear();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    // Of one key's changes the last one counts: one table shard sent them all, in order.
    if (i + 1 < entries.size() && entries[i].key == entries[i + 1].key &&
        entries[i].sort_key() == entries[i + 1].sort_key())
      continue;
    merge_changes_.push_back({entries[i].row_bytes(), entries[i].remove});
  }
  const std::vector<Change>& changes = merge_changes_;
  changes_.about_to_change(collection);
  const std::string_view first_key = model::RowView(changes.front().row).sort_key();
  changes_.add_merge(collection, first_key);
  const std::int64_t items = collection.writer.items;
  const std::int64_t bytes = collection.writer.bytes;
  if (collection.is_append(first_key)) {
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

GlobalIndex::GlobalIndex(Shared& shared, const model::TableSchema& table, model::IndexSchema index,
                         std::uint16_t index_number, std::uint16_t shard_count)
    : schema(std::move(index)),
      number(index_number),
      plan(table, schema, shared.names),
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
                       std::shared_ptr<const Indexes> indexes, Stamps& stamps, TableCounters& counters)
    : Shard(shared, space, id, shared.options.inbox_batches),
      schema_(schema),
      stamps_(stamps),
      counters_(counters),
      indexes_(std::move(indexes)),
      entries_(indexes_->size()),
      scratch_(indexes_->size()),
      entry_marks_(indexes_->size()) {
  writes_.set_capacity(static_cast<std::ptrdiff_t>(model::kShardInboxWritesMax));
  for (const std::string& name : schema.inherit) {
    const model::NameId interned = shared.names.intern(name);
    inherited_.push_back(interned);
    inherited_mask_.add(interned);
  }
  if (CollectionSizes::has_limit(schema)) {
    const auto own = shared.options.item_collection_limits.find(schema.name);
    sizes_.emplace(
        schema, shared.names,
        own != shared.options.item_collection_limits.end() ? own->second : shared.options.item_collection_limit_bytes);
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

void TableShard::restore(model::KeyHash hash, std::string_view partition_key, const Pieces& history, Block* tail,
                         const RestoredLate& late) {
  const auto begins_empty = [](const Block& rows) { return rows.writer_count() > 0 && rows.row(0).sort_key().empty(); };
  const bool marked =
      schema_.key.sort_key && ((late.rows != nullptr && begins_empty(*late.rows)) ||
                               (history.empty() ? begins_empty(*tail) : history.front().first_key.empty()));
  Shard::restore(hash, partition_key, history, tail, late);
  Collection& collection = *space_.find(hash, partition_key);
  if (sizes_) sizes_->restore(collection);
  if (marked) erased_until_ms_ = std::max(erased_until_ms_, erased_until_ms(collection));
  if (inherited_.empty()) return;
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
      return !inbox_.empty() || has_next_indexes_.load() || is_erasing_.load() ||
             ((!writes_.empty() || filling_.load()) && !shared_.holding.load());
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
  for (const Erasing& erasing : erasing_) erasing.erasure->fail(table_gone());
  shared_.in_flight.fetch_sub(static_cast<std::int64_t>(erasing_.size()), std::memory_order_acq_rel);
  erasing_.clear();
  is_erasing_.store(false);
  for (const Undelivered& undelivered : outbox_)
    undelivered.delivery.ack->dropped.store(true, std::memory_order_relaxed);
  shared_.in_flight.fetch_sub(static_cast<std::int64_t>(outbox_.size()), std::memory_order_acq_rel);
  outbox_.clear();
  room_.exchange(Room::kNotWaiting);
  take_indexes();
  for (const FillingPart& part : parts_) part.filling->abandoned.store(true, std::memory_order_relaxed);
  parts_.clear();
  filling_.store(false);
  flush_indexes();  // what was delivered and gathers there would else be left lying
}

void TableShard::run() {
  const bool carried = !outbox_.empty();  // maybe with an API write that waits for it
  if (!deliver()) return flush_indexes();
  take_indexes();            // nothing is on its way to one that goes
  std::int64_t applied = 1;  // the turn itself: see Shared::holding
  shared_.in_flight.fetch_add(1);
  auto acknowledgement = std::make_shared<Acknowledgement>();
  const bool writes = !shared_.holding.load() && apply_writes(acknowledgement) > 0;
  const bool erased = erase_some(acknowledgement);
  if (erased) ++applied;
  Delivery delivery;
  const bool stream = inbox_.try_pop(delivery);
  if (stream) {
    const model::RowBatch& rows = *delivery.batch.rows;
    std::uint64_t bytes = 0;
    for_each_row(rows, delivery.batch.selected, [&](Collection& collection, const model::RowBatch::Row& row) {
      apply(collection, rows.row_bytes(row), row.names);
      bytes += row.row_size;
    });
    count_rows(delivery.batch, bytes);
    ++applied;
  }
  const bool filled = filling_.load(std::memory_order_relaxed) && !shared_.holding.load() && fill(acknowledgement);
  add(counters_.stored, count_.stored);
  add(counters_.repeated, count_.repeated);
  add(counters_.conflicting, count_.conflicting);
  add(counters_.late, count_.late);
  add(counters_.refused, count_.refused);
  add(counters_.over_limit, count_.over_limit);
  count_ = {};
  publish_stats();
  send_index_entries(std::move(acknowledgement));
  deliver();
  // Behind the delivery: who is last has the indexes flushed for all.
  const bool last = stream && counters_.batches_in_hand.fetch_sub(1, std::memory_order_acq_rel) == 1;
  shared_.in_flight.fetch_sub(applied, std::memory_order_acq_rel);  // after the entries were counted: pairs with idle()
  if (carried || writes || last || filled || erased || ++turns_since_flush_ == kTurnsPerFlush) flush_indexes();
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
    model::Status status = write.erases ? begin_erasing(write, acknowledgement) : apply(write);
    if (write.erases && status.ok()) continue;
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
  for (const auto& index : *indexes_) {
    for (const auto& shard : index->shards) shard->flush();
  }
}

void TableShard::set_indexes(std::shared_ptr<const Indexes> indexes, std::shared_ptr<Filling> filling,
                             partitioner::ShardMap::Range segments) {
  {
    const model::LockGuard lock(next_indexes_mutex_);
    next_indexes_.push_back(std::move(indexes));
    if (filling != nullptr) next_parts_.push_back({std::move(filling), segments, {}, 0, {}});
  }
  has_next_indexes_.store(true);
  schedule();
}

/// Goes over to the indexes that were set last. Requires: the outbox and the entries are empty.
void TableShard::take_indexes() {
  if (!has_next_indexes_.load(std::memory_order_relaxed)) [[likely]]
    return;
  has_next_indexes_.exchange(false);
  std::vector<FillingPart> more;
  std::vector<std::shared_ptr<const Indexes>> next;
  {
    const model::LockGuard lock(next_indexes_mutex_);
    next.swap(next_indexes_);
    more.swap(next_parts_);
  }
  if (next.empty()) return;  // the turn before took them between set_indexes()' list and its word
  const std::shared_ptr<const Indexes> old = std::exchange(indexes_, next.back());
  const auto is_gone = [this](const std::shared_ptr<GlobalIndex>& index) {
    return std::find(indexes_->begin(), indexes_->end(), index) == indexes_->end();
  };
  // Nothing comes behind what gathers in an index that goes, and somebody may wait for it.
  for (const auto& index : *old) {
    for (const auto& shard : index->shards) {
      if (is_gone(index)) shard->flush();
    }
  }
  entries_.resize(indexes_->size());
  scratch_.assign(indexes_->size(), {});
  entry_marks_.resize(indexes_->size());
  std::move(more.begin(), more.end(), std::back_inserter(parts_));
  std::erase_if(parts_, [&](const FillingPart& part) {
    if (is_gone(part.filling->index)) part.filling->abandoned.store(true, std::memory_order_relaxed);
    return is_gone(part.filling->index);
  });
  filling_.store(!parts_.empty());
  // Readers may still be at what was published before these, be it that no turn ever took it.
  next.back() = old;
  for (std::shared_ptr<const Indexes>& unused : next) {
    retired_.retire(new std::shared_ptr<const Indexes>(std::move(unused)),
                    [](void* retired) { delete static_cast<std::shared_ptr<const Indexes>*>(retired); });
  }
}

/// Sends a step's rows to the index that is being filled; whether it was the last step of one. What the turn sends
/// holds the filling too.
bool TableShard::fill(const std::shared_ptr<Acknowledgement>& acknowledgement) {
  constexpr std::size_t kFillRowsPerTurn = 1024;
  constexpr std::size_t kFillBytesPerTurn = std::size_t{1} << 20;
  FillingPart& part = parts_.front();
  acknowledgement->done.emplace_back([filling = part.filling](const model::Status&) {});
  const auto place = std::find(indexes_->begin(), indexes_->end(), part.filling->index);
  const auto index = static_cast<std::size_t>(place - indexes_->begin());
  model::RowBatch& entries = entries_[index];
  const std::size_t bytes_max = entries.bytes.size() + kFillBytesPerTurn;
  for (std::size_t rows = 0; rows < kFillRowsPerTurn && entries.bytes.size() < bytes_max;) {
    if (part.next == part.collections.size()) {
      if (part.segments.begin == part.segments.end) {
        parts_.pop_front();
        filling_.store(!parts_.empty());
        return true;
      }
      part.collections = space_.collections(part.segments.begin++);
      part.next = 0;
      continue;
    }
    const Collection& collection = *part.collections[part.next];
    Cursor cursor(collection);
    cursor.be_patient();
    if (part.after) {
      cursor.seek_upper_bound(*part.after);
    } else {
      cursor.seek_first();
    }
    bool more = cursor.at_row();
    for (; more && rows < kFillRowsPerTurn && entries.bytes.size() < bytes_max; more = cursor.next(), ++rows) {
      const model::RowView row = cursor.row();
      part.after = row.sort_key();
      if (row.tombstone()) continue;
      // What can't be a key of the index is not in it: it was there first.
      (void)part.filling->index->plan.append_entry({collection.partition_key(), row.sort_key(), row.attributes(), {}},
                                                   false, scratch_[index], entries);
    }
    if (!cursor.status().ok()) add<std::uint64_t>(shared_.rows_unreadable, 1);
    if (more) break;
    ++part.next;
    part.after.reset();
  }
  return false;
}

void TableShard::send_index_entries(std::shared_ptr<Acknowledgement> acknowledgement) {
  for (std::size_t i = 0; i < indexes_->size(); ++i) {
    if (entries_[i].rows.empty()) continue;
    GlobalIndex& index = *(*indexes_)[i];
    const std::size_t bytes = entries_[i].bytes.size();
    const std::size_t count = entries_[i].rows.size();
    auto rows = std::make_shared<const model::RowBatch>(std::exchange(entries_[i], {}));
    // The next turn likely makes as many.
    entries_[i].bytes.reserve(bytes + bytes / 8);
    entries_[i].rows.reserve(count + count / 8);
    for (partitioner::RoutedBatch& routed : partitioner::route(rows, index.map.current())) {
      IndexShard* to = index.shards[routed.shard.value].get();
      shared_.in_flight.fetch_add(1, std::memory_order_acq_rel);
      auto order = std::make_shared<const EntryOrder>(EntryOrder::of(*rows, routed.selected));
      outbox_.push_back({to, {std::move(routed), acknowledgement, std::move(order)}});
    }
  }
  if (std::exchange(waits_for_indexes_, false)) send_nothing(acknowledgement);
}

/// Has the turn's writes acknowledged behind all that the indexes were sent before: an inbox is merged in its order.
void TableShard::send_nothing(const std::shared_ptr<Acknowledgement>& acknowledgement) {
  for (const auto& index : *indexes_) {
    for (const auto& shard : index->shards) {
      shared_.in_flight.fetch_add(1, std::memory_order_acq_rel);
      outbox_.push_back({shard.get(), {{}, acknowledgement}});
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
std::string_view TableShard::inherited_by(const Collection& collection, const model::RowView& row,
                                          model::NameMask names) {
  if (collection.writer.stamp == nullptr || row.tombstone() || row.sort_key() == schema_.inherit_from) return {};
  const std::string& stamp = *collection.writer.stamp;
  if (names.surely_apart(inherited_mask_)) [[likely]]
    return stamp;
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
                                      std::string_view inherited, const model::RowView* replaced,
                                      model::NameMask names) {
  if (replaced != nullptr && replaced->tombstone()) replaced = nullptr;
  for (std::size_t i = 0; i < indexes_->size(); ++i)
    entry_marks_[i] = {entries_[i].bytes.size(), entries_[i].rows.size()};
  for (std::size_t i = 0; i < indexes_->size(); ++i) {
    const IndexPlan& plan = (*indexes_)[i]->plan;
    const auto append = [&](const model::RowView& from, const std::string_view& more, model::NameMask own_names,
                            bool remove) {
      return plan.append_entry({collection.partition_key(), from.sort_key(), from.attributes(), more, own_names},
                               remove, scratch_[i], entries_[i]);
    };
    if (replaced != nullptr &&
        (row.tombstone() || !plan.same_place(replaced->attributes(), row.attributes(), inherited)))
      append(*replaced, {}, model::NameMask::unknown(), true);
    if (row.tombstone() || append(row, inherited, names, false) != IndexPlan::Outcome::kRefused) continue;
    for (std::size_t j = 0; j <= i; ++j) {
      entries_[j].bytes.resize(entry_marks_[j].bytes);
      entries_[j].rows.resize(entry_marks_[j].rows);
    }
    return false;
  }
  return true;
}

/// By how much the collection grows when `row` takes the place of `replaced`; nothing is measured without a limit.
std::int64_t TableShard::growth(const Collection& collection, const model::RowView& row, std::string_view inherited,
                                const model::RowView* replaced) {
  if (!sizes_) return 0;
  const std::string_view partition_key = collection.partition_key();
  return sizes_->size_of(partition_key, row, inherited) -
         (replaced != nullptr ? sizes_->size_of(partition_key, *replaced) : 0);
}

/// Stores a row and what it inherits, over what is there. Requires: `found` is what find() says of its key, null where
/// is_append() is true.
void TableShard::put(Collection& collection, const model::RowView& row, std::string_view inherited,
                     const FoundRow* found) {
  changes_.about_to_change(collection);
  const std::int64_t items = collection.writer.items;
  const std::int64_t bytes = collection.writer.bytes;
  if (found == nullptr) {
    collection.append(row, retired_, inherited);
  } else {
    const std::size_t lost = collection.put_late(row, inherited, *found, retired_, changes_.gone_keys());
    add<std::uint64_t>(shared_.rows_unreadable, lost);
    changes_.add_gone(collection);
  }
  if (!inherited_.empty() && row.sort_key() == schema_.inherit_from) learn_stamp(collection, row);
  note_size(collection, items, bytes);
}

// Erasing
//
// Marker.  A tombstone with the empty sort key, which no item has where there is one: the collection's first row, as
//          any other logged, checkpointed and restored. What is not later than its log time is gone. (In a table
//          without sort keys it is the item's own tombstone, and versions do the rest.)
// Later.   A stream row that is not later than the shard's latest marker is looked up; all others cost a compare.
// Removal. Some rows a turn, from the marker on. It counts as in flight, so a cut has all of it, or what the log
//          repeats.

TableShard::Erasure::~Erasure() {
  if (done) done(status);
}

void TableShard::Erasure::fail(const model::Status& why) {
  const std::lock_guard lock(mutex);
  if (status.ok()) status = why;
}

/// The log time of the collection's marker; -1: there is none.
std::int64_t TableShard::erased_until_ms(const Collection& collection) const {
  const FoundRow marker = collection.find({});
  return marker.row && marker.row->tombstone() ? marker.row->version().log_time_ms() : -1;
}

/// Whether a stream row is one of what was erased. A marker, from the log of a durable store, is taken as such.
bool TableShard::is_erased(Collection& collection, const model::RowView& row) {
  const bool away = row.version().log_time_ms() <= erased_until_ms(collection);
  if (away) ++count_.conflicting;
  const bool marker = schema_.key.sort_key && row.sort_key().empty();
  if (marker && !away) erase_behind(collection, row, std::make_shared<Erasure>());
  return away || marker;
}

model::Status TableShard::begin_erasing(ItemWrite& write, const std::shared_ptr<Acknowledgement>& acknowledgement) {
  if (shared_.log != nullptr && !shared_.log->writable()) {
    return {model::StatusCode::kUnavailable, "store.directory can't be written"};
  }
  Collection& collection = collection_of(model::hash_key(write.partition_key), write.partition_key);
  // Vehicles' clocks may be ahead: what they sent is gone too.
  std::int64_t until_ms = shared_.options.clock();
  Cursor cursor(collection);
  for (cursor.seek_first(); cursor.at_row(); cursor.next()) {
    until_ms = std::max(until_ms, cursor.row().version().log_time_ms());
  }
  if (!cursor.status().ok()) return {model::StatusCode::kUnavailable, cursor.status().message()};
  model::Bytes marker;
  model::append_row(marker, model::Version::of(until_ms, model::kApiSource, ++api_sequence_), model::kRowTombstone, {},
                    {});
  log(write.partition_key, marker, {});
  auto erasure = std::make_shared<Erasure>();
  erasure->done = std::move(write.done);
  acknowledgement->done.emplace_back([erasure](const model::Status& status) {
    if (!status.ok()) erasure->fail(status);
  });
  erase_behind(collection, model::RowView(marker), std::move(erasure));
  return {};
}

/// Puts the marker and has erase_some() do the rest.
void TableShard::erase_behind(Collection& collection, const model::RowView& marker, std::shared_ptr<Erasure> erasure) {
  const FoundRow present = collection.find({});
  append_index_entries(collection, marker, {}, present.row ? &*present.row : nullptr);
  put(collection, marker, {}, collection.is_append({}) ? nullptr : &present);
  if (collection.writer.stamp != nullptr) stamps_.give_back(std::exchange(collection.writer.stamp, nullptr));
  const std::int64_t until_ms = marker.version().log_time_ms();
  erased_until_ms_ = std::max(erased_until_ms_, until_ms);
  shared_.in_flight.fetch_add(1, std::memory_order_acq_rel);
  erasing_.push_back({&collection, until_ms, {}, std::move(erasure)});
  is_erasing_.store(true);
}

/// Removes some rows of the first collection that is being erased; whether it has none any more.
bool TableShard::erase_some(const std::shared_ptr<Acknowledgement>& acknowledgement) {
  constexpr std::size_t kRowsPerTurn = 8'192;
  if (erasing_.empty()) return false;
  Erasing& erasing = erasing_.front();
  Collection& collection = *erasing.collection;
  std::deque<model::Bytes> removals;
  std::vector<Change> changes;
  Cursor cursor(collection);
  for (cursor.seek_upper_bound(erasing.behind); cursor.at_row() && removals.size() < kRowsPerTurn; cursor.next()) {
    const model::RowView row = cursor.row();
    erasing.behind = row.sort_key();
    if (row.version().log_time_ms() > erasing.until_ms) continue;
    model::Bytes& removal = removals.emplace_back();
    model::append_row(removal, row.version(), model::kRowTombstone, row.sort_key(), {});
    append_index_entries(collection, model::RowView(removal), {}, &row);
    if (sizes_) sizes_->add(collection, growth(collection, model::RowView(removal), {}, &row));
    changes.push_back({removal, true});
  }
  const bool ended = !cursor.at_row() || !cursor.status().ok();
  if (!cursor.status().ok()) {
    erasing.erasure->fail({model::StatusCode::kUnavailable, "not all could be erased: " + cursor.status().message()});
  }
  if (!changes.empty()) {
    changes_.about_to_change(collection);
    const std::int64_t items = collection.writer.items;
    const std::int64_t bytes = collection.writer.bytes;
    const SizeDelta delta = collection.merge(changes, retired_, changes_.gone_keys());
    if (delta.unreadable > 0) {
      erasing.erasure->fail({model::StatusCode::kUnavailable, "not all could be erased: a block can't be read"});
    }
    changes_.add_gone(collection);
    note_size(collection, items, bytes);
  }
  if (!ended) return false;
  acknowledgement->done.emplace_back([erasure = std::move(erasing.erasure)](const model::Status& status) {
    if (!status.ok()) erasure->fail(status);
  });
  erasing_.pop_front();
  is_erasing_.store(!erasing_.empty());
  return true;
}

/// Whether a row changes nothing that readers see of what is there; it is counted then, and its version kept.
bool TableShard::is_repeat(Collection& collection, const model::RowView& row, const FoundRow& found) {
  const model::RowView& present = *found.row;
  if (!same_content(present, row)) {
    if (row.version() > present.version()) return false;
    ++count_.conflicting;
    return true;
  }
  ++count_.repeated;
  if (row.version() <= present.version()) return true;
  // The same again, but later: the later version counts in a conflict to come, whatever the order of arrival.
  row_.clear();
  const std::uint8_t flags = row.tombstone() ? model::kRowTombstone : 0;
  model::append_row(row_, row.version(), flags, row.sort_key(), present.attributes());
  put(collection, model::RowView(row_), {}, &found);
  return true;
}

/// As is_repeat(), where the row or what is there unites (united_item.h). False: united_ is the row to store, with its
/// stamp.
bool TableShard::unite(Collection& collection, const model::RowView& row, const FoundRow& found) {
  united_.clear();
  if (!found.row) {
    const std::string_view stamp = inherited_by(collection, row);
    if (stamp.empty()) {
      united_ = row.bytes();
    } else {
      append_stamped_row(united_, row, stamp);
    }
    return false;
  }
  const UnitedItem stored = UnitedItem::of(*found.row, shared_.names);
  const UnitedItem incoming = UnitedItem::of(row, shared_.names);
  UnitedItem united = stored;
  if (!erasing_.empty()) {  // what is erased may still stand there
    united.raise_floor(model::Version::of(erased_until_ms(collection) + 1, model::kApiSource, 0));
  }
  united = store::unite(united, incoming);
  if (!united.same_content(stored)) {
    united.append_row(united_, row.sort_key(), {});
    const std::string_view stamp = inherited_by(collection, model::RowView(united_));
    if (stamp.empty()) return false;
    united_.clear();
    united.append_row(united_, row.sort_key(), stamp);
    return false;
  }
  ++((row.unites() ? stored.contains(incoming) : same_content(*found.row, row)) ? count_.repeated : count_.conflicting);
  if (united == stored) return true;
  united.append_row(united_, row.sort_key(), {});
  put(collection, model::RowView(united_), {}, &found);
  return true;
}

void TableShard::apply(Collection& collection, std::string_view row_bytes, model::NameMask names) {
  model::RowView row(row_bytes);
  if (row.version().log_time_ms() <= erased_until_ms_ || row.tombstone()) [[unlikely]] {
    if (is_erased(collection, row)) return;
  }
  const bool newest = collection.is_append(row.sort_key());
  const FoundRow found = newest ? FoundRow{} : collection.find(row.sort_key());
  if (!found.status.ok()) [[unlikely]] {
    add<std::uint64_t>(shared_.rows_unreadable, 1);
    return;
  }
  const model::RowView* const present = found.row ? &*found.row : nullptr;
  std::string_view inherited;
  if (row.unites() || (present != nullptr && present->unites())) {
    if (unite(collection, row, found)) return;
    row = model::RowView(united_);
    names = model::NameMask::unknown();
  } else {
    if (present != nullptr && is_repeat(collection, row, found)) return;
    inherited = inherited_by(collection, row, names);
  }
  const std::int64_t grown = growth(collection, row, inherited, present);
  // What the log of API writes brings back was admitted once.
  if (sizes_ && !sizes_->admits(collection, grown) && row.version().source() != model::kApiSource) [[unlikely]] {
    ++count_.refused;
    ++count_.over_limit;
    return;
  }
  if (row.bytes().size() - row.origins().size() + inherited.size() > model::kItemSizeBytesMax ||
      (!indexes_->empty() && !append_index_entries(collection, row, inherited, present, names))) {
    ++count_.refused;
    return;
  }
  put(collection, row, inherited, newest ? nullptr : &found);
  if (sizes_) sizes_->add(collection, grown);
  ++(present != nullptr ? count_.conflicting : count_.stored);
  if (!newest && present == nullptr) ++count_.late;
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
  model::Bytes removal_bytes;
  model::append_row(removal_bytes, {}, model::kRowTombstone, {}, {});
  const model::RowView removal(removal_bytes);
  const auto leave = [&](const model::RowView& row) {
    append_index_entries(*collection, removal, {}, &row);
    if (sizes_) sizes_->add(*collection, growth(*collection, removal, {}, &row));
  };
  // What is filling an index goes on behind this with the rows that are left: nothing that goes here comes back.
  const bool leaves_alone = indexes_->empty() && !sizes_;
  const Collection::Trimmed trimmed = collection->trim(*write.trim, leaves_alone ? Collection::UseRow() : leave,
                                                       kRowsPerTurn, retired_, changes_.gone_keys());
  changes_.add_gone(*collection);
  note_size(*collection, items, bytes);
  add<std::uint64_t>(shared_.rows_unreadable, trimmed.delta.unreadable);
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
  const bool erased = present && !erasing_.empty() && present->version().log_time_ms() <= erased_until_ms(*collection);
  const bool visible = present && !present->tombstone() && !erased;
  const ItemWrite::Decision decision = write.decide(visible ? std::optional(present->attributes()) : std::nullopt);
  const bool changes_nothing =
      decision.action == ItemWrite::Action::kNone || (decision.action == ItemWrite::Action::kDelete && !visible);
  if (changes_nothing) {
    // The deletion that it is told of may not be on the disk yet, or have failed there; nor be in the indexes.
    if (present && present->tombstone()) log(write.partition_key, present->bytes(), {});
    waits_for_indexes_ = true;
    if (sizes_ && write.sized) write.sized(collection != nullptr ? sizes_->of(*collection) : 0);
    return {};
  }

  const bool remove = decision.action == ItemWrite::Action::kDelete;
  std::int64_t above = present ? present->version().log_time_ms() + 1 : 0;
  if (collection != nullptr && shared_.options.clock() <= erased_until_ms_) [[unlikely]] {
    above = std::max(above, erased_until_ms(*collection) + 1);
  }
  const auto version = model::Version::of(std::max(shared_.options.clock(), above), model::kApiSource, ++api_sequence_);
  model::Bytes plain;
  model::append_row(plain, version, remove ? model::kRowTombstone : 0, write.sort_key,
                    remove ? std::string_view{} : std::string_view(decision.attributes));
  Collection& target = collection != nullptr ? *collection : collection_of(hash, write.partition_key);
  const model::RowView row(plain);
  const std::string_view inherited = write.inherits ? inherited_by(target, row) : std::string_view{};
  // What was written has passed the API's own check; here only what comes on top can be too much.
  if (!inherited.empty() && row.bytes().size() + inherited.size() > model::kItemSizeBytesMax) {
    return model::invalid("Item size has exceeded the maximum allowed size");
  }
  const std::int64_t grown = growth(target, row, inherited, present ? &*present : nullptr);
  if (sizes_ && !sizes_->admits(target, grown)) return collection_full();
  if (!append_index_entries(target, row, inherited, present ? &*present : nullptr)) {
    return model::invalid("One or more parameter values were invalid: Type mismatch for Index Key");
  }
  put(target, row, inherited, target.is_append(row.sort_key()) ? nullptr : &found);
  if (sizes_) sizes_->add(target, grown);
  if (sizes_ && write.sized) write.sized(sizes_->of(target));
  log(write.partition_key, row.bytes(), inherited);
  ++tally_.records;
  tally_.bytes += row.bytes().size() + inherited.size();
  return {};
}

}  // namespace drover::store

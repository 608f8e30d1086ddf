#pragma once

#include <tbb/concurrent_queue.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "changes.h"
#include "collection_sizes.h"
#include "drover/model/names.h"
#include "drover/model/schema.h"
#include "drover/model/sync.h"
#include "drover/partitioner/heat.h"
#include "drover/partitioner/router.h"
#include "drover/store/stats.h"
#include "drover/store/store.h"
#include "entry_order.h"
#include "epoch.h"
#include "executor.h"
#include "index_plan.h"
#include "space.h"
#include "write_log.h"

namespace drover::store {

/// What all shards of one store share.
struct Shared {
  explicit Shared(StoreOptions store_options) : options(std::move(store_options)), executor(options.workers) {}
  const StoreOptions options;
  model::AttributeNames names;
  EpochDomain epochs;
  /// Batches accepted and not yet applied, and turns that may be at API writes.
  std::atomic<std::int64_t> in_flight{0};
  std::atomic<std::int64_t> writes_waiting{0};  ///< API writes accepted and not yet taken by a turn.
  /// Turns take no API writes: a cut is about to be made. Sequentially consistent, as in_flight where they meet: a turn
  /// counts itself, then looks here; a cut says so here, then waits for the count.
  std::atomic<bool> holding{false};
  std::atomic<std::uint64_t> rows_unreadable{0};  ///< A statistic.
  RetireList evicted{epochs};                     ///< What checkpoints have left to the disk; theirs alone.
  std::unique_ptr<WriteLog> log;                  ///< Null: in memory only. Constant once the store is open.
  Executor executor;                              // last: its end waits for all turns
};

/// Acknowledges API writes when the last one of the shards that have a part of them has let it go.
struct Acknowledgement {
  std::vector<std::function<void(model::Status)>> done;
  std::atomic<bool> dropped{false};  ///< A part was not applied: the table is gone. Relaxed: the letting go orders it.
  model::Status logged;              ///< What became of their log entries. The log's thread only, before it lets go.
  ~Acknowledgement();
};

/// A batch on its way into an inbox, and the API writes behind it.
struct Delivery {
  partitioner::RoutedBatch batch;
  std::shared_ptr<Acknowledgement> ack;
  std::shared_ptr<const EntryOrder> order = nullptr;  ///< To an index shard; null there: without entries.
};

// Turns: one writer at a time, without a lock
//
// Layout.  An inbox, and a flag `scheduled_`: a turn is waiting in the executor or runs.
// Sender.  (S1) pushes, (S2) scheduled_.exchange(true): who finds false enqueues a turn.
// Turn.    (T1) works, (T2) scheduled_.exchange(false), (T3) looks whether work is left; if so, as in S2. T3 looks at
//          nothing that only a writer may see, since the next turn may have begun.
// Why nothing is left lying.  If S2 comes after T2 in the order of scheduled_, it finds false and enqueues. If it comes
//          before, T2 reads what it wrote (that is why T2 exchanges), so S1 happens before T3, which sees the work.
// Gathering.  Where is_due() says no, S2 is left out, and T3 may leave work: the sender then owes a flush() behind its
// last
//          push, also when it is closed.
// Why there is one writer.  A turn is enqueued only by whoever turned the flag from false to true; T2 is a turn's last
//          act on the shard, and the next turn's S2/T3 exchange reads it: everything the old turn wrote is seen.

/// A part of one space with one writer at a time: what DynamoDB calls a partition.
///
/// Threads: offer() and stats() from any thread; run() only as a turn.
class Shard {
 public:
  Shard(Shared& shared, Space& space, partitioner::ShardId id, std::size_t inbox_batches);
  virtual ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  /// What a waiting turn keeps alive: the table. Call once, before anything is offered.
  void set_owner(std::weak_ptr<void> owner) { owner_ = std::move(owner); }

  /// Moved from only on success; false: the inbox is at its bound.
  bool offer(Delivery&& delivery);
  /// Refuses and drops everything from now on.
  void close();
  bool closed() const { return closed_.load(std::memory_order_acquire); }  // pairs with close()

  /// Enqueues a turn unless one waits or runs.
  void schedule();

  void count_reads(std::uint64_t items) { reads_.fetch_add(items, std::memory_order_relaxed); }  // a statistic
  void add_stats(SpaceStats& out) const;
  Table::Size size() const;

  /// Of a durable store: what has changed since the last cut.
  Changes& changes() { return changes_; }
  /// Takes a collection that a checkpoint held. Call before anything is offered; publish_stats() once behind the last.
  virtual void restore(model::KeyHash hash, std::string_view partition_key, const Pieces& history, Block* tail,
                       const RestoredLate& late);
  /// Has the writer put cold blocks in the place of others.
  struct Seals {
    Collection* collection = nullptr;
    std::vector<Seal> seals;
  };
  void offer(std::vector<Seals> seals);
  /// Adds the turn's tally to the statistics: before anybody is told that the turn's work is done.
  void publish_stats();

 protected:
  /// One turn's work.
  virtual void run() = 0;
  /// Whether a turn would find something to do. Any thread.
  virtual bool has_work() const = 0;
  virtual void drop_all() = 0;
  /// Whether what has just been pushed asks for a turn. Any thread.
  virtual bool is_due() const { return true; }

  /// After every change of a collection: size classes and the largest one.
  void note_size(Collection& collection, std::int64_t items_before, std::int64_t bytes_before);
  Collection& collection_of(model::KeyHash hash, std::string_view partition_key);
  /// Calls `apply(collection, row)` for every selected row, with what it will touch brought near in time.
  template <typename Apply>
  void for_each_row(const model::RowBatch& rows, std::span<const std::uint32_t> selected, Apply&& apply);
  void count_rows(const partitioner::RoutedBatch& batch, std::uint64_t bytes);
  void sample(model::KeyHash hash, std::string_view partition_key);

  static constexpr std::uint32_t kSamplesPerDecay = 16 * 1024;

  Shared& shared_;
  Space& space_;
  const partitioner::ShardId id_;
  tbb::concurrent_bounded_queue<Delivery> inbox_;
  RetireList retired_;  // writer only
  Changes changes_;
  /// Writer only: what a turn adds to the statistics, flushed at its end.
  struct {
    std::uint64_t records = 0, bytes = 0, batches = 0;
    std::int64_t items = 0, bytes_stored = 0;
  } tally_;

 private:
  void turn();
  void apply_seals();

  std::atomic<bool> has_seals_{false};  ///< Exchanged by turns, so that T3 sees what was offered behind it.
  model::Mutex seals_mutex_;
  std::vector<Seals> seals_ GUARDED_BY(seals_mutex_);
  std::weak_ptr<void> owner_;  // constant once set
  std::atomic<bool> scheduled_{false};
  std::atomic<bool> closed_{false};

  // Written by the writer, read by scrapes: statistics, nothing follows from them, so all relaxed.
  std::atomic<std::uint64_t> writer_time_ns_{0}, records_{0}, bytes_applied_{0}, reads_{0}, batches_{0};
  std::atomic<std::int64_t> collections_{0}, items_{0}, bytes_{0};
  std::array<std::atomic<std::int64_t>, kCollectionItemsBounds.size() + 1> by_items_{};
  std::array<std::atomic<std::int64_t>, kCollectionBytesBounds.size() + 1> by_bytes_{};
  std::atomic<const Collection*> largest_{nullptr};
  std::atomic<std::int64_t> largest_items_{0}, largest_bytes_{0};
  partitioner::HotKeySketch hot_keys_;

  std::uint32_t until_sample_ = partitioner::kHeatSampleEvery;
  std::uint32_t until_decay_ = kSamplesPerDecay;
};

class TableShard;

/// An index shard hears from every shard of its table: its inbox holds this many times a table shard's.
inline constexpr std::size_t kIndexInboxFactor = 96;
/// A table shard that never rests has its indexes apply what they were sent after this many turns.
inline constexpr std::uint32_t kTurnsPerFlush = 96;

/// A shard of a global index: merges what the table's shards send, a whole inbox at a time. Deliveries gather until
/// half of it is full or a sender asks for a turn: the more a merge brings, the fewer blocks are built for each row.
class IndexShard final : public Shard {
 public:
  using Shard::Shard;
  ~IndexShard() override { drop_all(); }
  /// Who may wait for room here, and whose they are; woken after every turn. Call before anything is offered.
  void set_upstream(std::weak_ptr<void> table, std::vector<TableShard*> upstream) {
    table_ = std::move(table);
    upstream_ = std::move(upstream);
  }

  /// Asks for a turn with whatever waits: a sender has no more for now, or somebody waits for it to be applied.
  void flush();

 protected:
  void run() override;
  bool has_work() const override { return is_half_full() || flush_.load(); }
  bool is_due() const override { return is_half_full(); }
  void drop_all() override;

 private:
  bool is_half_full() const { return inbox_.size() >= inbox_.capacity() / 2; }
  void merge(std::span<const Delivery> deliveries);
  void take_groups(const Delivery& delivery);
  void merge(Collection& collection, std::span<const Entry> entries);

  /// A collection of the merge in hand, and which of entries_ are its.
  struct Merged {
    Collection* collection = nullptr;
    std::uint32_t count = 0;
    std::uint32_t end = 0;
  };
  // Scratch of a merge. Kept, since megabytes that are asked for anew each time are pages that are touched anew.
  std::vector<Merged> merged_;
  std::vector<std::uint32_t> group_of_;  ///< Where a delivery's groups stand in merged_, one delivery behind the other.
  std::vector<Entry> entries_;
  std::vector<Change> merge_changes_;
  EntrySorter sorter_;
  std::weak_ptr<void> table_;
  std::vector<TableShard*> upstream_;
  /// A turn is asked for. Set behind the push and ahead of S2, so that T3 sees it; a turn exchanges it before it pops,
  /// so that it sees the push of whoever it takes it from.
  std::atomic<bool> flush_{false};
};

/// A global index: its key space, its shard map, its shards. Owned by its table, by the table's shards, and by whoever
/// is in it; a turn of its shards owns the index, not the table.
struct GlobalIndex {
  /// `table` must outlive the index's plan.
  GlobalIndex(Shared& shared, const model::TableSchema& table, model::IndexSchema index, std::uint16_t index_number,
              std::uint16_t shard_count);
  const model::IndexSchema schema;
  const std::uint16_t number;      ///< Of its key space on disk; of a table's indexes none has another's, ever.
  std::atomic<bool> filled{true};  ///< Has all items of the table. Released by whoever sees the last one put.
  bool filled_on_disk = true;      ///< As of the last cut; whoever writes cuts.
  IndexPlan plan;
  Space space;
  partitioner::CurrentShardMap map;
  std::vector<std::unique_ptr<IndexShard>> shards;
};

/// All global indexes of a table, in the order of its schema. Immutable.
using Indexes = std::vector<std::shared_ptr<GlobalIndex>>;

// Filling an index that is added to a table in use
//
// The table's shards are told of the index one after the other. From then on each sends it the entries of what it
// writes, and a step a turn those of the rows that are there already. Both come from the collection's one writer, who
// sends all changes of a key in order: so an entry that filling sends is of the row as it is at that moment, whatever
// changes the row later is sent behind it, and what has changed it before was sent ahead, as the same entry. Nothing is
// there twice, since an entry's key is the row's; and a removal of an entry that has never come does nothing.
//
// The index has everything once each shard has sent what it had and all of that has been merged: when the last holder
// of the Filling lets go, be it a shard with rows left to send or the acknowledgement of what one sent.

/// An index that is being filled. Threads: any.
struct Filling {
  explicit Filling(std::shared_ptr<GlobalIndex> filled) : index(std::move(filled)) {}
  ~Filling() {
    if (!abandoned.load(std::memory_order_relaxed)) index->filled.store(true, std::memory_order_release);
  }
  Filling(const Filling&) = delete;
  Filling& operator=(const Filling&) = delete;
  const std::shared_ptr<GlobalIndex> index;
  std::atomic<bool> abandoned{false};  ///< It or its table goes. Relaxed: the letting go orders it.
};

/// What the vehicles of one table pass on to their readings: one text for all that pass on the same, so that it stays
/// near while their readings are applied.
///
/// Threads: any; asked for when a META is applied only.
class Stamps {
 public:
  /// Valid until it was given back as often as it was taken.
  const std::string* take(std::string stamp);
  void give_back(const std::string* stamp);

 private:
  model::Mutex mutex_;
  std::unordered_map<std::string, std::uint64_t> users_ GUARDED_BY(mutex_);  ///< Nodes, which stay where they are.
};

/// What waits for a table shard's writer beside the stream: an API write, or the trimming of a collection.
struct Write : ItemWrite {
  std::optional<Trim> trim;  ///< Of the collection; instead of a decision.
};

/// Counters of one table's stream rows. Statistics: relaxed.
struct TableCounters {
  /// Stream batches that wait or are being applied: the last one has the indexes flushed.
  std::atomic<std::int64_t> batches_in_hand{0};
  std::atomic<std::uint64_t> stored{0}, repeated{0}, conflicting{0}, late{0}, refused{0}, over_limit{0};
  std::atomic<std::uint64_t> expired{0};  ///< Items, not rows.
};

/// A shard of a table: applies stream rows and API writes, stamps what readings inherit, keeps the indexes in step.
class TableShard final : public Shard {
 public:
  /// `schema`: what of it never changes is looked at.
  TableShard(Shared& shared, Space& space, partitioner::ShardId id, const model::TableSchema& schema,
             std::shared_ptr<const Indexes> indexes, Stamps& stamps, TableCounters& counters);
  ~TableShard() override { drop_all(); }

  using Shard::offer;
  bool offer(Delivery&& delivery);
  void restore(model::KeyHash hash, std::string_view partition_key, const Pieces& history, Block* tail,
               const RestoredLate& late) override;
  /// Of a durable store: under which number the log knows the table. Call before anything is offered.
  void set_table_id(std::uint32_t id) { table_id_ = id; }
  /// A hold has ended: API writes that wait are taken.
  void resume();
  /// Moved from only on success; false: the writes' share of the inbox is used up.
  bool offer(Write&& write);
  /// Called by an index shard that has made room.
  void wake();
  /// The table's global indexes from here on. `filling`: one of them that is to be filled with the rows of these
  /// segments; null: none. Any thread; calls take effect in their order.
  void set_indexes(std::shared_ptr<const Indexes> indexes, std::shared_ptr<Filling> filling,
                   partitioner::ShardMap::Range segments);

 protected:
  void run() override;
  bool has_work() const override;
  void drop_all() override;

 private:
  struct Undelivered {
    IndexShard* to;
    Delivery delivery;
  };

  /// A collection that is being erased, some rows a turn, and who waits for it.
  struct Erasure {
    std::function<void(model::Status)> done;
    std::mutex mutex;
    model::Status status;  // under mutex
    void fail(const model::Status& why);
    ~Erasure();
  };
  struct Erasing {
    Collection* collection;
    std::int64_t until_ms;
    model::Bytes behind;  ///< The sort key of the last row that was looked at.
    std::shared_ptr<Erasure> erasure;
  };

  model::Status begin_erasing(ItemWrite& write, const std::shared_ptr<Acknowledgement>& acknowledgement);
  void erase_behind(Collection& collection, const model::RowView& marker, std::shared_ptr<Erasure> erasure);
  bool erase_some(const std::shared_ptr<Acknowledgement>& acknowledgement);
  bool is_erased(Collection& collection, const model::RowView& row);
  std::int64_t erased_until_ms(const Collection& collection) const;
  void apply(Collection& collection, std::string_view row_bytes, model::NameMask names);
  model::Status apply(ItemWrite& write);
  bool trim(const Write& write);
  void log(std::string_view partition_key, std::string_view row, std::string_view more);
  std::string_view inherited_by(const Collection& collection, const model::RowView& row,
                                model::NameMask names = model::NameMask::unknown());
  void learn_stamp(Collection& collection, const model::RowView& row);
  bool same_content(const model::RowView& present, const model::RowView& incoming) const;
  bool is_inherited(const model::RawName& name) const {
    for (std::size_t i = 0; i < inherited_.size(); ++i) {
      if (name.is(inherited_[i], schema_.inherit[i])) return true;
    }
    return false;
  }
  bool append_index_entries(const Collection& collection, const model::RowView& row, std::string_view inherited,
                            const model::RowView* replaced, model::NameMask names = model::NameMask::unknown());
  std::int64_t growth(const Collection& collection, const model::RowView& row, std::string_view inherited,
                      const model::RowView* replaced);
  bool is_repeat(Collection& collection, const model::RowView& row, const FoundRow& found);
  bool unite(Collection& collection, const model::RowView& row, const FoundRow& found);
  void put(Collection& collection, const model::RowView& row, std::string_view inherited, const FoundRow* found);
  std::int64_t apply_writes(const std::shared_ptr<Acknowledgement>& acknowledgement);
  void send_index_entries(std::shared_ptr<Acknowledgement> acknowledgement);
  void send_nothing(const std::shared_ptr<Acknowledgement>& acknowledgement);
  bool deliver();
  void flush_indexes();
  void take_indexes();
  bool fill(const std::shared_ptr<Acknowledgement>& acknowledgement);

  const model::TableSchema& schema_;
  Stamps& stamps_;
  TableCounters& counters_;
  std::vector<model::NameId> inherited_;
  model::NameMask inherited_mask_ = model::NameMask::none();

  tbb::concurrent_bounded_queue<Write> writes_;
  /// Whether the outbox waits for an index shard: set by the writer, kWaiting to kWoken by wake().
  enum class Room : std::uint8_t { kNotWaiting, kWaiting, kWoken };
  std::atomic<Room> room_{Room::kNotWaiting};
  /// How far the rows that were there have been sent to a new index.
  struct FillingPart {
    std::shared_ptr<Filling> filling;
    partitioner::ShardMap::Range segments;       ///< To come.
    std::vector<const Collection*> collections;  ///< Of the segment in hand.
    std::size_t next = 0;                        ///< In them.
    std::optional<model::Bytes> after;           ///< In the next one: behind this sort key.
  };
  std::atomic<bool> filling_{false};           ///< There are parts. Set by turns.
  std::atomic<bool> has_next_indexes_{false};  ///< Exchanged by turns, so that T3 sees what was set behind it.
  model::Mutex next_indexes_mutex_;
  std::vector<std::shared_ptr<const Indexes>> next_indexes_ GUARDED_BY(next_indexes_mutex_);  ///< The last one counts.
  std::vector<FillingPart> next_parts_ GUARDED_BY(next_indexes_mutex_);

  std::atomic<bool> is_erasing_{false};  ///< For has_work(): erasing_ is not empty.
  // Writer only.
  std::shared_ptr<const Indexes> indexes_;
  std::deque<FillingPart> parts_;         ///< The first one is in hand.
  std::optional<CollectionSizes> sizes_;  ///< Of a table with a local index.
  std::vector<model::RowBatch> entries_;  ///< Per index, of this turn.
  struct Mark {
    std::size_t bytes = 0, rows = 0;
  };
  std::vector<IndexPlan::Scratch> scratch_;  ///< Per index.
  std::vector<Mark> entry_marks_;            ///< Where a row's entries begin, to take them back.
  std::deque<Undelivered> outbox_;           ///< At most one turn's entries.
  bool waits_for_indexes_ = false;           ///< A write of this turn that changed nothing.
  model::Bytes stamp_;                       ///< A stamp without what its row has itself.
  model::Bytes row_;                         ///< A row with its stamp.
  model::Bytes united_;                      ///< A row that unites, with what was there and its stamp.
  std::uint64_t api_sequence_ = 0;
  std::uint32_t table_id_ = 0;                // constant once set
  std::vector<WriteLog::Entry> log_entries_;  ///< Of this turn.
  std::deque<Erasing> erasing_;
  std::int64_t erased_until_ms_ = -1;  ///< Of all collections: what is later is never looked up.
  std::uint32_t turns_since_flush_ = 0;
  struct {
    std::uint64_t stored = 0, repeated = 0, conflicting = 0, late = 0, refused = 0, over_limit = 0;
  } count_;
};

}  // namespace drover::store

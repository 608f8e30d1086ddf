#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "drover/model/attribute.h"
#include "drover/model/batch.h"
#include "drover/model/clock.h"
#include "drover/model/names.h"
#include "drover/model/schema.h"
#include "drover/model/status.h"
#include "drover/partitioner/router.h"
#include "drover/store/stats.h"

namespace drover::store {

/// One item as it lies in a collection. Everything is encoded and valid only inside the visit.
struct StoredItem {
  std::string_view partition_key;  ///< Of the table or index that is read.
  model::RowView row;              ///< In an index: sort key = joined (index sort key, table keys), see item.h.
};

/// A contiguous part of one collection, in one direction. Bounds are encoded sort keys.
struct KeyRange {
  struct Bound {
    model::Bytes key;
    bool inclusive = true;
  };
  std::optional<Bound> lower;
  std::optional<Bound> upper;
};

/// An API write of one item, decided by the shard's writer in one atomic step with the look at the present item.
struct ItemWrite {
  model::Bytes partition_key;  ///< Encoded.
  model::Bytes sort_key;       ///< Encoded; empty in a table without one.

  enum class Action : std::uint8_t { kNone, kPut, kDelete };
  struct Decision {
    Action action = Action::kNone;
    model::Bytes attributes;  ///< For kPut: all attributes but the key's, encoded.
  };
  /// Looks at the present attributes (nothing: no such item) and decides. Runs once, on a writer: no waiting in it.
  /// What it wants to remember (old image, failed condition) it keeps itself. Must not throw.
  std::function<Decision(std::optional<std::string_view> present)> decide;

  /// Called once, from any thread, when the write and all its index entries can be read; with kInvalid if an index
  /// can't hold the item, with kTooLarge if its collection can't, with kStopping if the table was deleted first. Not
  /// called if Table::write() fails.
  std::function<void(model::Status)> done;

  /// Of a table with a local index, may be null: called by the writer, ahead of done(), with the size of the item's
  /// collection behind the write, local projections included.
  std::function<void(std::uint64_t size_bytes)> sized = {};
  bool inherits = true;  ///< Whether an item that is put takes on what the table's items inherit.
  /// Not one item but the whole collection goes, and what its sources wrote until now stays away however often it is
  /// read again. `decide` and `sort_key` say nothing then.
  bool erases = false;
};

class Table;

/// Gets items until it returns false. Must not wait: while it runs, nothing that was replaced is freed.
using Visit = std::function<bool(const StoredItem&)>;

/// One table: its shards, its collections and its global indexes.
///
/// Threads: all members from any thread. Reads never block and are never blocked.
/// Lifetime: kept alive by shared_ptr, but not beyond its store; a deleted table answers its last readers and refuses
/// writes.
class Table {
 public:
  virtual ~Table() = default;

  /// As of now: Store::create_index() and delete_index() replace it. Valid as long as the table; asked for once, it
  /// stays the same.
  virtual const model::TableSchema& schema() const = 0;
  virtual std::int64_t created_ms() const = 0;
  /// Whether a global index was added a short while ago and has not all of the table's items yet.
  virtual bool is_filling(std::string_view index) const = 0;
  virtual model::Retention retention() const = 0;

  /// Splits a batch of stream rows by shard, under the present shard map.
  virtual std::vector<partitioner::RoutedBatch> route(std::shared_ptr<const model::RowBatch> rows) const = 0;

  /// Hands a routed batch over. Moved from only on success. kFull: the shard's inbox is at its bound; keep the batch,
  /// stop polling what feeds it, offer it again. kStopping: the table is gone; drop the batch, counted.
  virtual model::Status submit(partitioner::RoutedBatch&& batch) = 0;

  /// Hands an API write over. Moved from only on success. kFull: the reserved share of the inbox is used up
  /// (ThrottlingException). kStopping: the table is gone.
  virtual model::Status write(ItemWrite&& write) = 0;

  /// Visits the items of one collection within `range`, as of one moment, ascending or descending. `index` empty: the
  /// table. Returns kNotFound if there is no such index; an absent collection is no error. kUnavailable: a block can't
  /// be read from the disk, the visit ended in front of it; or the index is being filled. A local index has no
  /// collections here (answered by the caller from the table's, sorted anew).
  virtual model::Status read(std::string_view index, std::string_view partition_key, const KeyRange& range,
                             bool ascending, const Visit& visit) const = 0;

  /// Visits everything in order of (hash, partition key, sort key), starting behind (`after`) or at the beginning,
  /// within segments [segment_begin, segment_end) of the key space. Each collection as of one moment, not the whole.
  struct ScanPosition {
    model::Bytes partition_key;
    model::Bytes sort_key;
  };
  virtual model::Status scan(std::string_view index, std::uint32_t segment_begin, std::uint32_t segment_end,
                             const std::optional<ScanPosition>& after, const Visit& visit) const = 0;

  /// Items and bytes (as stored) of the table or an index, from counters.
  struct Size {
    std::uint64_t items = 0;
    std::uint64_t bytes = 0;
  };
  virtual Size size(std::string_view index) const = 0;
};

struct StoreOptions {
  std::uint32_t workers = 0;           ///< Threads that apply; 0: one per core.
  std::uint16_t shards_per_table = 0;  ///< Shards of a new table and of each of its indexes; 0: twice the workers.
  std::size_t inbox_batches = model::kShardInboxBatchesMax;
  /// Of a durable store: beyond it older items are on disk only, and read from there.
  std::uint64_t memory_budget_bytes = std::uint64_t{4} << 30;
  /// How large an item collection may become in a table with a local index, local projections included; and in single
  /// tables, by name. Not part of a table's definition: it may be another one at the next start.
  std::uint64_t item_collection_limit_bytes = model::kItemCollectionSizeBytesMax;
  std::map<std::string, std::uint64_t> item_collection_limits = {};
  model::ClockMs clock = &model::system_clock_ms;
};

/// A consistent moment of a durable store on its way to the disk.
///
/// Threads: one. Lifetime: ends before its store does.
class Cut {
 public:
  virtual ~Cut() = default;
  /// Makes everything up to the cut durable together with `positions`: all of it or nothing. After a failure (a full
  /// device) call it again; until it succeeds the store makes no further cut. Positions of sources that are not named
  /// stay as they are.
  virtual model::Status write(std::span<const model::SourcePosition> positions) = 0;
  /// Nothing has changed since the cut before: it need not be written.
  virtual bool empty() const = 0;
  /// What write() writes, in bytes; 0 before its first call.
  virtual std::uint64_t size_bytes() const = 0;
};

/// What was found in the directory of a durable store.
struct Recovery {
  std::vector<model::SourcePosition> positions;  ///< As of the cut, by source.
  std::uint32_t cut = 0;                         ///< Its number; 0: there was none.
  std::uint64_t items = 0;                       ///< Rows of the tables and their indexes.
  std::uint64_t writes = 0;                      ///< API writes from the log, behind the cut.
  std::vector<std::string> damaged;              ///< What was left out, and where it belongs.
  std::int64_t took_ms = 0;
};

/// Called with what a start is at and the rows done so far, from any thread, about once in kRecoveryProgressRows.
using RecoveryProgress = std::function<void(std::string_view doing, std::uint64_t rows)>;
inline constexpr std::uint64_t kRecoveryProgressRows = 1'000'000;

/// All tables of one process: in memory, and, opened with a directory, also on disk.
///
/// On disk stands the last cut, and every API write and table since. What came from Kafka behind the cut is read again
/// from the positions that the cut contains; what of it is there already is a repeat, so nothing is twice.
/// Threads: all members from any thread.
/// Lifetime: must outlive every shared_ptr to a table that it gave out.
class Store {
 public:
  /// In memory only.
  static std::unique_ptr<Store> open(StoreOptions options);
  /// With what stands in `directory`, which is made if it is missing. kUnavailable: another process has it open, or it
  /// can't be read or written. kInvalid: a newer Drover has written it, or what holds it together is damaged.
  static model::Result<std::unique_ptr<Store>> open(const std::string& directory, StoreOptions options,
                                                    const RecoveryProgress& progress = {});
  virtual ~Store() = default;

  /// Has the next open() of `directory` begin to fill all indexes anew from the tables' items (Table::is_filling()),
  /// and each one after it until a cut has them whole. Tables that are named get this schema, which may have other
  /// indexes and inherit other attributes (that restamps nothing). kInvalid: another key or time sort key; nothing has
  /// happened then.
  static model::Status rebuild(const std::string& directory, std::span<const model::TableSchema> schemas);

  /// Empty in memory only.
  virtual const Recovery& recovery() const = 0;

  /// Waits until nothing is in hand and marks a cut. The caller sees to it that no batch is submitted meanwhile, and
  /// takes the sources' positions before it lets any through again; API writes wait by themselves. kUnavailable: work
  /// in hand has not come to an end within `timeout_ms`. kInvalid: the store is in memory only, or the last cut was
  /// never written.
  virtual model::Result<std::unique_ptr<Cut>> cut(std::int64_t timeout_ms) = 0;

  /// Brings the directory into as few bytes as it can take. kInvalid: the store is in memory only. May take long.
  virtual model::Status compact() = 0;
  /// A consistent copy of the directory, as of the last cut and all API writes since, in a new one on the same file
  /// system; by hard links where that is possible. kInvalid: the store is in memory only.
  virtual model::Status back_up(const std::string& directory) = 0;

  /// Room on the device of the directory, in bytes; 0 and 0 in memory only.
  struct Room {
    std::uint64_t free_bytes = 0;
    std::uint64_t total_bytes = 0;
  };
  virtual Room room() const = 0;

  virtual model::AttributeNames& names() = 0;

  /// kExists, or kInvalid with what validate() says. Durable when it returns, as delete_table(); kUnavailable if not.
  virtual model::Result<std::shared_ptr<Table>> create_table(const model::TableSchema& schema) = 0;
  virtual model::Status delete_table(std::string_view name) = 0;

  /// Adds a global index to a table in use. Writes and reads go on; the index can be read once it has all items
  /// (Table::is_filling()), which a start in between goes on with. kNotFound: no such table; kExists: an index of that
  /// name; kInvalid: what validate() says.
  virtual model::Status create_index(std::string_view table, const model::IndexSchema& index) = 0;
  /// kNotFound: no such table or global index.
  virtual model::Status delete_index(std::string_view table, std::string_view index) = 0;

  /// Changes when a table's items go by themselves. `change` sees what holds now and may refuse with a status, which is
  /// returned. Durable when it returns, as delete_table(); kNotFound: no such table.
  virtual model::Status change_retention(std::string_view name,
                                         const std::function<model::Status(model::Retention&)>& change) = 0;
  /// A step of the endless walk over all tables that removes what has expired: it looks at a bounded number of items
  /// and hands those that have expired to their shards' writers, which look again. An item whose shard has too many
  /// writes in hand is met again by the next step. True: a round is complete. One thread at a time.
  virtual bool expire_step() = 0;
  /// Nothing if there is no such table.
  virtual std::shared_ptr<Table> find_table(std::string_view name) const = 0;
  /// In order of their bytes.
  virtual std::vector<std::string> table_names() const = 0;

  virtual StoreStats stats() const = 0;

  /// Whether everything that was submitted has been applied, index deltas included.
  virtual bool idle() const = 0;
  /// Waits until idle() or `timeout_ms` have passed; whether it is idle. For the shutdown and tests.
  virtual bool drain(std::int64_t timeout_ms) = 0;
};

}  // namespace drover::store

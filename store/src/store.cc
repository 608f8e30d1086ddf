#include "drover/store/store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "checkpoint.h"
#include "disk.h"
#include "disk_format.h"
#include "drover/model/crash_point.h"
#include "drover/model/sync.h"
#include "expirer.h"
#include "open_on.h"
#include "table.h"

namespace drover::store {
namespace {

using Tables = std::map<std::string, std::shared_ptr<MemoryTable>, std::less<>>;

constexpr auto kRestPause = std::chrono::microseconds(50);  ///< Between two looks whether nothing is in hand.

model::Bytes varint_of(std::uint64_t number) {
  model::Bytes bytes;
  model::append_varint(bytes, number);
  return bytes;
}

/// What a table's record on disk holds.
struct TableRecord {
  struct Index {
    std::uint16_t number = 0;
    bool from_the_start = true;  ///< Made with the table, so that it never had to be filled.
  };
  std::int64_t created_ms = 0;
  model::TableSchema schema;
  std::uint16_t next_index = 1;
  std::vector<Index> indexes;  ///< Of the schema's global ones, in its order.
  model::Retention retention;
};

model::Bytes encode(const TableRecord& record) {
  model::Bytes out;
  model::append_varint(out, static_cast<std::uint64_t>(record.created_ms));
  append_bytes(out, store::encode(record.schema));
  model::append_varint(out, record.next_index);
  for (const TableRecord::Index& index : record.indexes) {
    model::append_varint(out, 2u * index.number + (index.from_the_start ? 1 : 0));
  }
  out.append(store::encode(record.retention));
  return out;
}

/// The record of a table with these indexes from the start.
TableRecord first_record(std::int64_t created_ms, const model::TableSchema& schema) {
  TableRecord record{created_ms, schema, 1, {}, {}};
  for (const model::IndexSchema& index : schema.indexes) {
    if (!index.local) record.indexes.push_back({record.next_index++, true});
  }
  return record;
}

std::optional<TableRecord> decode_table(std::string_view encoded) {
  DiskReader in(encoded);
  const auto created_ms = static_cast<std::int64_t>(in.varint());
  const std::optional<model::TableSchema> schema = decode_schema(in.bytes());
  if (!schema) return std::nullopt;
  TableRecord record = first_record(created_ms, *schema);
  record.next_index = static_cast<std::uint16_t>(in.varint());
  for (TableRecord::Index& index : record.indexes) {
    const std::uint64_t number = in.varint();
    index = {static_cast<std::uint16_t>(number / 2), number % 2 != 0};
  }
  std::optional<model::Retention> retention = decode_retention(in.rest());
  if (!in.ok() || !retention) return std::nullopt;
  record.retention = std::move(*retention);
  return record;
}

model::Status in_memory_only() {
  return model::invalid("the store is in memory only");
}

class ShardedStore final : public Store {
 public:
  /// `disk` is null in memory only.
  ShardedStore(StoreOptions options, std::unique_ptr<Disk> disk)
      : disk_(std::move(disk)), shared_(std::move(options)) {}

  ~ShardedStore() override {
    Tables tables;
    {
      const model::LockGuard lock(mutex_);
      tables.swap(tables_);
    }
    for (const auto& [name, table] : tables) table->close();
  }

  model::Status recover(const RecoveryProgress& progress);
  model::Status rebuild_later(std::span<const model::TableSchema> schemas);

  model::AttributeNames& names() override { return shared_.names; }
  const Recovery& recovery() const override { return recovery_; }

  model::Result<std::shared_ptr<Table>> create_table(const model::TableSchema& schema) override {
    if (model::Status status = model::validate(schema); !status.ok()) return status;
    const model::LockGuard defining(definitions_mutex_);
    MemoryTable::Identity identity{0, shared_.options.clock(), {}};
    const TableRecord record = first_record(identity.created_ms, schema);
    {
      const model::LockGuard lock(mutex_);
      if (tables_.contains(schema.name)) {
        return model::Status{model::StatusCode::kExists, "table exists: " + schema.name};
      }
      identity.id = next_table_id_++;
    }
    if (disk_ != nullptr) {
      DiskBatch batch;
      batch.put(Family::kMeta, numbered_key(kTablePrefix, identity.id), encode(record));
      batch.put(Family::kMeta, kNextTableKey, varint_of(identity.id + 1));
      model::crash_point("table.write");
      if (model::Status status = disk_->write(batch); !status.ok()) return status;
      model::crash_point("table.written");
    }
    auto table = make_table(record, identity.id, {});
    const model::LockGuard lock(mutex_);
    if (disk_ != nullptr) table->begin_interval(interval_);
    tables_.emplace(schema.name, table);
    records_[identity.id] = record;
    return std::shared_ptr<Table>(std::move(table));
  }

  /// After a failure the table is gone all the same: whether it is on the disk too, the next start shows.
  model::Status delete_table(std::string_view name) override {
    const model::LockGuard defining(definitions_mutex_);
    std::shared_ptr<MemoryTable> table;
    {
      const model::LockGuard lock(mutex_);
      const auto found = tables_.find(name);
      if (found == tables_.end()) return {model::StatusCode::kNotFound, "no such table: " + std::string(name)};
      table = std::move(found->second);
      tables_.erase(found);
    }
    table->close();
    records_.erase(table->id());
    if (disk_ == nullptr) return {};
    DiskBatch batch;
    batch.remove(Family::kMeta, numbered_key(kTablePrefix, table->id()));
    batch.remove_range(Family::kMeta, filled_key({table->id(), 0}), filled_key({table->id() + 1, 0}));
    for (const Family family : {Family::kBlocks, Family::kTails}) {
      batch.remove_range(family, space_key({table->id(), 0}), space_key({table->id() + 1, 0}));
    }
    return disk_->write(batch);
  }

  model::Status change_retention(std::string_view name,
                                 const std::function<model::Status(model::Retention&)>& change) override {
    const model::LockGuard defining(definitions_mutex_);
    const std::shared_ptr<MemoryTable> table = find(name);
    if (table == nullptr) return {model::StatusCode::kNotFound, "no such table: " + std::string(name)};
    model::Retention retention = table->retention();
    if (model::Status status = change(retention); !status.ok()) return status;
    if (retention.retain_ms > 0 && !table->schema().time_sort_key) {
      return model::invalid("table " + table->schema().name +
                            ": retain needs a time sort key, which tells its items' age");
    }
    if (retention == table->retention()) return {};
    TableRecord record = records_[table->id()];
    record.retention = retention;
    if (model::Status status = write_record(table->id(), record, {}); !status.ok()) return status;
    table->set_retention(std::move(retention));
    return {};
  }

  model::Status create_index(std::string_view name, const model::IndexSchema& index) override {
    const model::LockGuard defining(definitions_mutex_);
    const std::shared_ptr<MemoryTable> table = find(name);
    if (table == nullptr) return {model::StatusCode::kNotFound, "no such table: " + std::string(name)};
    TableRecord record = records_[table->id()];
    if (record.schema.find_index(index.name) != nullptr) {
      return {model::StatusCode::kExists, "index exists: " + index.name};
    }
    record.schema.indexes.push_back(index);
    if (model::Status status = model::validate(record.schema); !status.ok()) return status;
    if (index.local) return model::invalid("a local index is made with its table: " + index.name);
    if (record.next_index == UINT16_MAX) return model::invalid("the table has had too many indexes: make a new one");
    const std::uint16_t number = record.next_index++;
    record.indexes.push_back({number, false});
    if (model::Status status = write_record(table->id(), record, {}); !status.ok()) return status;
    const model::LockGuard lock(mutex_);  // no cut in between
    table->add_index(index, number, interval_);
    return {};
  }

  model::Status delete_index(std::string_view name, std::string_view index) override {
    const model::LockGuard defining(definitions_mutex_);
    const std::shared_ptr<MemoryTable> table = find(name);
    if (table == nullptr) return {model::StatusCode::kNotFound, "no such table: " + std::string(name)};
    TableRecord record = records_[table->id()];
    const model::IndexSchema* found = record.schema.find_index(index);
    if (found == nullptr || found->local) {
      return {model::StatusCode::kNotFound, "no such global index: " + std::string(index)};
    }
    const auto place =
        std::count_if(std::as_const(record.schema.indexes).data(), found, [](const auto& each) { return !each.local; });
    const SpaceId space{table->id(), record.indexes[static_cast<std::size_t>(place)].number};
    record.indexes.erase(record.indexes.begin() + place);
    std::erase_if(record.schema.indexes, [&](const model::IndexSchema& each) { return each.name == index; });
    // The record first: what a cut leaves out from here on must not be taken for the index.
    if (model::Status status = write_record(table->id(), record, space); !status.ok()) return status;
    const model::LockGuard lock(mutex_);
    table->remove_index(index);
    return {};
  }

  bool expire_step() override { return expirer_.step(tables()); }

  std::shared_ptr<Table> find_table(std::string_view name) const override { return find(name); }

  std::vector<std::string> table_names() const override {
    const model::LockGuard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, table] : tables_) names.push_back(name);
    return names;
  }

  StoreStats stats() const override {
    StoreStats stats;
    for (const auto& table : tables()) table->add_stats(stats);
    stats.memory_bytes = Block::all_bytes() + cold_bytes_in_memory();
    return stats;
  }

  // Pairs with the decrements after applying: whoever sees 0 may read what was applied. A write that a turn takes is
  // counted as in flight before it no longer waits.
  bool idle() const override {
    return shared_.writes_waiting.load(std::memory_order_acquire) == 0 &&
           shared_.in_flight.load(std::memory_order_acquire) == 0;
  }

  bool drain(std::int64_t timeout_ms) override {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    while (!idle()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  model::Result<std::unique_ptr<Cut>> cut(std::int64_t timeout_ms) override;

  model::Status compact() override { return disk_ == nullptr ? in_memory_only() : disk_->compact(); }
  model::Status back_up(const std::string& directory) override {
    return disk_ == nullptr ? in_memory_only() : disk_->copy_to(directory);
  }

  Room room() const override {
    if (disk_ == nullptr) return {};
    const Disk::Room room = disk_->room();
    return {room.free_bytes, room.total_bytes};
  }

 private:
  class DiskCut;

  std::shared_ptr<MemoryTable> find(std::string_view name) const {
    const model::LockGuard lock(mutex_);
    const auto found = tables_.find(name);
    return found == tables_.end() ? nullptr : found->second;
  }

  std::shared_ptr<MemoryTable> make_table(const TableRecord& record, std::uint32_t id, const std::set<SpaceId>& filled);
  model::Status write_record(std::uint32_t table, const TableRecord& record, std::optional<SpaceId> gone)
      REQUIRES_LOCK(definitions_mutex_);

  std::vector<std::shared_ptr<MemoryTable>> tables() const {
    const model::LockGuard lock(mutex_);
    std::vector<std::shared_ptr<MemoryTable>> tables;
    for (const auto& [name, table] : tables_) tables.push_back(table);
    return tables;
  }

  /// Whether rows take more than their share of the memory budget.
  bool is_pressed() const;
  /// Sets memory free until the budget is kept, or nothing more can be.
  void leave_to_the_disk(const std::vector<std::shared_ptr<MemoryTable>>& tables, std::uint32_t interval);

  /// Whether nothing came to be in hand within the time.
  bool come_to_rest(std::int64_t timeout_ms);
  model::Status read_meta();
  model::Status remove_orphans();
  model::Status restore_tables(const RecoveryProgress& progress);
  model::Status apply_log();

  const std::unique_ptr<Disk> disk_;  // first: outlives whatever writes to it
  Shared shared_;
  Recovery recovery_;
  std::uint64_t log_sequence_ = 0;  ///< The highest one found at the start.
  model::Mutex definitions_mutex_;  ///< Held while a table is made or deleted, the disk's part included.
  std::map<std::uint32_t, TableRecord> records_ GUARDED_BY(definitions_mutex_);  ///< By table.
  mutable model::Mutex mutex_;
  Tables tables_ GUARDED_BY(mutex_);
  std::uint32_t next_table_id_ GUARDED_BY(mutex_) = 1;
  std::uint32_t interval_ GUARDED_BY(mutex_) = 0;  ///< Between the last cut and the next; 0 in memory only.
  std::atomic<bool> cut_pending_{false};           ///< The last cut is not on disk.
  Expirer expirer_{shared_};                       // whoever calls expire_step()
  // Whoever writes cuts.
  std::size_t names_on_disk_ = 0;  ///< With the last cut.
  std::size_t evict_space_ = 0;    ///< Where evicting goes on: which space of all tables, and its segment.
  std::uint32_t evict_segment_ = 0;
};

/// The changes of an interval, encoded at the first write().
class ShardedStore::DiskCut final : public Cut {
 public:
  DiskCut(ShardedStore& store, std::uint32_t interval, std::size_t names)
      : store_(store), interval_(interval), names_(names), guard_(std::in_place, store.shared_.epochs) {}

  ~DiskCut() override {
    if (empty_) store_.cut_pending_.store(false, std::memory_order_release);  // pairs with cut()
  }

  void add(std::shared_ptr<MemoryTable> table, std::vector<SpaceChanges> changes) {
    for (const SpaceChanges& space : changes) {
      for (const SpaceChanges::Part& part : space.parts) empty_ = empty_ && part.interval.collections.empty();
    }
    const auto indexes = table->indexes();
    for (const auto& index : *indexes) {
      if (index->filled_on_disk || !index->filled.load(std::memory_order_acquire)) continue;  // pairs with ~Filling()
      filled_.push_back({{table->id(), index->number}, index});
      empty_ = false;
    }
    tables_.push_back(std::move(table));
    changes_.push_back(std::move(changes));
  }

  model::Status write(std::span<const model::SourcePosition> positions) override {
    if (!batch_) {
      encode(positions);
      guard_.reset();  // what was replaced since the cut may go
      wait_for_readers();
      changes_.clear();
    }
    model::crash_point("cut.write");
    if (model::Status status = store_.disk_->write(*batch_); !status.ok()) return status;
    model::crash_point("cut.written");
    for (ShardSeals& shard : seals_) shard.shard->offer(std::move(shard.seals));
    seals_.clear();
    for (const auto& [space, index] : filled_) index->filled_on_disk = true;
    store_.names_on_disk_ = names_;
    store_.leave_to_the_disk(tables_, interval_);
    tables_.clear();
    store_.cut_pending_.store(false, std::memory_order_release);  // pairs with cut()
    return {};
  }

  bool empty() const override { return empty_; }
  std::uint64_t size_bytes() const override { return batch_ ? batch_->size_bytes() : 0; }

 private:
  /// What a reader that is still at a state from before the cut may want from the disk goes with the batch.
  void wait_for_readers() {
    const std::uint64_t before = store_.shared_.epochs.advance();
    while (store_.shared_.epochs.oldest_reader() <= before) std::this_thread::sleep_for(kRestPause);
  }

  void encode(std::span<const model::SourcePosition> positions) {
    DiskBatch& batch = batch_.emplace();
    for (const auto& spaces : changes_) {
      for (const SpaceChanges& changes : spaces) {
        std::vector<ShardSeals> seals = append_changes(batch, *store_.disk_, changes, interval_, store_.is_pressed());
        seals_.insert(seals_.end(), std::make_move_iterator(seals.begin()), std::make_move_iterator(seals.end()));
      }
    }
    add_names(batch, store_.shared_.names, store_.names_on_disk_, names_);
    for (const model::SourcePosition& position : positions) {
      batch.put(Family::kMeta, numbered_key(kSourcePrefix, position.source.value), store::encode(position));
    }
    for (const auto& [space, index] : filled_) batch.put(Family::kMeta, filled_key(space), {});
    batch.put(Family::kMeta, kCutKey, varint_of(interval_));
    batch.remove_range(Family::kLog, log_key(0, 0), log_key(interval_ + 1, 0));
  }

  ShardedStore& store_;
  const std::uint32_t interval_;
  const std::size_t names_;
  bool empty_ = true;
  std::optional<EpochDomain::Guard> guard_;
  std::vector<std::shared_ptr<MemoryTable>> tables_;
  std::vector<std::vector<SpaceChanges>> changes_;
  /// Indexes that the cut contains with all of their table's items, for the first time.
  std::vector<std::pair<SpaceId, std::shared_ptr<GlobalIndex>>> filled_;
  std::vector<ShardSeals> seals_;
  std::optional<DiskBatch> batch_;
};

std::shared_ptr<MemoryTable> ShardedStore::make_table(const TableRecord& record, std::uint32_t id,
                                                      const std::set<SpaceId>& filled) {
  std::vector<MemoryTable::IndexIdentity> indexes;
  for (const TableRecord::Index& index : record.indexes) {
    indexes.push_back({index.number, index.from_the_start || filled.contains({id, index.number})});
  }
  return MemoryTable::make(shared_, record.schema, {id, record.created_ms, record.retention}, indexes);
}

/// Makes a table's record durable, and what is left of a key space that it has no more go.
model::Status ShardedStore::write_record(std::uint32_t table, const TableRecord& record, std::optional<SpaceId> gone) {
  if (disk_ != nullptr) {
    DiskBatch batch;
    batch.put(Family::kMeta, numbered_key(kTablePrefix, table), encode(record));
    if (gone) {
      batch.remove(Family::kMeta, filled_key(*gone));
      for (const Family family : {Family::kBlocks, Family::kTails}) {
        batch.remove_range(family, space_key(*gone),
                           space_key({gone->table, static_cast<std::uint16_t>(gone->index + 1)}));
      }
    }
    model::crash_point("table.write");
    if (model::Status status = disk_->write(batch); !status.ok()) return status;
    model::crash_point("table.written");
  }
  records_[table] = record;
  return {};
}

bool ShardedStore::is_pressed() const {
  return Block::all_bytes() > shared_.options.memory_budget_bytes / 2;
}

void ShardedStore::leave_to_the_disk(const std::vector<std::shared_ptr<MemoryTable>>& tables, std::uint32_t interval) {
  std::vector<std::shared_ptr<const Space>> spaces;
  for (const auto& table : tables) {
    for (auto& space : table->spaces()) spaces.push_back(std::move(space));
  }
  const std::uint64_t used = Block::all_bytes() + cold_bytes_in_memory();
  std::uint64_t excess = used - std::min<std::uint64_t>(used, shared_.options.memory_budget_bytes);
  // Twice around: the first time takes the marks of what was read.
  for (std::size_t visited = 0; excess > 0 && visited < 2 * spaces.size(); ++visited) {
    evict_space_ %= spaces.size();
    evict_segment_ = evict(*spaces[evict_space_], shared_.epochs, interval, evict_segment_, excess, shared_.evicted);
    if (evict_segment_ < model::kSegments) break;
    evict_segment_ = 0;
    ++evict_space_;
  }
  shared_.evicted.collect();
}

bool ShardedStore::come_to_rest(std::int64_t timeout_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (shared_.in_flight.load() != 0) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    for (const auto& table : tables()) table->flush_indexes();
    std::this_thread::sleep_for(kRestPause);
  }
  return true;
}

model::Result<std::unique_ptr<Cut>> ShardedStore::cut(std::int64_t timeout_ms) {
  if (disk_ == nullptr) return in_memory_only();
  if (cut_pending_.load(std::memory_order_acquire)) return model::invalid("the last cut is not written yet");
  shared_.holding.store(true);
  std::unique_ptr<DiskCut> cut;
  if (come_to_rest(timeout_ms)) {
    const model::LockGuard lock(mutex_);  // no table comes or goes meanwhile; what is new has no work in hand
    cut = std::make_unique<DiskCut>(*this, interval_, shared_.names.size());
    for (const auto& [name, table] : tables_) cut->add(table, table->begin_interval(interval_ + 1));
    ++interval_;
    cut_pending_.store(true, std::memory_order_relaxed);
    model::crash_point("cut.marked");
  }
  shared_.holding.store(false);
  for (const auto& table : tables()) table->resume();
  if (cut == nullptr) return model::Status{model::StatusCode::kUnavailable, "work in hand has not come to an end"};
  return std::unique_ptr<Cut>(std::move(cut));
}

model::Status ShardedStore::recover(const RecoveryProgress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  if (model::Status status = read_meta(); !status.ok()) return status;
  if (model::Status status = remove_orphans(); !status.ok()) return status;
  if (model::Status status = restore_tables(progress); !status.ok()) return status;
  model::crash_point("recovery.restored");
  if (model::Status status = apply_log(); !status.ok()) return status;
  shared_.log = std::make_unique<WriteLog>(*disk_, shared_.names, names_on_disk_, log_sequence_);
  expirer_.trim(tables());  // what the last cut still held of it
  while (!idle()) std::this_thread::sleep_for(kRestPause);
  for (const auto& table : tables()) table->fill_indexes();
  model::crash_point("recovery.applied");
  recovery_.took_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count();
  return {};
}

/// Reads what holds the rest together, and makes the tables, empty.
model::Status ShardedStore::read_meta() {
  std::uint64_t format = 0;
  std::uint64_t cut = 0;
  std::string damage;
  bool empty = true;
  std::uint64_t next_table = 1;
  std::vector<std::pair<std::uint32_t, TableRecord>> found;
  std::set<SpaceId> filled;
  const model::Status status = disk_->visit(Family::kMeta, {}, {}, [&](std::string_view key, std::string_view value) {
    empty = false;
    const auto number_behind = [&key](std::string_view prefix, auto number) -> std::optional<decltype(number)> {
      if (!key.starts_with(prefix) || key.size() != prefix.size() + sizeof number) return std::nullopt;
      std::string_view rest = key.substr(prefix.size());
      return take_big_endian<decltype(number)>(rest);
    };
    DiskReader in(value);
    if (key == kFormatKey) {
      format = in.varint();
    } else if (key == kCutKey) {
      cut = in.varint();
    } else if (key == kNextTableKey) {
      next_table = in.varint();
    } else if (const auto id = number_behind(kNamePrefix, std::uint32_t{})) {
      if (shared_.names.intern(value).value != *id) damage = "attribute name " + std::to_string(*id);
    } else if (const auto source = number_behind(kSourcePrefix, std::uint16_t{})) {
      const auto position = decode_position(model::SourceId{*source}, value);
      if (position) recovery_.positions.push_back(*position);
      if (!position) damage = "source " + std::to_string(*source);
    } else if (const auto table = number_behind(kTablePrefix, std::uint32_t{})) {
      std::optional<TableRecord> record = decode_table(value);
      if (!record) damage = "table " + std::to_string(*table);
      if (record) found.emplace_back(*table, std::move(*record));
    } else if (key.starts_with(kFilledPrefix) && key.size() == filled_key({}).size()) {
      std::string_view rest = key.substr(kFilledPrefix.size());
      const auto of_table = take_big_endian<std::uint32_t>(rest);
      filled.insert({of_table, take_big_endian<std::uint16_t>(rest)});
    }
    return true;
  });
  if (!status.ok()) return {status.code(), disk_->directory() + ": " + status.message()};
  if (format > kDiskFormat) {
    return model::invalid(disk_->directory() + " has format " + std::to_string(format) + ", this Drover reads format " +
                          std::to_string(kDiskFormat) +
                          ": run the newer Drover that wrote it, or take another directory");
  }
  if (!empty && format != 0 && format < kDiskFormat) {
    return model::invalid(disk_->directory() + " has format " + std::to_string(format) + ", this Drover reads format " +
                          std::to_string(kDiskFormat) +
                          " only: export its items with the Drover that wrote it and import them into a new directory");
  }
  if (damage.empty() && !empty && format == 0) damage = "the format's number";
  if (!damage.empty()) return model::invalid(disk_->directory() + ": damaged: " + damage + "; restore a backup");
  recovery_.cut = static_cast<std::uint32_t>(cut);
  names_on_disk_ = shared_.names.size();  // ahead of the tables, which bring names of their own
  const model::LockGuard defining(definitions_mutex_);
  const model::LockGuard lock(mutex_);
  next_table_id_ = static_cast<std::uint32_t>(next_table);
  for (auto& [id, record] : found) {
    tables_.emplace(record.schema.name, make_table(record, id, filled));
    records_.emplace(id, std::move(record));
  }
  interval_ = recovery_.cut + 1;
  if (!empty) return {};
  DiskBatch batch;
  batch.put(Family::kMeta, kFormatKey, varint_of(kDiskFormat));
  return disk_->write(batch);
}

/// Removes what a checkpoint has written of a table or an index that was deleted meanwhile.
model::Status ShardedStore::remove_orphans() {
  std::set<SpaceId> known;
  for (const auto& table : tables()) {
    known.insert({table->id(), 0});
    const auto indexes = table->indexes();
    for (const auto& index : *indexes) known.insert({table->id(), index->number});
  }
  const auto behind = [](SpaceId space) {
    const auto next = static_cast<std::uint16_t>(space.index + 1);
    return SpaceId{next == 0 ? space.table + 1 : space.table, next};
  };
  DiskBatch batch;
  bool any = false;
  for (const Family family : {Family::kBlocks, Family::kTails}) {
    std::optional<SpaceId> found;
    for (SpaceId begin;; begin = behind(*found)) {
      found.reset();
      // Damage is met, and told of, where the table is restored.
      (void)disk_->visit(family, space_key(begin), {}, [&](std::string_view key, std::string_view) {
        const auto table = take_big_endian<std::uint32_t>(key);
        found = SpaceId{table, take_big_endian<std::uint16_t>(key)};
        return false;
      });
      if (!found) break;
      if (!known.contains(*found)) batch.remove_range(family, space_key(*found), space_key(behind(*found)));
      any |= !known.contains(*found);
    }
  }
  return any ? disk_->write(batch) : model::Status{};
}

/// One thread for each shard at work, as many at a time as there are workers.
model::Status ShardedStore::restore_tables(const RecoveryProgress& progress) {
  std::vector<MemoryTable::Restorable> shards;
  for (const auto& table : tables()) {
    for (const MemoryTable::Restorable& shard : table->restorables()) shards.push_back(shard);
  }
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> rows{0};
  model::Mutex mutex;
  model::Status failed;  // under mutex
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < shared_.executor.workers(); ++i) {
    threads.emplace_back([&] {
      for (std::size_t shard = next++; shard < shards.size(); shard = next++) {
        Restorer restorer(*disk_, shards[shard], shared_.options.memory_budget_bytes, [&](std::uint64_t more) {
          const std::uint64_t before = rows.fetch_add(more);
          if (progress && before / kRecoveryProgressRows != (before + more) / kRecoveryProgressRows) {
            progress("restoring", before + more);
          }
        });
        const model::Status status = restorer.run();
        const model::LockGuard lock(mutex);
        recovery_.damaged.insert(recovery_.damaged.end(), restorer.damaged().begin(), restorer.damaged().end());
        if (!status.ok()) failed = status;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (!failed.ok()) return {failed.code(), disk_->directory() + ": " + failed.message()};
  recovery_.items = rows;
  const model::LockGuard lock(mutex_);
  for (const auto& [name, table] : tables_) table->begin_interval(interval_);
  return {};
}

model::Status ShardedStore::rebuild_later(std::span<const model::TableSchema> schemas) {
  if (model::Status status = read_meta(); !status.ok()) return status;
  const model::LockGuard defining(definitions_mutex_);
  DiskBatch batch;
  for (const auto& table : tables()) {
    const auto named = std::find_if(schemas.begin(), schemas.end(), [&](const model::TableSchema& schema) {
      return schema.name == table->schema().name;
    });
    const model::TableSchema& schema = named == schemas.end() ? table->schema() : *named;
    if (model::Status status = model::validate(schema); !status.ok()) return status;
    if (schema.key != table->schema().key || schema.time_sort_key != table->schema().time_sort_key) {
      return model::invalid("table " + schema.name +
                            " has another key or time sort key, which can't change: export its items and import them "
                            "into a new directory");
    }
    const std::uint32_t id = table->id();
    TableRecord record = records_[id];
    record.schema = schema;
    record.indexes.clear();
    for (const model::IndexSchema& index : schema.indexes) {
      if (!index.local) record.indexes.push_back({record.next_index++, false});
    }
    batch.put(Family::kMeta, numbered_key(kTablePrefix, id), encode(record));
    batch.remove_range(Family::kMeta, filled_key({id, 0}), filled_key({id + 1, 0}));
    for (const Family family : {Family::kBlocks, Family::kTails}) {
      batch.remove_range(family, space_key({id, 1}), space_key({id + 1, 0}));
    }
  }
  return disk_->write(batch);
}

/// Applies the API writes behind the cut, by their versions, as rows of a stream.
model::Status ShardedStore::apply_log() {
  std::map<std::uint32_t, std::shared_ptr<model::RowBatch>> rows_of;
  std::map<std::uint32_t, std::shared_ptr<MemoryTable>> by_id;
  for (const auto& table : tables()) by_id.emplace(table->id(), table);
  const auto submit = [&](std::uint32_t id) {
    std::shared_ptr<const model::RowBatch> rows = std::exchange(rows_of[id], nullptr);
    if (rows == nullptr) return;
    MemoryTable& table = *by_id[id];
    for (partitioner::RoutedBatch& part : table.route(std::move(rows))) {
      while (table.submit(std::move(part)).code() == model::StatusCode::kFull) {  // NOLINT(bugprone-use-after-move)
        std::this_thread::sleep_for(kRestPause);
      }
    }
  };
  model::Status status = disk_->visit(Family::kLog, {}, {}, [&](std::string_view key, std::string_view value) {
    key.remove_prefix(sizeof(std::uint32_t));
    log_sequence_ = std::max(log_sequence_, take_big_endian<std::uint64_t>(key));
    if (value.size() < sizeof(std::uint32_t)) return true;
    const auto id = take_big_endian<std::uint32_t>(value);
    DiskReader in(value);
    const std::string_view partition_key = in.bytes();
    if (!in.ok() || !by_id.contains(id)) return true;  // of a table that was deleted since
    auto& rows = rows_of[id];
    if (rows == nullptr) rows = std::make_shared<model::RowBatch>();
    model::RowBatch::Row& row = rows->rows.emplace_back();
    row.hash = model::hash_key(partition_key);
    row.begin = static_cast<std::uint32_t>(rows->bytes.size());
    row.partition_key_size = static_cast<std::uint32_t>(partition_key.size());
    row.row_size = static_cast<std::uint32_t>(in.rest().size());
    rows->bytes.insert(rows->bytes.end(), partition_key.begin(), partition_key.end());
    rows->bytes.insert(rows->bytes.end(), in.rest().begin(), in.rest().end());
    ++recovery_.writes;
    if (rows->rows.size() == model::kBatchRecordsMax || rows->bytes.size() > (std::size_t{64} << 20)) submit(id);
    return true;
  });
  if (!status.ok()) return {status.code(), disk_->directory() + ": the log of API writes: " + status.message()};
  for (const auto& [id, table] : by_id) submit(id);
  for (const auto& [id, table] : by_id) table->flush_indexes();
  while (!idle()) std::this_thread::sleep_for(kRestPause);
  return {};
}

}  // namespace

std::unique_ptr<Store> Store::open(StoreOptions options) {
  return std::make_unique<ShardedStore>(std::move(options), nullptr);
}

model::Status Store::rebuild(const std::string& directory, std::span<const model::TableSchema> schemas) {
  auto disk = Disk::open(directory);
  if (!disk.ok()) return disk.status();
  return ShardedStore({}, std::move(disk).value()).rebuild_later(schemas);
}

model::Result<std::unique_ptr<Store>> Store::open(const std::string& directory, StoreOptions options,
                                                  const RecoveryProgress& progress) {
  auto disk = Disk::open(directory);
  if (!disk.ok()) return disk.status();
  return open_on(std::move(disk).value(), std::move(options), progress);
}

model::Result<std::unique_ptr<Store>> open_on(std::unique_ptr<Disk> disk, StoreOptions options,
                                              const RecoveryProgress& progress) {
  auto store = std::make_unique<ShardedStore>(std::move(options), std::move(disk));
  if (model::Status status = store->recover(progress); !status.ok()) return status;
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace drover::store

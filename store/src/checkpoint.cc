#include "checkpoint.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "cold_block.h"
#include "disk_format.h"

namespace drover::store {
namespace {

/// Rows of a cold block, about; they take a few bytes each then.
constexpr std::uint32_t kColdRowsMin = 512;
/// Of a cold block's rows as they lie in a block, whose bounds are 16 bits.
constexpr std::size_t kColdRowBytesMax = 56 * 1024;
constexpr std::size_t kColdRowBytesMin = 48 * 1024;
/// A block of fewer rows is restored as rows, to be sealed together with others.
constexpr std::uint32_t kColdRowsRestoredMin = 256;

std::vector<model::RowView> rows_of(const Block& block, std::uint32_t count) {
  std::vector<model::RowView> rows;
  rows.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) rows.push_back(block.row(i));
  return rows;
}

std::vector<model::RowView> rows_of(const LateRows& late) {
  std::vector<model::RowView> rows;
  rows.reserve(late.size());
  for (std::uint32_t i = 0; i < late.size(); ++i) rows.push_back(late.row(i));
  return rows;
}

/// The tails and late rows of a segment's collections; one without rows stands there too, so that every collection
/// does.
model::Bytes tails_of(const SpaceChanges& changes, Changes& of_shard, std::uint32_t segment) {
  model::Bytes value;
  model::Bytes encoded;
  for (const Collection* collection : changes.space->collections(segment)) {
    const CutState state = of_shard.state_at_cut(*collection);
    if (state.view == nullptr) continue;
    encoded.clear();
    if (state.tail_count > 0) encode_block(rows_of(*state.view->tail, state.tail_count), encoded);
    append_bytes(value, collection->partition_key());
    append_bytes(value, encoded);
    encoded.clear();
    if (state.late_count > 0) encode_block(rows_of(state.view->late->rows_at(state.late_count)), encoded);
    append_bytes(value, encoded);
    if (encoded.empty()) continue;
    model::append_varint(value, model::zigzag(state.late_growth.items));
    model::append_varint(value, model::zigzag(state.late_growth.bytes));
  }
  return value;
}

/// Walks a history, makes cold blocks of its runs, and puts them and what else came to be in the interval.
class HistoryWriter {
 public:
  struct Settings {
    std::uint32_t interval;
    std::uint32_t sealed_born_max;  ///< Younger blocks are not sealed,
    std::string_view settled_end;   ///< but those in front of this key.
    bool pressed;
  };
  HistoryWriter(DiskBatch& batch, const ColdBlock::Place& place, const Settings& settings)
      : batch_(batch), place_(place), settings_(settings) {}

  /// Blocks of these keys are put whatever their age.
  void put_again(std::span<const Changes::Apart> apart) { apart_ = apart; }

  void walk(const Node& node) {
    constexpr std::uint32_t kAllCold = 0xffffffff;
    if (node.level == 0 && node.cold == kAllCold >> (kNodeFanout - node.count)) return end_run();
    for (std::size_t i = 0; i < node.count; ++i) {
      if (node.level > 0) {
        walk(*node.node(i));
      } else if (node.is_cold(i)) {
        end_run();
      } else if (const Block& block = *node.block(i);
                 is_unsettled(block) || block.used() > kColdRowBytesMax - kColdRowBytesMin) {
        end_run();
        put(block);
      } else {
        take(block);
      }
    }
  }

  std::vector<Seal> take_seals() {
    end_run();
    return std::move(seals_);
  }

 private:
  void take(const Block& block) {
    run_.push_back(&block);
    rows_ += block.count();
    bytes_ += block.used();
    if (rows_ >= kColdRowsMin || bytes_ >= kColdRowBytesMin) seal();
  }

  bool is_unsettled(const Block& block) const {
    return block.born() > settings_.sealed_born_max && block.row(block.count() - 1).sort_key() >= settings_.settled_end;
  }

  void end_run() {
    if (settings_.pressed && !run_.empty()) return seal();
    for (const Block* block : run_) put(*block);
    clear();
  }

  void put(const Block& block) {
    const std::string_view first_key = block.row(0).sort_key();
    const auto covers = [&](const Changes::Apart& range) {
      return range.first_key <= first_key && first_key <= range.last_key;
    };
    if (block.born() != settings_.interval && std::none_of(apart_.begin(), apart_.end(), covers)) return;
    model::Bytes encoded;
    encode_block(rows_of(block, block.count()), encoded);
    batch_.put(Family::kBlocks, key_of(first_key), encoded);
  }

  void seal() {
    std::vector<model::RowView> rows;
    rows.reserve(rows_);
    for (const Block* block : run_) {
      for (std::uint32_t i = 0; i < block->count(); ++i) rows.push_back(block->row(i));
      // What stands there by itself is replaced, or may not be there at all.
      if (block->born() != settings_.interval) {
        batch_.remove(Family::kBlocks, key_of(block->row(0).sort_key()));
      }
    }
    std::unique_ptr<ColdBlock> cold = ColdBlock::of_rows(place_, rows, settings_.interval);
    batch_.put(Family::kBlocks, key_of(cold->first_key()), *cold->in_memory());
    seals_.push_back({std::move(run_), settings_.interval, std::move(cold)});
    clear();
  }

  model::Bytes key_of(std::string_view first_key) const {
    return model::Bytes(place_.collection_key).append(first_key);
  }

  void clear() {
    run_.clear();
    rows_ = 0;
    bytes_ = 0;
  }

  DiskBatch& batch_;
  const ColdBlock::Place place_;
  const Settings settings_;
  std::span<const Changes::Apart> apart_;
  std::vector<const Block*> run_;
  std::uint32_t rows_ = 0;
  std::size_t bytes_ = 0;
  std::vector<Seal> seals_;
};

void evict_below(const Node& node, std::uint32_t interval, std::uint64_t& bytes, RetireList& retired) {
  for (std::size_t i = 0; i < node.count && bytes > 0; ++i) {
    if (node.level > 0) {
      evict_below(*node.node(i), interval, bytes, retired);
    } else if (node.is_cold(i) && node.cold_block(i)->born() <= interval) {
      // Only where it lies changes: so through a pointer to const.
      bytes -= std::min<std::uint64_t>(bytes, const_cast<ColdBlock*>(node.cold_block(i))->evict(retired));
    }
  }
}

/// The rows as a block that a collection owns; null if they are damaged.
Block* restored(std::string_view encoded) {
  const auto rows = decode_block(encoded);
  if (!rows.ok()) return nullptr;
  Block* block = Block::make(static_cast<std::uint32_t>((*rows)->used()), 0);
  block->append_rows(**rows, 0, (*rows)->writer_count());
  return block;
}

}  // namespace

std::vector<ShardSeals> append_changes(DiskBatch& batch, const Disk& disk, const SpaceChanges& changes,
                                       std::uint32_t interval, bool pressed) {
  std::vector<ShardSeals> all;
  const bool is_table = changes.id.index == 0;
  for (const SpaceChanges::Part& part : changes.parts) {
    const Changes::Interval& changed = part.interval;
    const auto remove = [&](const Collection& collection, const model::Bytes& first_key) {
      batch.remove(Family::kBlocks,
                   collection_key(changes.id, collection.hash(), collection.partition_key()) + first_key);
    };
    std::unordered_map<const Collection*, std::vector<Changes::Apart>> apart;
    for (const Changes::Gone& gone : changed.gone) remove(*gone.collection, gone.first_key);
    for (const Changes::Apart& range : changed.apart) {
      remove(*range.collection, range.first_key);
      apart[range.collection].push_back(range);
    }

    std::vector<Shard::Seals>& seals = all.emplace_back(ShardSeals{part.shard, {}, changes.owner}).seals;
    const auto write_history = [&](const Collection& collection) {
      const CutState state = part.shard->changes().state_at_cut(collection);
      if (state.view == nullptr || state.view->history == nullptr) return;
      const model::Bytes key = collection_key(changes.id, collection.hash(), collection.partition_key());
      const auto merges = changed.merges.find(&collection);
      const std::string_view settled_end =
          merges != changed.merges.end() ? merges->second.lowest() : std::string_view{};
      HistoryWriter writer(batch, {disk, key}, {interval, is_table ? interval : interval - 1, settled_end, pressed});
      if (const auto found = apart.find(&collection); found != apart.end()) writer.put_again(found->second);
      writer.walk(*state.view->history);
      std::vector<Seal> found = writer.take_seals();
      // Its shard's writer is to change it.
      if (!found.empty()) seals.push_back({const_cast<Collection*>(&collection), std::move(found)});
    };
    for (const Collection* collection : changed.collections) write_history(*collection);
    // What has come to rest meanwhile: its last blocks were too young, or the memory was not pressed then.
    if (!is_table || pressed) {
      const std::unordered_set<const Collection*> written(changed.collections.begin(), changed.collections.end());
      for (const Collection* collection : changed.settled) {
        if (!written.contains(collection)) write_history(*collection);
      }
    }

    std::vector<std::uint32_t> segments;
    for (const Collection* collection : changed.collections) segments.push_back(model::segment_of(collection->hash()));
    std::sort(segments.begin(), segments.end());
    segments.erase(std::unique(segments.begin(), segments.end()), segments.end());
    for (const std::uint32_t segment : segments) {
      batch.put(Family::kTails, tails_key(changes.id, segment), tails_of(changes, part.shard->changes(), segment));
    }
  }
  return all;
}

std::uint32_t evict(const Space& space, const EpochDomain& epochs, std::uint32_t interval, std::uint32_t segment,
                    std::uint64_t& bytes, RetireList& retired) {
  for (; segment < model::kSegments && bytes > 0; ++segment) {
    const EpochDomain::Guard guard(epochs);
    for (const Collection* collection : space.collections(segment)) {
      const View* view = collection->view();
      if (view != nullptr && view->history != nullptr) evict_below(*view->history, interval, bytes, retired);
    }
  }
  return segment;
}

void Restorer::note_damage(std::string_view partition_key, const std::string& what) {
  damaged_.push_back("table " + std::to_string(from_.id.table) + ", index " + std::to_string(from_.id.index) +
                     ", collection " + std::string(partition_key) + ": " + what);
}

namespace {

bool is_ascending(const Block& rows) {
  for (std::uint32_t i = 1; i < rows.writer_count(); ++i) {
    if (rows.row(i - 1).sort_key() >= rows.row(i).sort_key()) return false;
  }
  return true;
}

}  // namespace

/// Adds a collection to pending_.
void Restorer::read_tail(DiskReader& in) {
  Pending& pending = pending_.emplace_back();
  pending.partition_key = in.bytes();
  pending.hash = model::hash_key(pending.partition_key);
  const std::string_view tail = in.bytes();
  if (in.ok() && !tail.empty()) pending.tail = restored(tail);
  if (!in.ok() || (!tail.empty() && pending.tail == nullptr)) note_damage(pending.partition_key, "its newest items");
  if (pending.tail == nullptr) pending.tail = Block::make(0, 0);
  if (!in.ok()) return;
  const std::string_view late = in.bytes();
  if (in.ok() && late.empty()) return;
  const auto growth = [&in] { return static_cast<std::int32_t>(model::unzigzag(in.varint())); };
  pending.late.growth.items = growth();
  pending.late.growth.bytes = growth();
  auto rows = decode_block(late);
  if (in.ok() && rows.ok() && (*rows)->writer_count() <= LateRows::kMax && is_ascending(**rows)) {
    pending.late.rows = std::move(rows).value();
  } else {
    note_damage(pending.partition_key, "its late items");
  }
}

/// Fills pending_, in order.
model::Status Restorer::read_tails() {
  std::uint32_t segment = from_.range.begin;
  for (;;) {
    model::Status status =
        disk_.visit(Family::kTails, tails_key(from_.id, segment), tails_key(from_.id, from_.range.end),
                    [&](std::string_view key, std::string_view value) {
                      key.remove_prefix(space_key(from_.id).size());
                      segment = take_big_endian<std::uint16_t>(key) + 1u;
                      DiskReader in(value);
                      while (in.ok() && !in.at_end()) read_tail(in);
                      return true;
                    });
    if (status.ok()) break;
    if (status.code() != model::StatusCode::kInvalid) return status;
    // Somewhere at `segment` or behind it: those up to the damage come by themselves, one after the other.
    note_damage("(some)", "the newest items of segment " + std::to_string(segment) + ": " + status.message());
    if (++segment >= from_.range.end) break;
  }
  std::sort(pending_.begin(), pending_.end(), [](const Pending& a, const Pending& b) {
    return std::tie(a.hash, a.partition_key) < std::tie(b.hash, b.partition_key);
  });
  return {};
}

/// Hands the collection at `next_` over to its shard.
void Restorer::restore_next() {
  Pending& pending = pending_[next_++];
  rows_ += pending.tail->writer_count() + (pending.late.rows != nullptr ? pending.late.rows->writer_count() : 0);
  from_.shard->restore(pending.hash, pending.partition_key, history_, pending.tail, pending.late);
  pending.late.rows.reset();
  history_.clear();
  progress_(std::exchange(rows_, 0));
}

/// Takes a block; those of a collection come in order, and behind those of the collections in front of it.
void Restorer::take_block(std::string_view key, std::string_view encoded) {
  std::string_view first_key = key.substr(space_key(from_.id).size());
  const auto hash = take_big_endian<model::KeyHash>(first_key);
  const model::Bytes partition_key = model::take_key_part(first_key);
  while (next_ < pending_.size() &&
         std::tie(pending_[next_].hash, pending_[next_].partition_key) < std::tie(hash, partition_key)) {
    restore_next();
  }
  if (next_ == pending_.size() || pending_[next_].hash != hash || pending_[next_].partition_key != partition_key) {
    // Its segment's tails were damaged.
    pending_.insert(pending_.begin() + static_cast<std::ptrdiff_t>(next_),
                    {hash, partition_key, Block::make(0, 0), {}});
  }
  const model::Bytes collection(key.substr(0, key.size() - first_key.size()));
  auto cold = ColdBlock::of_value({disk_, collection}, first_key, model::Bytes(encoded));
  if (cold == nullptr) return note_damage(partition_key, "the block that begins at " + std::string(first_key));
  rows_ += cold->rows();
  const bool pressed = Block::all_bytes() + cold_bytes_in_memory() > memory_budget_bytes_;
  if (pressed) cold->forget();
  if (pressed || cold->rows() >= kColdRowsRestoredMin) {
    const std::string_view begin = cold->first_key();
    history_.push_back({cold.release(), begin, true});
  } else {
    const Block* const block = restored(encoded);
    history_.push_back({block, block->row(0).sort_key(), false});
  }
}

/// Takes the blocks of one collection from `begin` on, around what RocksDB finds damaged.
model::Status Restorer::take_around_damage(const Pending& pending, const model::Bytes& begin) {
  const model::Bytes end = collection_end_key(collection_key(from_.id, pending.hash, pending.partition_key));
  const model::Bytes partition_key = pending.partition_key;  // of a vector that may grow
  model::Bytes last = begin;
  model::Status forwards =
      disk_.visit(Family::kBlocks, begin, end, [&](std::string_view key, std::string_view encoded) {
        last.assign(key);
        take_block(key, encoded);
        return true;
      });
  if (forwards.ok() || forwards.code() != model::StatusCode::kInvalid) return forwards;
  note_damage(partition_key, forwards.message());
  std::vector<std::pair<model::Bytes, model::Bytes>> behind;
  (void)disk_.visit_backwards(Family::kBlocks, last, end, [&](std::string_view key, std::string_view encoded) {
    if (key > last) behind.emplace_back(key, encoded);
    return key > last;
  });
  for (auto block = behind.rbegin(); block != behind.rend(); ++block) take_block(block->first, block->second);
  return {};
}

model::Status Restorer::run() {
  if (model::Status status = read_tails(); !status.ok()) return status;
  model::Bytes begin = segment_begin_key(from_.id, from_.range.begin);
  const model::Bytes end = segment_begin_key(from_.id, from_.range.end);
  for (;;) {
    model::Bytes last;
    model::Status status =
        disk_.visit(Family::kBlocks, begin, end, [&](std::string_view key, std::string_view encoded) {
          last.assign(key);
          take_block(key, encoded);
          return true;
        });
    if (status.ok()) break;
    if (status.code() != model::StatusCode::kInvalid) return status;
    // Somewhere behind `last`, or `begin`: on to the end of that segment, collection by collection.
    std::string_view at = last.empty() ? begin : last;
    at.remove_prefix(space_key(from_.id).size());
    const std::uint32_t segment = model::segment_of(take_big_endian<model::KeyHash>(at));
    for (bool current = !last.empty(); next_ < pending_.size(); current = false) {
      const Pending& pending = pending_[next_];
      if (model::segment_of(pending.hash) > segment) break;
      status = take_around_damage(
          pending, current ? last + '\0' : collection_key(from_.id, pending.hash, pending.partition_key));
      if (!status.ok()) return status;
      restore_next();
    }
    if (segment + 1 == from_.range.end) break;
    begin = segment_begin_key(from_.id, segment + 1);
  }
  while (next_ < pending_.size()) restore_next();
  from_.shard->publish_stats();
  return {};
}

}  // namespace drover::store

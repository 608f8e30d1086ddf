#include "checkpoint.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
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

/// Puts the blocks below `node` that came to be in `interval`.
void put_blocks(DiskBatch& batch, const Node& node, std::uint32_t interval, const model::Bytes& prefix) {
  if (node.born != interval) return;
  for (std::size_t i = 0; i < node.count; ++i) {
    if (node.level > 0) {
      put_blocks(batch, *node.node(i), interval, prefix);
    } else if (node.is_cold(i)) {
      const ColdBlock& cold = *node.cold_block(i);
      if (cold.born() == interval)
        batch.put(Family::kBlocks, prefix + model::Bytes(cold.first_key()), *cold.in_memory());
    } else if (const Block& block = *node.block(i); block.born() == interval) {
      model::Bytes encoded;
      encode_block(rows_of(block, block.count()), encoded);
      batch.put(Family::kBlocks, prefix + model::Bytes(block.row(0).sort_key()), encoded);
    }
  }
}

/// The tails of a segment's collections; one without rows stands there too, so that every collection does.
model::Bytes tails_of(const SpaceChanges& changes, Changes& of_shard, std::uint32_t segment) {
  model::Bytes value;
  model::Bytes encoded;
  for (const Collection* collection : changes.space->collections(segment)) {
    const CollectionState state = of_shard.state_at_cut(*collection);
    if (state.view == nullptr) continue;
    encoded.clear();
    if (state.tail_count > 0) encode_block(rows_of(*state.view->tail, state.tail_count), encoded);
    append_bytes(value, collection->partition_key());
    append_bytes(value, encoded);
  }
  return value;
}

/// Walks a history and makes cold blocks of its runs.
class Sealer {
 public:
  Sealer(const ColdBlock::Place& place, std::uint32_t born_max, bool pressed)
      : place_(place), born_max_(born_max), pressed_(pressed) {}

  void walk(const Node& node) {
    constexpr std::uint32_t kAllCold = 0xffffffff;
    if (node.level == 0 && node.cold == kAllCold >> (kNodeFanout - node.count)) return end_run();
    for (std::size_t i = 0; i < node.count; ++i) {
      if (node.level > 0) {
        walk(*node.node(i));
      } else if (node.is_cold(i) || node.block(i)->born() > born_max_ ||
                 node.block(i)->used() > kColdRowBytesMax - kColdRowBytesMin) {
        end_run();
      } else {
        take(*node.block(i));
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

  void end_run() {
    if (pressed_ && !run_.empty()) return seal();
    clear();
  }

  void seal() {
    std::vector<model::RowView> rows;
    rows.reserve(rows_);
    for (const Block* block : run_) {
      for (std::uint32_t i = 0; i < block->count(); ++i) rows.push_back(block->row(i));
    }
    seals_.push_back({run_, born_max_, ColdBlock::of_rows(place_, rows)});
    clear();
  }

  void clear() {
    run_.clear();
    rows_ = 0;
    bytes_ = 0;
  }

  const ColdBlock::Place place_;
  const std::uint32_t born_max_;
  const bool pressed_;
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

}  // namespace

void append_changes(DiskBatch& batch, const SpaceChanges& changes, std::uint32_t interval) {
  for (const SpaceChanges::Part& part : changes.parts) {
    for (const Changes::Gone& gone : part.interval.gone) {
      const Collection& collection = *gone.collection;
      batch.remove(Family::kBlocks,
                   collection_key(changes.id, collection.hash(), collection.partition_key()) + gone.first_key);
    }
    std::vector<std::uint32_t> segments;
    for (const Collection* collection : part.interval.collections) {
      segments.push_back(model::segment_of(collection->hash()));
      const CollectionState state = part.shard->changes().state_at_cut(*collection);
      if (state.view == nullptr || state.view->history == nullptr) continue;
      put_blocks(batch, *state.view->history, interval,
                 collection_key(changes.id, collection->hash(), collection->partition_key()));
    }
    std::sort(segments.begin(), segments.end());
    segments.erase(std::unique(segments.begin(), segments.end()), segments.end());
    for (const std::uint32_t segment : segments) {
      batch.put(Family::kTails, tails_key(changes.id, segment), tails_of(changes, part.shard->changes(), segment));
    }
  }
}

std::vector<ShardSeals> seal_settled(const Disk& disk, const SpaceChanges& changes, std::uint32_t interval,
                                     bool pressed) {
  std::vector<ShardSeals> all;
  for (const SpaceChanges::Part& part : changes.parts) {
    std::vector<Shard::Seals>& seals = all.emplace_back(ShardSeals{part.shard, {}}).seals;
    for (const Collection* collection : part.interval.settled) {
      const CollectionState state = part.shard->changes().state_at_cut(*collection);
      if (state.view == nullptr || state.view->history == nullptr) continue;
      const model::Bytes key = collection_key(changes.id, collection->hash(), collection->partition_key());
      Sealer sealer({disk, key}, interval - 1, pressed);
      sealer.walk(*state.view->history);
      std::vector<Seal> found = sealer.take_seals();
      // Its shard's writer is to change it.
      if (!found.empty()) seals.push_back({const_cast<Collection*>(collection), std::move(found)});
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

/// The rows as a block that a collection owns; null if they are damaged.
static Block* restored(std::string_view encoded) {
  const auto rows = decode_block(encoded);
  if (!rows.ok()) return nullptr;
  Block* block = Block::make(static_cast<std::uint32_t>((*rows)->used()), 0);
  block->append_rows(**rows, 0, (*rows)->writer_count());
  return block;
}

/// A collection on its way back into memory.
struct Restorer::Pending {
  model::KeyHash hash = 0;
  model::Bytes partition_key;
  Block* tail = nullptr;
};

void Restorer::note_damage(std::string_view partition_key, const std::string& what) {
  damaged_.push_back("table " + std::to_string(from_.id.table) + ", index " + std::to_string(from_.id.index) +
                     ", collection " + std::string(partition_key) + ": " + what);
}

model::Status Restorer::read_tails(std::vector<Pending>& out) {
  return disk_.visit(Family::kTails, tails_key(from_.id, from_.range.begin), tails_key(from_.id, from_.range.end),
                     [&](std::string_view, std::string_view value) {
                       DiskReader in(value);
                       while (in.ok() && !in.at_end()) {
                         Pending& pending = out.emplace_back();
                         pending.partition_key = in.bytes();
                         pending.hash = model::hash_key(pending.partition_key);
                         const std::string_view encoded = in.bytes();
                         if (in.ok() && !encoded.empty()) pending.tail = restored(encoded);
                         if (!in.ok() || (!encoded.empty() && pending.tail == nullptr)) {
                           note_damage(pending.partition_key, "its newest items");
                         }
                         if (pending.tail == nullptr) pending.tail = Block::make(0, 0);
                       }
                       return true;
                     });
}

model::Status Restorer::run(const std::function<void(std::uint64_t rows)>& progress) {
  std::vector<Pending> collections;
  const model::Status tails = read_tails(collections);
  std::sort(collections.begin(), collections.end(), [](const Pending& a, const Pending& b) {
    return std::tie(a.hash, a.partition_key) < std::tie(b.hash, b.partition_key);
  });

  auto next = collections.begin();
  Pieces history;
  std::uint64_t rows = 0;
  const auto restore_next = [&] {
    rows += next->tail->writer_count();
    from_.shard->restore(next->hash, next->partition_key, history, next->tail);
    history.clear();
    ++next;
    progress(std::exchange(rows, 0));
  };
  model::Bytes collection;  // the key of the one that is read
  const model::Status blocks = disk_.visit(
      Family::kBlocks, segment_begin_key(from_.id, from_.range.begin), segment_begin_key(from_.id, from_.range.end),
      [&](std::string_view key, std::string_view encoded) {
        std::string_view rest = key.substr(space_key(from_.id).size());
        const auto hash = take_big_endian<model::KeyHash>(rest);
        const model::Bytes partition_key = model::take_key_part(rest);
        while (next != collections.end() && std::tie(next->hash, next->partition_key) < std::tie(hash, partition_key)) {
          restore_next();
        }
        if (next == collections.end() || next->hash != hash || next->partition_key != partition_key) {
          note_damage(partition_key, "a block of a collection without a tail");
          return true;
        }
        collection.assign(key.substr(0, key.size() - rest.size()));
        auto cold = ColdBlock::of_value({disk_, collection}, rest, model::Bytes(encoded));
        if (cold == nullptr) {
          note_damage(partition_key, "the block that begins at " + std::string(rest));
          return true;
        }
        rows += cold->rows();
        if (cold->rows() >= kColdRowsRestoredMin) {
          const std::string_view first_key = cold->first_key();
          history.push_back({cold.release(), first_key, true});
        } else {
          const Block* const block = restored(encoded);
          history.push_back({block, block->row(0).sort_key(), false});
        }
        return true;
      });
  while (next != collections.end()) restore_next();
  from_.shard->publish_stats();
  return tails.ok() ? blocks : tails;
}

}  // namespace drover::store

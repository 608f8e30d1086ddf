#include "checkpoint.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "columns.h"
#include "disk_format.h"

namespace drover::store {
namespace {

void append_rows(model::Bytes& out, const Block& block, std::uint32_t count) {
  std::vector<model::RowView> rows;
  rows.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) rows.push_back(block.row(i));
  encode_columns(rows, out);
}

/// Puts the blocks below `node` that came to be in `interval`.
void put_blocks(DiskBatch& batch, const Node& node, std::uint32_t interval, const model::Bytes& prefix) {
  if (node.born != interval) return;
  for (std::size_t i = 0; i < node.count; ++i) {
    if (node.level > 0) {
      put_blocks(batch, *node.node(i), interval, prefix);
      continue;
    }
    const Block& block = *node.block(i);
    if (block.born() != interval) continue;
    model::Bytes columns;
    append_rows(columns, block, block.count());
    batch.put(Family::kBlocks, prefix + model::Bytes(block.row(0).sort_key()), columns);
  }
}

/// The tails of a segment's collections; one without rows stands there too, so that every collection does.
model::Bytes tails_of(const SpaceChanges& changes, Changes& of_shard, std::uint32_t segment) {
  model::Bytes value;
  model::Bytes columns;
  for (const Collection* collection : changes.space->collections(segment)) {
    const CollectionState state = of_shard.state_at_cut(*collection);
    if (state.view == nullptr) continue;
    columns.clear();
    if (state.tail_count > 0) append_rows(columns, *state.view->tail, state.tail_count);
    append_bytes(value, collection->partition_key());
    append_bytes(value, columns);
  }
  return value;
}

/// A block of the encoded rows; null if they are damaged.
Block* block_of(std::string_view columns) {
  const auto info = columns_info(columns);
  if (!info.ok()) return nullptr;
  Block* block = Block::make(static_cast<std::uint32_t>(info->row_bytes + info->rows * Block::room_for(0)), 0);
  bool fits = true;
  const model::Status status = decode_columns(columns, [&](std::string_view row) {
    fits = fits && block->fits(row.size());
    if (fits) block->append(row);
  });
  if (status.ok() && fits) return block;
  Block::destroy(block);
  return nullptr;
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
      const CollectionState state = part.changes->state_at_cut(*collection);
      if (state.view == nullptr || state.view->history == nullptr) continue;
      put_blocks(batch, *state.view->history, interval,
                 collection_key(changes.id, collection->hash(), collection->partition_key()));
    }
    std::sort(segments.begin(), segments.end());
    segments.erase(std::unique(segments.begin(), segments.end()), segments.end());
    for (const std::uint32_t segment : segments) {
      batch.put(Family::kTails, tails_key(changes.id, segment), tails_of(changes, *part.changes, segment));
    }
  }
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
                         const std::string_view columns = in.bytes();
                         if (in.ok() && !columns.empty()) pending.tail = block_of(columns);
                         if (!in.ok() || (!columns.empty() && pending.tail == nullptr)) {
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
  std::vector<Block*> history;
  const auto restore_next = [&] {
    std::uint64_t rows = next->tail->writer_count();
    for (const Block* block : history) rows += block->writer_count();
    from_.shard->restore(next->hash, next->partition_key, history, next->tail);
    history.clear();
    ++next;
    progress(rows);
  };
  const model::Status blocks = disk_.visit(
      Family::kBlocks, segment_begin_key(from_.id, from_.range.begin), segment_begin_key(from_.id, from_.range.end),
      [&](std::string_view key, std::string_view columns) {
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
        Block* const block = block_of(columns);
        if (block != nullptr && block->writer_count() > 0) {
          history.push_back(block);
        } else {
          note_damage(partition_key, "the block that begins at " + std::string(rest));
        }
        return true;
      });
  while (next != collections.end()) restore_next();
  from_.shard->publish_stats();
  return tails.ok() ? blocks : tails;
}

}  // namespace drover::store

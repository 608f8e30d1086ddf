#include "collection.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "drover/model/check.h"

namespace drover::store {
namespace {

void retire(const Block* block, RetireList& retired) {
  retired.retire(const_cast<Block*>(block), [](void* old) { Block::destroy(static_cast<Block*>(old)); });
}
void retire(const Node* node, RetireList& retired) {
  retired.retire(const_cast<Node*>(node), [](void* old) { delete static_cast<Node*>(old); });
}
void retire(const ColdBlock* block, RetireList& retired) {
  retired.retire(const_cast<ColdBlock*>(block), [](void* old) { delete static_cast<ColdBlock*>(old); });
}
void retire(const LateRun* run, RetireList& retired) {
  retired.retire(const_cast<LateRun*>(run), [](void* old) { delete static_cast<LateRun*>(old); });
}
void retire(const View* view, RetireList& retired) {
  retired.retire(const_cast<View*>(view), [](void* old) { delete static_cast<View*>(old); });
}

void destroy_tree(const Node* node) {
  for (std::size_t i = 0; i < node->count; ++i) {
    if (node->level > 0) {
      destroy_tree(node->node(i));
    } else if (node->is_cold(i)) {
      delete node->cold_block(i);
    } else {
      Block::destroy(const_cast<Block*>(node->block(i)));
    }
  }
  delete node;
}

Piece piece_of(const Block* block) {
  return {block, block->row(0).sort_key(), false};
}
Piece piece_of(const ColdBlock* block) {
  return {block, block->first_key(), true};
}
Piece piece_of(const Node* node) {
  return {node, node->first_key[0], false};
}
Piece piece_at(const Node& node, std::size_t i) {
  return {node.child[i], node.first_key[i], node.is_cold(i)};
}

/// The child where a key is or would be.
std::size_t child_of(const Node& node, std::string_view key) {
  const auto begin = node.first_key.begin();
  return static_cast<std::size_t>(std::upper_bound(begin + 1, begin + node.count, key) - begin) - 1;
}

void append_child(Node& node, const Piece& piece) {
  node.child[node.count] = piece.child;
  node.first_key[node.count] = piece.first_key;
  if (piece.cold) node.cold |= std::uint32_t{1} << node.count;
  ++node.count;
}

/// Nodes of one level over `pieces`, evenly filled.
Pieces nodes_over(const Pieces& pieces, std::uint8_t level) {
  Pieces nodes;
  const std::size_t needed = (pieces.size() + kNodeFanout - 1) / kNodeFanout;
  std::size_t at = 0;
  for (std::size_t n = 0; n < needed; ++n) {
    const std::size_t end = pieces.size() * (n + 1) / needed;
    auto* node = new Node;
    node->level = level;
    for (; at < end; ++at) append_child(*node, pieces[at]);
    nodes.push_back(piece_of(node));
  }
  return nodes;
}

/// The tree over nodes of `level`; null if there are none.
const Node* root_over(Pieces nodes, std::uint8_t level) {
  while (nodes.size() > 1) nodes = nodes_over(nodes, ++level);
  return nodes.empty() ? nullptr : static_cast<const Node*>(nodes[0].child);
}

/// The node with `block` behind everything in it: one piece, or two if it was full. Left siblings stay full.
Pieces appended(const Node* node, const Block* block, RetireList& retired) {
  Pieces last = node->level == 0 ? Pieces{piece_of(block)} : appended(node->node(node->count - 1u), block, retired);
  const std::size_t kept = node->level == 0 ? node->count : node->count - 1u;
  if (kept + last.size() > kNodeFanout) {
    // Full, and its last child stays as it is: only the overflow needs a new node.
    auto* full = new Node(*node);
    if (node->level != 0) {
      full->child[kept] = last[0].child;
      full->first_key[kept] = last[0].first_key;
    }
    auto* sibling = new Node;
    sibling->level = node->level;
    append_child(*sibling, last.back());
    retire(node, retired);
    return {piece_of(full), piece_of(sibling)};
  }
  auto* copy = new Node(*node);
  copy->count = static_cast<std::uint8_t>(kept);
  for (const Piece& piece : last) append_child(*copy, piece);
  retire(node, retired);
  return {piece_of(copy)};
}

const Node* appended_to_history(const Node* history, const Block* block, RetireList& retired) {
  if (history == nullptr) return root_over(nodes_over({piece_of(block)}, 0), 0);
  const std::uint8_t level = history->level;
  return root_over(appended(history, block, retired), level);
}

std::string_view last_key_of(const Node* node) {
  while (node->level > 0) node = node->node(node->count - 1u);
  const std::size_t last = node->count - 1u;
  if (node->is_cold(last)) return node->cold_block(last)->last_key();
  const Block& block = *node->block(last);
  return block.row(block.writer_count() - 1).sort_key();
}

std::int64_t items_of(const model::RowView& row) {
  return row.tombstone() ? 0 : 1;
}

/// Spreads runs of rows over as many blocks as they need, evenly, each allocated as large as its share. (Larger where
/// rows are replaced or removed, which count in the total, and in front of a row larger than a block.)
class BlockWriter {
 public:
  /// `total`: room for all rows to come, in bytes, or more. `full`: a block's capacity. `open`: the capacity of the
  /// last block if it will take appends, else 0.
  BlockWriter(std::size_t total, std::size_t full, std::uint32_t open, std::uint32_t born)
      : left_(total), full_(full), open_(open), born_(born) {}

  void add(std::string_view row) {
    if (blocks_.empty() || !blocks_.back()->fits(row.size())) start(row.size());
    blocks_.back()->append(row);
  }

  void add(const Block& from, std::uint32_t begin, std::uint32_t end) {
    while (begin < end) {
      if (blocks_.empty() || !blocks_.back()->fits(from.row_bytes(begin).size())) start(from.row_bytes(begin).size());
      const std::uint32_t stop = begin + blocks_.back()->fitting(from, begin, end);
      blocks_.back()->append_rows(from, begin, stop);
      begin = stop;
    }
  }

  std::vector<Block*> take() { return std::move(blocks_); }

 private:
  void start(std::size_t row_size) {
    if (!blocks_.empty()) left_ -= std::min(left_, blocks_.back()->used());
    // A row that does not fit leaves room behind it: a little more than the share, so that it does not add up.
    constexpr std::size_t kSlack = 128;
    const std::size_t blocks = (left_ + full_ - 1) / full_;
    const std::size_t capacity =
        blocks > 1 ? std::min(left_ / blocks + kSlack, full_) : std::max<std::size_t>(left_, open_);
    blocks_.push_back(
        Block::make(static_cast<std::uint32_t>(std::max<std::size_t>(capacity, Block::room_for(row_size))), born_));
  }

  std::size_t left_;  ///< Room for what is to come.
  const std::size_t full_;
  const std::uint32_t open_;
  const std::uint32_t born_;
  std::vector<Block*> blocks_;
};

}  // namespace

Collection::~Collection() {
  const View* view = view_.load(std::memory_order_relaxed);  // nobody else is left
  if (view == nullptr) return;
  if (view->history != nullptr) destroy_tree(view->history);
  Block::destroy(view->tail);
  delete view->late;
  delete view;
}

CollectionState Collection::state() const {
  for (;;) {
    CollectionState state{view(), 0, 0};  // R1
    if (state.view == nullptr) return state;
    const LateRun* const late = state.view->late;
    if (late != nullptr) state.late_count = late->count();                                             // R2
    state.tail_count = state.view->tail->count();                                                      // R3
    if (view() == state.view && (late == nullptr || late->count() == state.late_count)) return state;  // R4
  }
}

void Collection::publish(View next, RetireList& retired) {
  const View* old = view_.load(std::memory_order_relaxed);  // own stores only
  tail_ = next.tail;
  if (next.late != nullptr) next.late->near = {};
  view_.store(new View(next), std::memory_order_release);  // pairs with view()
  if (old != nullptr) retire(old, retired);
  last_begin_ = 0;
  last_key_size_ = kNoRow;
  if (const std::uint32_t count = tail_->writer_count(); count > 0) {
    const model::RowView last = tail_->row(count - 1);
    remember_last_key(last.sort_key());
    remember_last_begin(last.bytes().data());
  } else if (next.history != nullptr) {
    remember_last_key(last_key_of(next.history));
  }
}

void Collection::publish_late(LateRun* late, RetireList& retired) {
  const View* old = view_.load(std::memory_order_relaxed);                          // own stores only
  view_.store(new View{old->history, old->tail, late}, std::memory_order_release);  // pairs with view()
  retire(old, retired);
}

std::string_view Collection::long_last_key() const {
  if (const std::uint32_t count = tail_->writer_count(); count > 0) return tail_->row(count - 1).sort_key();
  return last_key_of(view_.load(std::memory_order_relaxed)->history);  // own stores only
}

/// Capacity of a block that takes appends and has `needed` bytes of room.
std::uint32_t Collection::open_capacity(std::size_t needed) const {
  const std::size_t needed_size = needed + sizeof(Block);
  if (needed_size >= tuning_.block_size_bytes) {
    return static_cast<std::uint32_t>(std::max<std::size_t>(needed_size, tuning_.block_size_bytes) - sizeof(Block));
  }
  std::size_t size = tuning_.first_block_size_bytes;
  while (size < needed_size) size *= 2;
  return static_cast<std::uint32_t>(std::min<std::size_t>(size, tuning_.block_size_bytes) - sizeof(Block));
}

/// Publishes a tail that has room for one more row: the old one enlarged, or a new one behind it.
void Collection::make_room(std::size_t row_size, RetireList& retired) {
  const std::uint32_t room = Block::room_for(row_size);
  const View* old = view_.load(std::memory_order_relaxed);  // own stores only
  if (old == nullptr) {
    publish({nullptr, Block::make(open_capacity(room), cut), nullptr}, retired);
    return;
  }
  const std::size_t filled = tail_->used();
  if (filled == 0 || filled + room <= full_capacity()) {
    Block* larger = Block::make(open_capacity(filled + room), cut);
    larger->append_rows(*tail_, 0, tail_->writer_count());
    Block* replaced = tail_;
    publish({old->history, larger, old->late}, retired);
    retire(replaced, retired);
    return;
  }
  tail_->set_born(cut);
  publish({appended_to_history(old->history, tail_, retired),
           Block::make(open_capacity(std::max<std::size_t>(room, full_capacity() / 4)), cut), old->late},
          retired);
}

void Collection::append(const model::RowView& row, RetireList& retired, std::string_view more) {
  const std::size_t size = row.bytes().size() + more.size();
  if (tail_ == nullptr || !tail_->fits(size)) make_room(size, retired);
  remember_last_begin(tail_->append(row.bytes(), more));
  remember_last_key(row.sort_key());  // where the row came from: what was just written is not near yet
  writer.items += items_of(row);
  writer.bytes += static_cast<std::int64_t>(size);
}

FoundRow Collection::find(std::string_view sort_key) const {
  FoundRow found;
  const View* const view = view_.load(std::memory_order_relaxed);  // own stores only
  if (view == nullptr) return found;
  const auto take = [&found](const Block* block, const KeyPlace& place) {
    found.main = {block, place.at};
    if (place.found) found.row = block->row(place.at);
  };
  if (const LateRun* const run = view->late; run != nullptr) {
    found.late = run->rows().find(sort_key);
    if (found.late.taken) {
      found.row = run->rows().row(found.late.at);
      return found;
    }
    if (const Block* const block = run->near.block; block != nullptr) {
      const std::uint32_t count = block->writer_count();
      const KeyPlace place = block->place_near(sort_key, run->near.at, count);
      if (place.found || (place.at > 0 && place.at < count)) {
        take(block, place);
        return found;
      }
    }
  }
  // What is late is mostly not by much: from the end.
  const std::uint32_t tail_count = view->tail->writer_count();
  const KeyPlace in_tail = view->tail->place_near(sort_key, tail_count, tail_count);
  if (view->history == nullptr || in_tail.found || in_tail.at > 0) {
    take(view->tail, in_tail);
    return found;
  }
  const Node* node = view->history;
  std::size_t i = child_of(*node, sort_key);
  for (; node->level > 0; i = child_of(*node, sort_key)) node = node->node(i);
  const Block* block = nullptr;
  if (node->is_cold(i)) {
    auto rows = node->cold_block(i)->decode_patiently();
    if (!rows.ok()) {
      found.status = rows.status();
      return found;
    }
    found.decoded = std::move(rows).value();
    block = found.decoded.get();
  } else {
    block = node->block(i);
  }
  const std::uint32_t count = block->writer_count();
  const std::uint32_t at = block->lower_bound(sort_key, count);
  take(block, {at, at < count && block->row(at).sort_key() == sort_key});
  return found;
}

/// The late run, with room for one more row: it may be a new one, and the one before folded.
LateRun& Collection::late_run_for(std::size_t row_size, RetireList& retired) {
  LateRun* const old = view_.load(std::memory_order_relaxed)->late;  // own stores only
  if (old != nullptr && old->fits(row_size)) return *old;
  const std::uint32_t room = Block::room_for(row_size);
  // Four times as large each time: a third of the copies of doubling.
  LateRun* const run = old == nullptr
                           ? new LateRun(open_capacity(room))
                           : new LateRun(*old, open_capacity(std::min(4 * old->used() + room, full_capacity())));
  publish_late(run, retired);
  if (old != nullptr) retire(old, retired);
  return *run;
}

std::size_t Collection::put_late(const model::RowView& row, std::string_view more, const FoundRow& found,
                                 RetireList& retired, std::vector<model::Bytes>* gone) {
  const std::size_t size = row.bytes().size() + more.size();
  const std::uint32_t room = Block::room_for(size);
  if (found.decoded != nullptr || room > full_capacity()) {
    const model::Bytes joined = model::Bytes(row.bytes()).append(more);
    const Change change{joined, false};
    return merge({&change, 1}, retired, gone).unreadable;
  }
  LateRun::Growth growth{static_cast<std::int32_t>(items_of(row)), static_cast<std::int32_t>(size)};
  if (found.row) {
    growth.items -= static_cast<std::int32_t>(items_of(*found.row));
    growth.bytes -= static_cast<std::int32_t>(found.row->bytes().size());
  }
  std::size_t unreadable = 0;
  LateRows::Place place = found.late;
  MainPlace main = found.main;
  const LateRun* const run = view_.load(std::memory_order_relaxed)->late;  // own stores only
  if (run != nullptr && (run->is_full() || run->used() + room > full_capacity())) {
    unreadable = fold(retired, gone);
    place = {};
    main = {};
  }
  LateRun& late = late_run_for(size, retired);
  late.put(place, row.bytes(), more);
  if (!found.late.taken) late.near = main;
  late.growth.items += growth.items;
  late.growth.bytes += growth.bytes;
  writer.items += growth.items;
  writer.bytes += growth.bytes;
  return unreadable;
}

/// Merges the late rows; returns how many of them are lost.
std::size_t Collection::fold(RetireList& retired, std::vector<model::Bytes>* gone) {
  const View* const view = view_.load(std::memory_order_relaxed);  // own stores only
  if (view == nullptr || view->late == nullptr) return 0;
  const LateRun* const run = view->late;
  const LateRows& rows = run->rows();
  std::array<Change, LateRows::kMax> changes;
  for (std::uint32_t i = 0; i < rows.size(); ++i) changes[i].row = rows.row(i).bytes();
  writer.items -= run->growth.items;
  writer.bytes -= run->growth.bytes;
  const SizeDelta delta = merge_rows({changes.data(), rows.size()}, retired, gone);
  retire(run, retired);
  return delta.unreadable;
}

std::vector<Block*> Collection::merge_block(const Block* block, std::span<const Change> changes, bool open,
                                            SizeDelta& delta) const {
  const std::uint32_t count = block != nullptr ? block->writer_count() : 0;
  std::size_t total = block != nullptr ? block->used() : 0;
  for (const Change& change : changes) total += change.remove ? 0 : Block::room_for(change.row.size());
  BlockWriter out(total, full_capacity(), open ? open_capacity(std::min(total, full_capacity())) : 0, cut);

  std::uint32_t at = 0;
  for (const Change& change : changes) {
    const model::RowView row(change.row);
    std::uint32_t to = at;
    // Changes are dense where they are many, so the place is mostly near: gallop, then search the last stretch.
    for (std::uint32_t step = 1; to < count && block->row(to).sort_key() < row.sort_key(); step *= 2) {
      std::uint32_t end = std::min(count, to + step);
      if (end < count && block->row(end).sort_key() < row.sort_key()) {
        to = end;
        continue;
      }
      std::uint32_t begin = to + 1;
      while (begin < end) {
        const std::uint32_t middle = begin + (end - begin) / 2;
        if (block->row(middle).sort_key() < row.sort_key()) {
          begin = middle + 1;
        } else {
          end = middle;
        }
      }
      to = end;
      break;
    }
    if (block != nullptr) out.add(*block, at, to);
    at = to;
    if (at < count && block->row(at).sort_key() == row.sort_key()) {
      delta.items -= items_of(block->row(at));
      delta.bytes -= static_cast<std::int64_t>(block->row_bytes(at).size());
      ++at;
    }
    if (!change.remove) {
      out.add(change.row);
      delta.items += items_of(row);
      delta.bytes += static_cast<std::int64_t>(change.row.size());
    }
  }
  if (block != nullptr) out.add(*block, at, count);
  return out.take();
}

void Collection::note_gone(std::string_view first_key, std::uint32_t born, std::vector<model::Bytes>* gone) const {
  if (gone != nullptr && born != cut) gone->emplace_back(first_key);
}

/// What a merge changes beside the rows.
struct Collection::Merge {
  SizeDelta delta;
  RetireList& retired;
  std::vector<model::Bytes>* gone;
};

/// The children that take the place of the node's, with the changes merged in.
Pieces Collection::merge_node(const Node& node, std::span<const Change> changes, Merge& merge) const {
  Pieces pieces;
  for (std::size_t i = 0; i < node.count; ++i) {
    std::size_t mine = changes.size();
    if (i + 1u < node.count) {
      const auto end = std::partition_point(changes.begin(), changes.end(), [&](const Change& change) {
        return model::RowView(change.row).sort_key() < node.first_key[i + 1];
      });
      mine = static_cast<std::size_t>(end - changes.begin());
    }
    const std::span<const Change> part = changes.first(mine);
    changes = changes.subspan(mine);
    if (part.empty()) {
      pieces.push_back(piece_at(node, i));
    } else if (node.level > 0) {
      const Pieces below = nodes_over(merge_node(*node.node(i), part, merge), node.node(i)->level);
      pieces.insert(pieces.end(), below.begin(), below.end());
    } else if (node.is_cold(i)) {
      const ColdBlock* const old = node.cold_block(i);
      const auto rows = old->decode_patiently();
      if (!rows.ok()) {
        pieces.push_back(piece_at(node, i));
        merge.delta.unreadable += part.size();
        continue;
      }
      for (const Block* block : merge_block(rows->get(), part, false, merge.delta)) pieces.push_back(piece_of(block));
      note_gone(old->first_key(), old->born(), merge.gone);
      retire(old, merge.retired);
    } else {
      const Block* const old = node.block(i);
      for (const Block* block : merge_block(old, part, false, merge.delta)) pieces.push_back(piece_of(block));
      note_gone(old->row(0).sort_key(), old->born(), merge.gone);
      retire(old, merge.retired);
    }
  }
  retire(&node, merge.retired);
  return pieces;
}

SizeDelta Collection::merge(std::span<const Change> changes, RetireList& retired, std::vector<model::Bytes>* gone) {
  const std::size_t unreadable = fold(retired, gone);
  SizeDelta delta = merge_rows(changes, retired, gone);
  delta.unreadable += unreadable;
  return delta;
}

/// Merges into history and tail, and leaves the late run out: what is in it is in `changes`.
SizeDelta Collection::merge_rows(std::span<const Change> changes, RetireList& retired,
                                 std::vector<model::Bytes>* gone) {
  Merge merge{{}, retired, gone};
  const View* old = view_.load(std::memory_order_relaxed);  // own stores only
  View next = old != nullptr ? View{old->history, old->tail, nullptr} : View{};
  std::size_t in_history = 0;
  if (next.history != nullptr) {
    const bool tail_empty = next.tail->writer_count() == 0;
    const std::string_view bound = tail_empty ? last_key() : next.tail->row(0).sort_key();
    const auto end = std::partition_point(changes.begin(), changes.end(), [&](const Change& change) {
      const std::string_view key = model::RowView(change.row).sort_key();
      return tail_empty ? key <= bound : key < bound;
    });
    in_history = static_cast<std::size_t>(end - changes.begin());
  }
  if (in_history > 0) {
    const std::uint8_t level = next.history->level;
    next.history = root_over(nodes_over(merge_node(*next.history, changes.first(in_history), merge), level), level);
  }
  if (in_history < changes.size()) {
    std::vector<Block*> blocks = merge_block(next.tail, changes.subspan(in_history), true, merge.delta);
    if (next.tail != nullptr) retire(next.tail, retired);
    next.tail = blocks.empty() ? Block::make(open_capacity(0), cut) : blocks.back();
    for (std::size_t i = 0; i + 1 < blocks.size(); ++i) {
      next.history = appended_to_history(next.history, blocks[i], retired);
    }
  }
  publish(next, retired);
  writer.items += merge.delta.items;
  writer.bytes += merge.delta.bytes;
  return merge.delta;
}

bool Collection::may_hold(std::string_view begin, std::string_view end) const {
  const View* const view = this->view();
  if (view == nullptr) return false;
  if (view->late != nullptr && view->late->may_hold(begin, end, view->late->count())) return true;
  const std::uint32_t tail_count = view->tail->count();
  const std::uint32_t in_tail = view->tail->lower_bound(begin, tail_count);
  if (in_tail < tail_count && view->tail->row(in_tail).sort_key() < end) return true;
  for (const Node* node = view->history; node != nullptr;) {
    const auto keys = node->first_key.begin();
    const auto above = std::upper_bound(keys + 1, keys + node->count, begin);
    if (above != keys + node->count && *above < end) return true;
    const auto i = static_cast<std::size_t>(above - keys) - 1;
    if (node->level > 0) {
      node = node->node(i);
      continue;
    }
    if (node->is_cold(i)) return node->first_key[i] < end && node->cold_block(i)->last_key() >= begin;
    const Block& block = *node->block(i);
    const std::uint32_t count = block.count();
    const std::uint32_t at = block.lower_bound(begin, count);
    return at < count && block.row(at).sort_key() < end;
  }
  return false;
}

/// A trim under way.
struct Collection::Trimming {
  const Trim& trim;
  const UseRow& use;
  std::size_t rows_left;
  RetireList& retired;
  std::vector<model::Bytes>* gone;
  Trimmed result;
  bool stopped = false;  ///< Whatever comes now stays.
};

/// The blocks that take the block's place; nothing: it stays as it is.
std::optional<std::vector<Block*>> Collection::trim_block(const Block& block, bool open, Trimming& trimming) const {
  const std::uint32_t count = block.writer_count();
  const std::uint32_t begin = block.lower_bound(trimming.trim.begin, count);
  std::uint32_t end = block.lower_bound(trimming.trim.end, count);
  if (trimming.use && end - begin > trimming.rows_left) {
    end = begin + static_cast<std::uint32_t>(trimming.rows_left);
    trimming.stopped = trimming.result.more = true;
  }
  if (begin == end) return std::nullopt;
  std::size_t left = block.used();
  for (std::uint32_t i = begin; i < end; ++i) {
    const model::RowView row = block.row(i);
    if (trimming.use && !row.tombstone()) trimming.use(row);
    trimming.result.delta.items -= items_of(row);
    trimming.result.delta.bytes -= static_cast<std::int64_t>(row.bytes().size());
    left -= Block::room_for(row.bytes().size());
  }
  if (trimming.use) trimming.rows_left -= end - begin;
  BlockWriter out(left, full_capacity(), open ? open_capacity(std::min(left, full_capacity())) : 0, cut);
  out.add(block, 0, begin);
  out.add(block, end, count);
  return out.take();
}

/// Appends to `pieces` what takes the place of a cold block that has keys on both sides of `begin` or behind it. False:
/// it stays as it is.
bool Collection::trim_cold(const ColdBlock& block, Trimming& trimming, Pieces& pieces) const {
  const Trim& trim = trimming.trim;
  const bool reaches_beyond = block.last_key() >= trim.end;
  if (block.last_key() < trim.begin || (reaches_beyond && block.first_key() >= trim.overdue)) return false;
  if (!trimming.use && !reaches_beyond && block.first_key() >= trim.begin) {
    trimming.result.delta.items -= std::int64_t{block.rows()} - block.tombstones();
    trimming.result.delta.bytes -= static_cast<std::int64_t>(block.row_bytes());
    return true;
  }
  const auto rows = block.decode_patiently();
  if (!rows.ok()) {
    ++trimming.result.delta.unreadable;
    trimming.stopped = true;
    return false;
  }
  if (reaches_beyond) {
    const std::uint32_t count = (*rows)->writer_count();
    const std::uint32_t first = (*rows)->lower_bound(trim.begin, count);
    if (first == count || (*rows)->row(first).sort_key() >= trim.overdue) return false;
  }
  const auto blocks = trim_block(**rows, false, trimming);
  if (!blocks) return false;
  for (const Block* each : *blocks) pieces.push_back(piece_of(each));
  return true;
}

/// The children that take the place of the node's.
Pieces Collection::trim_node(const Node& node, Trimming& trimming) const {
  Pieces pieces;
  for (std::size_t i = 0; i < node.count; ++i) {
    const bool lies_apart =
        node.first_key[i] >= trimming.trim.end || (i + 1u < node.count && node.first_key[i + 1] <= trimming.trim.begin);
    if (lies_apart || trimming.stopped) {
      pieces.push_back(piece_at(node, i));
    } else if (node.level > 0) {
      const Pieces below = nodes_over(trim_node(*node.node(i), trimming), node.node(i)->level);
      pieces.insert(pieces.end(), below.begin(), below.end());
    } else if (node.is_cold(i)) {
      const ColdBlock* const old = node.cold_block(i);
      if (!trim_cold(*old, trimming, pieces)) {
        pieces.push_back(piece_at(node, i));
        continue;
      }
      note_gone(old->first_key(), old->born(), trimming.gone);
      retire(old, trimming.retired);
    } else {
      const Block* const old = node.block(i);
      const auto blocks = trim_block(*old, false, trimming);
      if (!blocks) {
        pieces.push_back(piece_at(node, i));
        continue;
      }
      for (const Block* each : *blocks) pieces.push_back(piece_of(each));
      note_gone(old->row(0).sort_key(), old->born(), trimming.gone);
      retire(old, trimming.retired);
    }
  }
  retire(&node, trimming.retired);
  return pieces;
}

Collection::Trimmed Collection::trim(const Trim& trim, const UseRow& use, std::size_t rows_max, RetireList& retired,
                                     std::vector<model::Bytes>* gone) {
  Trimming trimming{trim, use, rows_max, retired, gone, {}, false};
  trimming.result.delta.unreadable = fold(retired, gone);
  const View* old = view_.load(std::memory_order_relaxed);  // own stores only
  if (old == nullptr) return {};
  View next = *old;
  if (next.history != nullptr) {
    const std::uint8_t level = next.history->level;
    next.history = root_over(nodes_over(trim_node(*next.history, trimming), level), level);
  }
  if (!trimming.stopped) {
    if (const auto blocks = trim_block(*next.tail, true, trimming)) {
      retire(next.tail, retired);
      next.tail = blocks->empty() ? Block::make(open_capacity(0), cut) : blocks->back();
      for (std::size_t i = 0; i + 1 < blocks->size(); ++i) {
        next.history = appended_to_history(next.history, (*blocks)[i], retired);
      }
    }
  }
  publish(next, retired);
  writer.items += trimming.result.delta.items;
  writer.bytes += trimming.result.delta.bytes;
  return trimming.result;
}

/// Whether the seal's blocks stand in the history as they did.
bool Collection::holds(const Seal& seal) const {
  const View* view = view_.load(std::memory_order_relaxed);  // own stores only
  const Node* node = view->history;
  if (node == nullptr) return false;
  std::array<std::pair<const Node*, std::size_t>, kTreeDepthMax> path;
  std::size_t depth = 0;
  for (;; node = node->node(path[depth - 1].second)) {
    path[depth++] = {node, child_of(*node, seal.cold->first_key())};
    if (node->level == 0) break;
  }
  for (const Block* block : seal.blocks) {
    if (depth == 0) return false;
    const auto [leaf, i] = path[depth - 1];
    if (leaf->is_cold(i) || leaf->block(i) != block || leaf->block(i)->born() > seal.born_max) return false;
    // On to the next block.
    while (depth > 0 && ++path[depth - 1].second == path[depth - 1].first->count) --depth;
    while (depth > 0 && path[depth - 1].first->level > 0) {
      path[depth] = {path[depth - 1].first->node(path[depth - 1].second), 0};
      ++depth;
    }
  }
  return true;
}

/// The seals that are left to put in place, in order.
struct Collection::Sealing {
  std::span<Seal> left;
  std::size_t taken = 0;  ///< Of the first one's blocks.
  RetireList& retired;
};

/// The children that take the place of the node's. Requires: what is sealed stands there.
Pieces Collection::seal_node(const Node& node, Sealing& sealing) const {
  Pieces pieces;
  Pieces below;  // of the neighbours that change
  const auto take_below = [&] {
    const Pieces nodes = nodes_over(below, static_cast<std::uint8_t>(node.level - 1));
    pieces.insert(pieces.end(), nodes.begin(), nodes.end());
    below.clear();
  };
  for (std::size_t i = 0; i < node.count; ++i) {
    const bool last = i + 1u == node.count;
    if (node.level > 0) {
      const bool changes = !sealing.left.empty() && (sealing.taken > 0 || last ||
                                                     sealing.left.front().cold->first_key() < node.first_key[i + 1]);
      if (changes) {
        const Pieces more = seal_node(*node.node(i), sealing);
        below.insert(below.end(), more.begin(), more.end());
      } else {
        take_below();
        pieces.push_back(piece_at(node, i));
      }
      continue;
    }
    if (sealing.left.empty() || node.is_cold(i) || node.block(i) != sealing.left.front().blocks[sealing.taken]) {
      pieces.push_back(piece_at(node, i));
      continue;
    }
    Seal& seal = sealing.left.front();
    const Block* const block = node.block(i);
    retire(block, sealing.retired);
    if (sealing.taken++ == 0) pieces.push_back(piece_of(seal.cold.release()));
    if (sealing.taken == seal.blocks.size()) {
      sealing.left = sealing.left.subspan(1);
      sealing.taken = 0;
    }
  }
  if (node.level > 0) take_below();
  retire(&node, sealing.retired);
  return pieces;
}

std::size_t Collection::seal(std::span<Seal> seals, RetireList& retired) {
  const auto end = std::stable_partition(seals.begin(), seals.end(), [this](const Seal& seal) { return holds(seal); });
  const auto failed = static_cast<std::size_t>(seals.end() - end);
  Sealing sealing{{seals.begin(), end}, 0, retired};
  if (sealing.left.empty()) return failed;
  View next = *view_.load(std::memory_order_relaxed);  // own stores only
  const std::uint8_t level = next.history->level;
  next.history = root_over(nodes_over(seal_node(*next.history, sealing), level), level);
  publish(next, retired);
  return failed;
}

void Collection::restore(const Pieces& history, Block* tail, const RestoredLate& late, RetireList& retired) {
  const auto count = [this](const Block& block) {
    for (std::uint32_t i = 0; i < block.writer_count(); ++i) {
      writer.items += items_of(block.row(i));
      writer.bytes += static_cast<std::int64_t>(block.row_bytes(i).size());
    }
  };
  for (const Piece& piece : history) {
    if (piece.cold) {
      const auto& cold = *static_cast<const ColdBlock*>(piece.child);
      writer.items += cold.rows() - std::int64_t{cold.tombstones()};
      writer.bytes += static_cast<std::int64_t>(cold.row_bytes());
    } else {
      count(*static_cast<const Block*>(piece.child));
    }
  }
  count(*tail);
  const Node* const root = history.empty() ? nullptr : root_over(nodes_over(history, 0), 0);
  publish({root, tail, nullptr}, retired);
  if (late.rows == nullptr) return;
  writer.items += late.growth.items;
  writer.bytes += late.growth.bytes;
  auto run = std::make_unique<LateRun>(static_cast<std::uint32_t>(late.rows->used()));
  run->growth = late.growth;
  for (std::uint32_t i = 0; i < late.rows->writer_count(); ++i) {
    const model::RowView row = late.rows->row(i);
    if (!is_append(row.sort_key())) {
      run->put({static_cast<std::uint8_t>(run->rows().size()), false}, row.bytes());
      continue;
    }
    // What was behind it is damaged.
    const auto size = static_cast<std::int32_t>(row.bytes().size());
    writer.items -= items_of(row);
    writer.bytes -= size;
    run->growth.items -= static_cast<std::int32_t>(items_of(row));
    run->growth.bytes -= size;
    append(row, retired);
  }
  if (run->rows().size() > 0) publish_late(run.release(), retired);
}

void MainCursor::enter_tail(std::uint32_t index) {
  in_tail_ = true;
  block_ = view_.tail;
  index_ = index;
  count_ = tail_count_;
}

void MainCursor::enter_block_below(const Node* node, bool last) {
  for (;;) {
    const std::size_t i = last ? node->count - 1u : 0;
    path_[depth_++] = {node, i};
    if (node->level == 0) break;
    node = node->node(i);
  }
  take_block();
  index_ = last && count_ > 0 ? count_ - 1 : 0;
}

void MainCursor::take_block() {
  const auto [node, i] = path_[depth_ - 1];
  in_tail_ = false;
  if (!node->is_cold(i)) {
    block_ = node->block(i);
    count_ = block_->count();
    return;
  }
  auto rows = patient_ ? node->cold_block(i)->decode_patiently() : node->cold_block(i)->decode();
  if (rows.ok()) {
    decoded_ = std::move(rows).value();
    block_ = decoded_.get();
    count_ = block_->count();
  } else {
    status_ = rows.status();
    count_ = 0;
  }
}

void MainCursor::seek_first() {
  depth_ = 0;
  if (view_.history != nullptr) {
    enter_block_below(view_.history, false);
    if (count_ == 0 && !next_block()) seek_end();
  } else {
    enter_tail(0);
  }
}

void MainCursor::seek_end() {
  enter_tail(tail_count_);
}

void MainCursor::seek_lower_bound(std::string_view key) {
  depth_ = 0;
  if (view_.history == nullptr || (tail_count_ > 0 && view_.tail->row(0).sort_key() <= key)) {
    enter_tail(view_.tail != nullptr ? view_.tail->lower_bound(key, tail_count_) : 0);
    return;
  }
  const Node* node = view_.history;
  for (;;) {
    path_[depth_++] = {node, child_of(*node, key)};
    if (node->level == 0) break;
    node = node->node(path_[depth_ - 1].index);
  }
  take_block();
  index_ = count_ > 0 ? block_->lower_bound(key, count_) : 0;
  if (index_ == count_ && !next_block()) seek_end();
}

/// To the first row of the next block that has one.
bool MainCursor::next_block() {
  if (in_tail_) return false;
  while (depth_ > 0) {
    Level& level = path_[depth_ - 1];
    if (++level.index == level.node->count) {
      --depth_;
      continue;
    }
    if (level.node->level > 0) {
      enter_block_below(level.node->node(level.index), false);
    } else {
      take_block();
      index_ = 0;
    }
    if (count_ > 0) return true;
  }
  enter_tail(0);
  return tail_count_ > 0;
}

/// To the last row of the block in front that has one.
bool MainCursor::previous_block() {
  if (in_tail_) {
    if (view_.history == nullptr) return false;
    depth_ = 0;
    enter_block_below(view_.history, true);
    if (count_ > 0) return true;
  }
  for (;;) {
    std::size_t depth = depth_;
    while (depth > 0 && path_[depth - 1].index == 0) --depth;
    if (depth == 0) return false;
    depth_ = depth;
    Level& level = path_[depth_ - 1];
    --level.index;
    if (level.node->level > 0) {
      enter_block_below(level.node->node(level.index), true);
    } else {
      take_block();
      index_ = count_ > 0 ? count_ - 1 : 0;
    }
    if (count_ > 0) return true;
  }
}

bool MainCursor::next() {
  if (index_ + 1 < count_) {
    ++index_;
    return true;
  }
  if (next_block()) return true;
  seek_end();
  return false;
}

bool MainCursor::previous() {
  if (index_ > 0) {
    --index_;
    return true;
  }
  return previous_block();
}

Cursor::Cursor(const CollectionState& state) : main_(state) {
  if (state.late_count > 0) late_ = state.view->late->rows_at(state.late_count);
}

/// Takes the row that comes first in the direction; whether there is one. `late_first`: how a late row's key compares
/// with the other's where it does.
bool Cursor::settle(bool main_there, std::strong_ordering late_first) {
  const bool late_there = late_at_ >= 0 && late_at_ < static_cast<std::int32_t>(late_.size());
  if (!late_there || !main_there) {
    at_ = main_there ? At::kMain : late_there ? At::kLate : At::kNone;
  } else {
    const auto order = late_.row(static_cast<std::uint32_t>(late_at_)).sort_key() <=> main_.row().sort_key();
    at_ = order == 0 ? At::kBoth : order == late_first ? At::kLate : At::kMain;
  }
  return at_ != At::kNone;
}

void Cursor::seek_first() {
  main_.seek_first();
  late_at_ = 0;
  forwards_ = true;
  settle_forwards();
}

void Cursor::seek_end() {
  main_.seek_end();
  late_at_ = static_cast<std::int32_t>(late_.size());
  forwards_ = true;
  settle_forwards();
}

void Cursor::seek_lower_bound(std::string_view key) {
  main_.seek_lower_bound(key);
  late_at_ = late_.find(key).at;
  forwards_ = true;
  settle_forwards();
}

void Cursor::seek_upper_bound(std::string_view key) {
  seek_lower_bound(key);
  if (at_row() && row().sort_key() == key) next();
}

bool Cursor::next() {
  if (forwards_) {
    if (at_ == At::kLate || at_ == At::kBoth) ++late_at_;
    if (at_ == At::kMain || at_ == At::kBoth) main_.next();
  } else {
    ++late_at_;
    if (main_there_) {
      main_.next();
    } else {
      main_.seek_first();
    }
    forwards_ = true;
  }
  return settle_forwards();
}

bool Cursor::previous() {
  if (forwards_) {
    --late_at_;
    main_there_ = main_.previous();
    forwards_ = false;
  } else {
    if (at_ == At::kLate || at_ == At::kBoth) --late_at_;
    if (at_ == At::kMain || at_ == At::kBoth) main_there_ = main_.previous();
  }
  return settle_backwards();
}

}  // namespace drover::store

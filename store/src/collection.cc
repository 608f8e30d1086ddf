#include "collection.h"

#include <algorithm>
#include <bit>

#include "drover/model/check.h"

namespace drover::store {
namespace {

void retire(const Block* block, RetireList& retired) {
  retired.retire(const_cast<Block*>(block), [](void* old) { Block::destroy(static_cast<Block*>(old)); });
}
void retire(const Node* node, RetireList& retired) {
  retired.retire(const_cast<Node*>(node), [](void* old) { delete static_cast<Node*>(old); });
}
void retire(const View* view, RetireList& retired) {
  retired.retire(const_cast<View*>(view), [](void* old) { delete static_cast<View*>(old); });
}

void destroy_tree(const Node* node) {
  for (std::size_t i = 0; i < node->count; ++i) {
    if (node->level == 0) {
      Block::destroy(const_cast<Block*>(node->block(i)));
    } else {
      destroy_tree(node->node(i));
    }
  }
  delete node;
}

Piece piece_of(const Block* block) {
  return {block, block->row(0).sort_key()};
}
Piece piece_of(const Node* node) {
  return {node, node->first_key[0]};
}

/// Nodes of one level over `pieces`, evenly filled.
Pieces nodes_over(const Pieces& pieces, std::uint8_t level, std::uint32_t born) {
  Pieces nodes;
  const std::size_t needed = (pieces.size() + kNodeFanout - 1) / kNodeFanout;
  std::size_t at = 0;
  for (std::size_t n = 0; n < needed; ++n) {
    const std::size_t end = pieces.size() * (n + 1) / needed;
    auto* node = new Node;
    node->level = level;
    node->born = born;
    for (; at < end; ++at, ++node->count) {
      node->child[node->count] = pieces[at].child;
      node->first_key[node->count] = pieces[at].first_key;
    }
    nodes.push_back(piece_of(node));
  }
  return nodes;
}

/// The tree over nodes of `level`; null if there are none.
const Node* root_over(Pieces nodes, std::uint8_t level, std::uint32_t born) {
  while (nodes.size() > 1) nodes = nodes_over(nodes, ++level, born);
  return nodes.empty() ? nullptr : static_cast<const Node*>(nodes[0].child);
}

/// The node with `block` behind everything in it: one piece, or two if it was full. Left siblings stay full.
Pieces appended(const Node* node, const Block* block, RetireList& retired) {
  Pieces last = node->level == 0 ? Pieces{piece_of(block)} : appended(node->node(node->count - 1u), block, retired);
  const std::size_t kept = node->level == 0 ? node->count : node->count - 1u;
  if (kept + last.size() > kNodeFanout) {
    // Full, and its last child stays as it is: only the overflow needs a new node.
    auto* full = new Node(*node);
    full->born = block->born();
    if (node->level != 0) {
      full->child[kept] = last[0].child;
      full->first_key[kept] = last[0].first_key;
    }
    auto* sibling = new Node;
    sibling->level = node->level;
    sibling->born = block->born();
    sibling->count = 1;
    sibling->child[0] = last.back().child;
    sibling->first_key[0] = last.back().first_key;
    retire(node, retired);
    return {piece_of(full), piece_of(sibling)};
  }
  auto* copy = new Node(*node);
  copy->born = block->born();
  copy->count = static_cast<std::uint8_t>(kept);
  for (const Piece& piece : last) {
    copy->child[copy->count] = piece.child;
    copy->first_key[copy->count++] = piece.first_key;
  }
  retire(node, retired);
  return {piece_of(copy)};
}

const Node* appended_to_history(const Node* history, const Block* block, RetireList& retired) {
  if (history == nullptr) return root_over(nodes_over({piece_of(block)}, 0, block->born()), 0, block->born());
  const std::uint8_t level = history->level;
  return root_over(appended(history, block, retired), level, block->born());
}

const Block* last_block(const Node* node) {
  while (node->level > 0) node = node->node(node->count - 1u);
  return node->block(node->count - 1u);
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
  delete view;
}

void Collection::publish(View next, RetireList& retired) {
  const View* old = view_.load(std::memory_order_relaxed);  // own stores only
  tail_ = next.tail;
  view_.store(new View(next), std::memory_order_release);  // pairs with view()
  if (old != nullptr) retire(old, retired);
  last_begin_ = 0;
  last_key_size_ = kNoRow;
  const Block* block = last_block();
  if (block == nullptr) return;
  const model::RowView last = block->row(block->writer_count() - 1);
  remember_last_key(last.sort_key());
  if (block == tail_) remember_last_begin(last.bytes().data());
}

/// The block that holds the last row; null: there is none.
const Block* Collection::last_block() const {
  if (tail_->writer_count() > 0) return tail_;
  const View* view = view_.load(std::memory_order_relaxed);  // own stores only
  return view->history != nullptr ? store::last_block(view->history) : nullptr;
}

std::string_view Collection::long_last_key() const {
  const Block* block = last_block();
  return block->row(block->writer_count() - 1).sort_key();
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
    publish({nullptr, Block::make(open_capacity(room), cut)}, retired);
    return;
  }
  const std::size_t filled = tail_->used();
  if (filled == 0 || filled + room <= full_capacity()) {
    Block* larger = Block::make(open_capacity(filled + room), cut);
    larger->append_rows(*tail_, 0, tail_->writer_count());
    Block* replaced = tail_;
    publish({old->history, larger}, retired);
    retire(replaced, retired);
    return;
  }
  tail_->set_born(cut);
  publish({appended_to_history(old->history, tail_, retired),
           Block::make(open_capacity(std::max<std::size_t>(room, full_capacity() / 4)), cut)},
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

std::optional<model::RowView> Collection::find(std::string_view sort_key) const {
  Cursor cursor(*this);
  cursor.seek_lower_bound(sort_key);
  if (!cursor.at_row() || cursor.row().sort_key() != sort_key) return std::nullopt;
  return cursor.row();
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
      pieces.push_back({node.child[i], node.first_key[i]});
    } else if (node.level == 0) {
      const Block* const old = node.block(i);
      for (const Block* block : merge_block(old, part, false, merge.delta)) pieces.push_back(piece_of(block));
      if (merge.gone != nullptr && old->born() != cut) merge.gone->emplace_back(old->row(0).sort_key());
      retire(old, merge.retired);
    } else {
      const Pieces below = nodes_over(merge_node(*node.node(i), part, merge), node.node(i)->level, cut);
      pieces.insert(pieces.end(), below.begin(), below.end());
    }
  }
  retire(&node, merge.retired);
  return pieces;
}

SizeDelta Collection::merge(std::span<const Change> changes, RetireList& retired, std::vector<model::Bytes>* gone) {
  Merge merge{{}, retired, gone};
  const View* old = view_.load(std::memory_order_relaxed);  // own stores only
  View next = old != nullptr ? *old : View{};
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
    next.history =
        root_over(nodes_over(merge_node(*next.history, changes.first(in_history), merge), level, cut), level, cut);
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

void Collection::restore(std::span<Block* const> history, Block* tail, RetireList& retired) {
  Pieces pieces;
  pieces.reserve(history.size());
  const auto count = [this](const Block& block) {
    for (std::uint32_t i = 0; i < block.writer_count(); ++i) {
      writer.items += items_of(block.row(i));
      writer.bytes += static_cast<std::int64_t>(block.row_bytes(i).size());
    }
  };
  for (const Block* block : history) {
    pieces.push_back(piece_of(block));
    count(*block);
  }
  count(*tail);
  const Node* const root = pieces.empty() ? nullptr : root_over(nodes_over(pieces, 0, 0), 0, 0);
  publish({root, tail}, retired);
}

Cursor::Cursor(const Collection& collection) {
  if (const View* view = collection.view(); view != nullptr) {
    view_ = *view;
    tail_count_ = view_.tail->count();
  }
}

void Cursor::enter_tail(std::uint32_t index) {
  in_tail_ = true;
  block_ = view_.tail;
  index_ = index;
  count_ = tail_count_;
}

void Cursor::enter_block_below(const Node* node, bool last) {
  for (;;) {
    const std::size_t i = last ? node->count - 1u : 0;
    path_[depth_++] = {node, i};
    if (node->level == 0) break;
    node = node->node(i);
  }
  block_ = path_[depth_ - 1].node->block(path_[depth_ - 1].index);
  count_ = block_->count();
  index_ = last ? count_ - 1 : 0;
  in_tail_ = false;
}

void Cursor::seek_first() {
  depth_ = 0;
  if (view_.history != nullptr) {
    enter_block_below(view_.history, false);
  } else {
    enter_tail(0);
  }
}

void Cursor::seek_end() {
  enter_tail(tail_count_);
}

void Cursor::seek_lower_bound(std::string_view key) {
  depth_ = 0;
  if (view_.history == nullptr || (tail_count_ > 0 && view_.tail->row(0).sort_key() <= key)) {
    enter_tail(view_.tail != nullptr ? view_.tail->lower_bound(key, tail_count_) : 0);
    return;
  }
  const Node* node = view_.history;
  for (;;) {
    const auto begin = node->first_key.begin();
    const auto above = std::upper_bound(begin + 1, begin + node->count, key);
    const auto i = static_cast<std::size_t>(above - begin) - 1;
    path_[depth_++] = {node, i};
    if (node->level == 0) break;
    node = node->node(i);
  }
  block_ = path_[depth_ - 1].node->block(path_[depth_ - 1].index);
  count_ = block_->count();
  index_ = block_->lower_bound(key, count_);
  in_tail_ = false;
  if (index_ == count_ && !next_block()) seek_end();
}

void Cursor::seek_upper_bound(std::string_view key) {
  seek_lower_bound(key);
  if (at_row() && row().sort_key() == key) next();
}

bool Cursor::next_block() {
  if (in_tail_) return false;
  while (depth_ > 0) {
    Level& level = path_[depth_ - 1];
    if (level.index + 1u < level.node->count) {
      ++level.index;
      if (level.node->level == 0) {
        block_ = level.node->block(level.index);
        count_ = block_->count();
        index_ = 0;
      } else {
        enter_block_below(level.node->node(level.index), false);
      }
      return true;
    }
    --depth_;
  }
  enter_tail(0);
  return tail_count_ > 0;
}

bool Cursor::previous_block() {
  if (in_tail_) {
    if (view_.history == nullptr) return false;
    depth_ = 0;
    enter_block_below(view_.history, true);
    return true;
  }
  std::size_t depth = depth_;
  while (depth > 0 && path_[depth - 1].index == 0) --depth;
  if (depth == 0) return false;
  depth_ = depth;
  Level& level = path_[depth_ - 1];
  --level.index;
  if (level.node->level == 0) {
    block_ = level.node->block(level.index);
    count_ = block_->count();
    index_ = count_ - 1;
  } else {
    enter_block_below(level.node->node(level.index), true);
  }
  return true;
}

bool Cursor::next() {
  if (index_ + 1 < count_) {
    ++index_;
    return true;
  }
  if (next_block()) return true;
  seek_end();
  return false;
}

bool Cursor::previous() {
  if (index_ > 0) {
    --index_;
    return true;
  }
  return previous_block();
}

}  // namespace drover::store

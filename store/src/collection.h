#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "block.h"
#include "cold_block.h"
#include "drover/model/key.h"
#include "drover/model/row.h"
#include "epoch.h"
#include "late_run.h"
#include "touch.h"

namespace drover::store {

// A collection is one pointer to an immutable view
//
// Layout.  A view is (history, tail, late run). The tail is the last block and takes appends (block.h). The history is
//          a persistent B+-tree of the blocks in front of it: nodes and blocks never change once published. Blocks that
//          have not changed for a while stand there encoded (cold_block.h), several as one. The late run (late_run.h)
//          has a few rows that belong among those, or in the place of one, and that hide it; none is above the last
//          key.
// Writer.  An append goes into the tail and publishes its count. A full tail becomes the history's last block. A row
//          that belongs further back (late, or an overwrite) goes into the late run and publishes its count. A full run
//          is folded: all of its rows are merged. A merge builds anew the blocks that it touches and the path above
//          them, all else is shared, and a new view is published with one release store; what was replaced is retired
//          (epoch.h). Where the place is in a cold block the row is merged at once: the next one finds plain blocks.
// Reader.  (R1) loads the view, (R2) the late run's count, (R3) the tail's, and (R4) once more R1 and R2, which it
//          repeats until nothing has changed: from then on it sees one state, whatever is written.
// Why it is one.  All are acquire loads of what one writer stores in its order. If R4 sees what R1 and R2 saw, nothing
//          but appends came in between, so R3's count was there together with R2's at some moment.
// Costs.   An append, or a late row: one copy of the row. A merge of k rows: a copy of the touched blocks, once for all
//          k.

/// A block's allocation, header included, in bytes: small collections begin with the first size and double up to the
/// full one. Tests shrink both.
///
/// Seven times a power of two: blocks of 2^n bytes would all begin at the same place of a page, and a fleet that moves
/// in step would keep appending to the same few cache sets (measured: 1.3 times the CPU of an append).
struct CollectionTuning {
  std::uint16_t block_size_bytes = 7 * 1024;
  std::uint16_t first_block_size_bytes = 7 * 32;
};

inline constexpr std::size_t kNodeFanout = 32;
inline constexpr std::size_t kTreeDepthMax = 12;

/// An inner node of the history. Level 0 holds blocks, level n nodes of level n - 1.
struct Node {
  std::uint8_t level = 0;
  std::uint8_t count = 0;
  std::uint32_t cold = 0;  ///< Which children are cold blocks, a bit each.
  std::array<const void*, kNodeFanout> child{};
  std::array<std::string_view, kNodeFanout> first_key{};  ///< Points into the child's first block.

  bool is_cold(std::size_t i) const { return (cold >> i & 1) != 0; }
  const Block* block(std::size_t i) const { return static_cast<const Block*>(child[i]); }
  const ColdBlock* cold_block(std::size_t i) const { return static_cast<const ColdBlock*>(child[i]); }
  const Node* node(std::size_t i) const { return static_cast<const Node*>(child[i]); }
};

/// A child on its way into a node.
struct Piece {
  const void* child = nullptr;
  std::string_view first_key;
  bool cold = false;
};
using Pieces = std::vector<Piece>;

struct View {
  const Node* history = nullptr;
  Block* tail = nullptr;    ///< Never null once published; may be empty after removals.
  LateRun* late = nullptr;  ///< Null: there are no late rows.
};

/// A collection as it was at some moment. Null view: it had no row.
struct CollectionState {
  const View* view = nullptr;
  std::uint32_t tail_count = 0;
  std::uint32_t late_count = 0;
};

/// One row to merge: put (over an equal key, if there is one) or remove.
struct Change {
  std::string_view row;
  bool remove = false;
};

/// What a change of a collection did to its size. Tombstones count as bytes, not as items.
struct SizeDelta {
  std::int64_t items = 0;
  std::int64_t bytes = 0;
  std::size_t unreadable = 0;  ///< Changes left out, since a block that they touch can't be read.
};

/// Rows of old times that are to go: those of sort keys in [begin, end).
struct Trim {
  model::Bytes begin;
  model::Bytes end;
  /// A cold block that reaches beyond `end` stays whole, unless it has a row below this: decoding and building it anew
  /// for a few rows each time would cost more than they take.
  model::Bytes overdue;
};

/// A late run on its way back from the disk.
struct RestoredLate {
  std::shared_ptr<const Block> rows;  ///< In order, LateRows::kMax at most; null: none.
  LateRun::Growth growth;
};

/// Blocks of one history, neighbours in order, and the cold one that is to stand in their place.
struct Seal {
  std::vector<const Block*> blocks;  ///< Maybe gone meanwhile: known again by where they lie and when they were born.
  std::uint32_t born_max = 0;        ///< None of them is younger; whatever takes their place is.
  std::unique_ptr<ColdBlock> cold;
};

/// A row, or where it would be.
struct FoundRow {
  std::optional<model::RowView> row;
  std::shared_ptr<const Block> decoded;  ///< Of the cold block where it is or would be; null: it is not in one.
  LateRows::Place late;                  ///< Among the late rows.
  MainPlace main;                        ///< Among the others, where it was looked for there.
  model::Status status;                  ///< Not kOk: the block where it would be can't be read.
};

/// All items of one partition key, in sort-key order.
///
/// Threads: all that changes it, and find(), by the shard's writer only; Cursor from any thread inside an
/// EpochDomain::Guard.
class alignas(64) Collection {
 public:
  Collection(model::KeyHash hash, std::string_view partition_key, const CollectionTuning& tuning)
      : hash_(hash), tuning_(tuning), partition_key_(partition_key) {}
  ~Collection();
  Collection(const Collection&) = delete;
  Collection& operator=(const Collection&) = delete;

  model::KeyHash hash() const { return hash_; }
  std::string_view partition_key() const { return partition_key_; }

  /// The present state. Threads: as Cursor.
  CollectionState state() const;

  /// Null while the collection has never had a row.
  const View* view() const { return view_.load(std::memory_order_acquire); }  // pairs with publish()

  /// Whether rows of [begin, end) may stand here; decodes nothing to know. Threads: as Cursor.
  bool may_hold(std::string_view begin, std::string_view end) const;

  // Writer only from here on.

  /// Whether a row of this sort key would be the last one.
  bool is_append(std::string_view sort_key) const {
    return last_key_size_ == kNoRow || last_key().compare(sort_key) < 0;
  }

  /// Appends a row, with `more` attributes behind its own. Requires: is_append(its sort key).
  void append(const model::RowView& row, RetireList& retired, std::string_view more = {});

  /// The row of this sort key, tombstones too. Valid until the next change. May wait for the disk, where the row is
  /// older than what is in memory.
  FoundRow find(std::string_view sort_key) const;

  /// Puts a row that is no append, with `more` attributes behind its own. Requires: `found` is what find() says of its
  /// key. `gone` as in merge(). Returns how many rows are lost, since a block that they touch can't be read any more.
  std::size_t put_late(const model::RowView& row, std::string_view more, const FoundRow& found, RetireList& retired,
                       std::vector<model::Bytes>* gone = nullptr);

  /// Puts and removes rows. Requires: sort keys strictly ascending. First keys of blocks that leave the history, and
  /// stood in it at the last cut, are appended to `gone`.
  SizeDelta merge(std::span<const Change> changes, RetireList& retired, std::vector<model::Bytes>* gone = nullptr);

  /// Removes what `trim` says, the oldest first. `use` gets every row that goes but tombstones, `rows_max` rows at most
  /// in one call; without it cold blocks go unread, and all rows at once. `gone` as in merge(). What can't be read
  /// stays, and what is behind it.
  struct Trimmed {
    SizeDelta delta;
    bool more = false;  ///< `rows_max` was not enough.
  };
  using UseRow = std::function<void(const model::RowView&)>;
  Trimmed trim(const Trim& trim, const UseRow& use, std::size_t rows_max, RetireList& retired,
               std::vector<model::Bytes>* gone = nullptr);

  /// Puts cold blocks in the place of others, where these still stand as they were; the others' seals stay at the end
  /// of `seals`: how many. Requires: in order.
  std::size_t seal(std::span<Seal> seals, RetireList& retired);

  /// Takes what a checkpoint held. Requires: nothing was put yet; pieces of blocks in order, none empty.
  void restore(const Pieces& history, Block* tail, const RestoredLate& late, RetireList& retired);

  // Bring near what an append touches, one dependent step a call.
  void touch_collection() const {
    touch(this);
    touch(&writer);
  }
  void touch_tail() const {
    if (tail_ == nullptr) return;
    const char* const tail = reinterpret_cast<const char*>(tail_);
    touch(tail);
    touch(tail + last_begin_);
    touch(tail + (last_begin_ > 64 ? last_begin_ - 64 : 0));
  }

  /// Kept by the shard's writer beside the rows.
  struct WriterState {
    std::int64_t items = 0;
    std::int64_t bytes = 0;
    const std::string* stamp = nullptr;  ///< Encoded attributes that the other items inherit; null: none.
  };
  struct SizeClasses {
    std::uint8_t items = 0;
    std::uint8_t bytes = 0;
  };

 private:
  std::string_view last_key() const {
    return last_key_size_ != kLongLastKey ? std::string_view(last_key_.data(), last_key_size_) : long_last_key();
  }
  std::string_view long_last_key() const;
  bool holds(const Seal& seal) const;
  struct Sealing;
  Pieces seal_node(const Node& node, Sealing& sealing) const;
  void remember_last_begin(const char* row) {
    last_begin_ = static_cast<std::uint16_t>(row - reinterpret_cast<const char*>(tail_));
  }
  void remember_last_key(std::string_view key) {
    last_key_size_ = key.size() <= last_key_.size() ? static_cast<std::uint16_t>(key.size()) : kLongLastKey;
    if (last_key_size_ != kLongLastKey) key.copy(last_key_.data(), key.size());
  }
  void publish(View next, RetireList& retired);
  void publish_late(LateRun* late, RetireList& retired);
  LateRun& late_run_for(std::size_t row_size, RetireList& retired);
  std::size_t fold(RetireList& retired, std::vector<model::Bytes>* gone);
  SizeDelta merge_rows(std::span<const Change> changes, RetireList& retired, std::vector<model::Bytes>* gone);
  std::size_t full_capacity() const { return tuning_.block_size_bytes - sizeof(Block); }
  std::uint32_t open_capacity(std::size_t needed) const;
  void make_room(std::size_t row_size, RetireList& retired);

  std::vector<Block*> merge_block(const Block* block, std::span<const Change> changes, bool open,
                                  SizeDelta& delta) const;
  void note_gone(std::string_view first_key, std::uint32_t born, std::vector<model::Bytes>* gone) const;
  struct Trimming;
  std::optional<std::vector<Block*>> trim_block(const Block& block, bool open, Trimming& trimming) const;
  bool trim_cold(const ColdBlock& block, Trimming& trimming, Pieces& pieces) const;
  Pieces trim_node(const Node& node, Trimming& trimming) const;
  struct Merge;
  Pieces merge_node(const Node& node, std::span<const Change> changes, Merge& merge) const;

  static constexpr std::uint16_t kLastKeySizeBytesMax = 30;
  static constexpr std::uint16_t kLongLastKey = 0xfffe;
  static constexpr std::uint16_t kNoRow = 0xffff;

  // What a look-up and an append need: two cache lines, and no row.
  const model::KeyHash hash_;
  std::atomic<const View*> view_{nullptr};
  Block* tail_ = nullptr;  ///< Writer only, as everything that changes from here on.
  const CollectionTuning tuning_;

 public:
  std::uint32_t group = 0;  ///< Scratch of a merge of many collections.

 private:
  const std::string partition_key_;

 public:
  WriterState writer;
  std::uint32_t cut = 0;  ///< The interval between two cuts in which it was changed last (changes.h).
  SizeClasses size_classes;

 private:
  std::uint16_t last_begin_ = 0;  ///< Where in the tail its last row begins, 0 in an empty one; for touch_tail().
  std::uint16_t last_key_size_ = kNoRow;  ///< Or kLongLastKey: to be looked up in the last row.
  std::array<char, kLastKeySizeBytesMax> last_key_{};
};
static_assert(sizeof(Collection) == 128);

/// Walks history and tail of one state of a collection in either direction.
class MainCursor {
 public:
  explicit MainCursor(const CollectionState& state)
      : view_(state.view != nullptr ? *state.view : View{}), tail_count_(state.tail_count) {}

  // As Cursor's.
  void be_patient() { patient_ = true; }
  void seek_first();
  void seek_end();
  void seek_lower_bound(std::string_view key);
  bool next();
  bool previous();  ///< False: there is none, and it stays.
  bool at_row() const { return block_ != nullptr && index_ < count_; }
  model::RowView row() const { return block_->row(index_); }
  const std::shared_ptr<const Block>& decoded() const { return decoded_; }
  const model::Status& status() const { return status_; }

 private:
  struct Level {
    const Node* node;
    std::size_t index;
  };
  void enter_tail(std::uint32_t index);
  void enter_block_below(const Node* node, bool last);
  /// Takes the block at the end of path_; of one that can't be read, none.
  void take_block();
  bool next_block();
  bool previous_block();

  View view_;
  std::uint32_t tail_count_ = 0;
  const Block* block_ = nullptr;
  std::shared_ptr<const Block> decoded_;  ///< Of a cold block.
  model::Status status_;
  std::uint32_t index_ = 0;
  std::uint32_t count_ = 0;
  std::array<Level, kTreeDepthMax> path_{};
  std::size_t depth_ = 0;
  bool in_tail_ = true;
  bool patient_ = false;
};

/// Walks one state of a collection in either direction.
///
/// Threads: any, inside an EpochDomain::Guard that outlives it.
class Cursor {
 public:
  /// The state of the collection now. (A writer may use it without a guard between its own changes.)
  explicit Cursor(const Collection& collection) : Cursor(collection.state()) {}
  explicit Cursor(const CollectionState& state);

  /// A writer's: waits where the disk can't be read.
  void be_patient() { main_.be_patient(); }
  void seek_first();
  void seek_end();                              ///< Behind the last row.
  void seek_lower_bound(std::string_view key);  ///< At the first row not below `key`, else behind the last.
  void seek_upper_bound(std::string_view key);  ///< At the first row above `key`, else behind the last.
  bool next();                                  ///< To the row behind; whether there is one.
  bool previous();                              ///< To the row in front; whether there is one.
  bool at_row() const { return at_ != At::kNone; }
  /// Valid until the cursor moves.
  model::RowView row() const {
    return at_ == At::kMain ? main_.row() : late_.row(static_cast<std::uint32_t>(late_at_));
  }
  /// What the row may lie in, if that is not the collection itself.
  const std::shared_ptr<const Block>& decoded() const { return main_.decoded(); }
  /// Not kOk: a block on the way could not be read, and was passed over.
  const model::Status& status() const { return main_.status(); }

 private:
  // Where both are: forwards, at their first rows that have not been passed; backwards, at their last ones.
  enum class At : std::uint8_t { kNone, kMain, kLate, kBoth };  ///< kBoth: the late row hides the other.
  bool settle(bool main_there, std::strong_ordering late_first);
  bool settle_forwards() { return settle(main_.at_row(), std::strong_ordering::less); }
  bool settle_backwards() { return settle(main_there_, std::strong_ordering::greater); }

  MainCursor main_;
  LateRows late_;
  std::int32_t late_at_ = 0;  ///< None: -1 or late_.size().
  At at_ = At::kNone;
  bool forwards_ = true;
  bool main_there_ = false;  ///< Backwards only.
};

}  // namespace drover::store

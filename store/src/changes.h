#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collection.h"
#include "drover/model/bytes.h"
#include "drover/model/sync.h"

namespace drover::store {

// What a checkpoint has to write, and the state it has to write it in
//
// Cuts.     A cut is a moment at which no shard has work in hand. Intervals between cuts are numbered; the present one
//           is `interval()`. A collection carries the interval in which it changed last, each block of its history
//           the one in which it came to be.
// Writer.   Before it changes a collection for the first time in an interval it notes the view and the lengths of tail
//           and late run as they stand: the collection's state at the cut.
// Reader.   A checkpoint, which holds an EpochDomain::Guard since the cut, asks for the state of a collection at the
//           cut: what was noted, or, if nothing was, the present view.
// Why it is right.  Both happen under one mutex, and the change comes after the note. So a checkpoint that finds no
//           note reads a view that has not changed since the cut; and whatever the view leads to lives on for the
//           guard.
// Costs.    One note for each collection that is touched between two cuts, none for each row.

/// A collection at a cut.
struct CutState : CollectionState {
  LateRun::Growth late_growth;
};

/// Of one shard: which collections have changed since the last cut.
///
/// Threads: begin() while the shard is at rest; state_at_cut() by a checkpoint; all else by the writer.
class Changes {
 public:
  struct Gone {
    const Collection* collection;
    model::Bytes first_key;
  };
  /// Blocks that a checkpoint has put together on disk, and that could not be put together in memory.
  struct Apart {
    const Collection* collection;
    model::Bytes first_key;
    model::Bytes last_key;
  };
  /// Where the last two merges of collections began.
  struct LastMerges {
    model::Bytes last, before;
    std::string_view lowest() const { return std::min(last, before); }
  };
  using Merges = std::unordered_map<const Collection*, LastMerges>;
  /// What happened between two cuts.
  struct Interval {
    std::vector<const Collection*> collections;
    std::vector<const Collection*> settled;  ///< Those of the interval before.
    std::vector<Gone> gone;                  ///< Blocks that stood in a history at the cut before and do no more.
    std::vector<Apart> apart;                ///< Their one value is to be taken back.
    Merges merges;
  };

  /// 0: nothing is noted, since nothing is ever written.
  std::uint32_t interval() const { return interval_; }

  /// Ends an interval and begins `next`.
  Interval begin(std::uint32_t next);

  /// Writer: `collection` is about to change.
  void about_to_change(Collection& collection) {
    if (collection.cut != interval_) [[unlikely]]
      note(collection);
  }
  /// Writer: where merge() may leave first keys, which belong to `collection`; null: nothing is noted.
  std::vector<model::Bytes>* gone_keys() { return interval_ != 0 ? &gone_keys_ : nullptr; }
  void add_gone(const Collection& collection);
  void add_apart(const Collection& collection, std::string_view first_key, std::string_view last_key);

  /// Writer: a merge of many sources' rows began at this key.
  void add_merge(const Collection& collection, std::string_view first_key) {
    if (interval_ == 0) return;
    LastMerges& merges = merges_[&collection];
    merges.before.swap(merges.last);
    merges.last = first_key;
  }

  CutState state_at_cut(const Collection& collection);

 private:
  void note(Collection& collection);

  struct Note {
    const Collection* collection;
    CutState before;
  };
  std::uint32_t interval_ = 0;
  std::vector<model::Bytes> gone_keys_;              // writer only
  Merges merges_;                                    // writer only
  std::vector<const Collection*> last_collections_;  // begin() only
  model::Mutex mutex_;
  std::vector<Note> notes_ GUARDED_BY(mutex_);
  std::vector<Gone> gone_ GUARDED_BY(mutex_);
  std::vector<Apart> apart_ GUARDED_BY(mutex_);
  std::unordered_map<const Collection*, CutState> by_collection_ GUARDED_BY(mutex_);  ///< Of notes_.
  std::size_t mapped_ GUARDED_BY(mutex_) = 0;                                         ///< How many of them.
};

}  // namespace drover::store

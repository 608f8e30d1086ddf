#pragma once

#include <cstdint>
#include <vector>

#include "disk.h"
#include "disk_format.h"
#include "table.h"

namespace drover::store {

/// Cold blocks that a shard's writer is to put in the place of others.
struct ShardSeals {
  Shard* shard;
  std::vector<Shard::Seals> seals;
  std::shared_ptr<void> owner;  ///< As in SpaceChanges.
};

/// Adds to `batch` what has changed in a key space in the interval that ended at the last cut: new blocks of histories,
/// keys of blocks that are gone, and the tails of all segments in which a collection changed.
///
/// Runs of neighbouring blocks go out as one cold block each, which is then to stand in their place in memory too. In a
/// table these are all that stand in front of a tail; in an index only what has not changed for an interval, since new
/// entries come in between for a while. With `pressed`, also runs that are short.
/// Requires: an EpochDomain::Guard has been held since the cut.
std::vector<ShardSeals> append_changes(DiskBatch& batch, const Disk& disk, const SpaceChanges& changes,
                                       std::uint32_t interval, bool pressed);

/// Leaves to the disk what has been durable since `interval`, beginning at a segment, until `bytes` are free; returns
/// the segment to go on with.
std::uint32_t evict(const Space& space, const EpochDomain& epochs, std::uint32_t interval, std::uint32_t segment,
                    std::uint64_t& bytes, RetireList& retired);

/// What one shard restores from the disk. Requires: nothing was offered to the shard yet.
class Restorer {
 public:
  /// Calls `progress(rows)` after each collection.
  Restorer(const Disk& disk, const MemoryTable::Restorable& from, std::uint64_t memory_budget_bytes,
           std::function<void(std::uint64_t rows)> progress)
      : disk_(disk), from_(from), memory_budget_bytes_(memory_budget_bytes), progress_(std::move(progress)) {}
  /// kUnavailable: the disk can't be read. Damage is no error: it is left out, and told of.
  model::Status run();
  /// Blocks and tails that were left out, and whose they are.
  const std::vector<std::string>& damaged() const { return damaged_; }

 private:
  /// A collection on its way back into memory.
  struct Pending {
    model::KeyHash hash = 0;
    model::Bytes partition_key;
    Block* tail = nullptr;
    RestoredLate late;
  };
  model::Status read_tails();
  void read_tail(DiskReader& in);
  void restore_next();
  void take_block(std::string_view key, std::string_view encoded);
  model::Status take_around_damage(const Pending& pending, const model::Bytes& begin);
  void note_damage(std::string_view partition_key, const std::string& what);

  const Disk& disk_;
  const MemoryTable::Restorable from_;
  const std::uint64_t memory_budget_bytes_;
  const std::function<void(std::uint64_t rows)> progress_;
  std::vector<Pending> pending_;
  std::size_t next_ = 0;  ///< In pending_: whose blocks come now.
  Pieces history_;        ///< Its blocks so far.
  std::uint64_t rows_ = 0;
  std::vector<std::string> damaged_;
};

}  // namespace drover::store

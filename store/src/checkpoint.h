#pragma once

#include <cstdint>
#include <vector>

#include "disk.h"
#include "table.h"

namespace drover::store {

/// Cold blocks that a shard's writer is to put in the place of others.
struct ShardSeals {
  Shard* shard;
  std::vector<Shard::Seals> seals;
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
  Restorer(const Disk& disk, const MemoryTable::Restorable& from) : disk_(disk), from_(from) {}
  /// Calls `progress(rows)` after each collection. kInvalid: a file is damaged; what it held of this shard is left out.
  model::Status run(const std::function<void(std::uint64_t rows)>& progress);
  /// Blocks and tails that were left out, and whose they are.
  const std::vector<std::string>& damaged() const { return damaged_; }

 private:
  struct Pending;
  model::Status read_tails(std::vector<Pending>& out);
  void note_damage(std::string_view partition_key, const std::string& what);

  const Disk& disk_;
  const MemoryTable::Restorable from_;
  std::vector<std::string> damaged_;
};

}  // namespace drover::store

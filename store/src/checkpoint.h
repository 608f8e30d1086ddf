#pragma once

#include <cstdint>
#include <vector>

#include "disk.h"
#include "table.h"

namespace drover::store {

/// Adds to `batch` what has changed in a key space in the interval that ended at the last cut: new blocks of histories,
/// keys of blocks that are gone, and the tails of all segments in which a collection changed.
///
/// Requires: an EpochDomain::Guard has been held since the cut.
void append_changes(DiskBatch& batch, const SpaceChanges& changes, std::uint32_t interval);

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

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "drover/model/key.h"
#include "drover/model/sync.h"

namespace drover::partitioner {

/// What one shard has done since it exists. Plain numbers; rates are made by whoever reads twice.
struct ShardHeat {
  std::uint64_t writer_time_ns = 0;  ///< Time that the shard's writer ran.
  std::uint64_t records = 0;         ///< Rows applied.
  std::uint64_t bytes = 0;           ///< Their bytes.
  std::uint64_t reads = 0;           ///< Items read by queries.
  std::uint64_t batches = 0;
};

/// One key of a heavy-hitter sketch. The true count lies in [count - error, count], in sampled records (decayed alike,
/// cut to whole ones).
struct HotKey {
  std::string partition_key;
  std::uint64_t count = 0;
  std::uint64_t error = 0;
};

/// Space-saving sketch (Metwally et al., 2005) over sampled keys: the most frequent keys of a stream in bounded memory.
///
/// Threads: add() and decay() by the shard's writer only; top() from any thread (a short lock; add() takes it only for
/// sampled records, 1 in kHeatSampleEvery).
class HotKeySketch {
 public:
  explicit HotKeySketch(std::size_t capacity = 32);
  void add(model::KeyHash hash, std::string_view partition_key);
  /// Halves all counts, so that the past fades.
  void decay();
  /// The keys by falling count.
  std::vector<HotKey> top(std::size_t keys_max) const;
  /// All samples since the start, decayed as the counts are: the base of a share.
  std::uint64_t total() const;

 private:
  struct Entry {
    model::KeyHash hash = 0;
    HotKey key;
  };
  std::size_t capacity_;
  mutable model::Mutex mutex_;
  std::vector<Entry> entries_ GUARDED_BY(mutex_);
  std::uint64_t total_ GUARDED_BY(mutex_) = 0;
};

inline constexpr std::uint32_t kHeatSampleEvery = 64;

}  // namespace drover::partitioner

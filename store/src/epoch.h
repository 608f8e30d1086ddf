#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace drover::store {

// Giving memory back while readers take no lock
//
// Layout.  One global epoch; kReaderSlots slots, one cache line each, 0 when free; per writer a list of what it
//          retired.
// Reader.  (R1) claims a free slot with the epoch it saw, (R2) reads the epoch once more, (R3) follows published
//          pointers, (R4) frees the slot.
// Writer.  (W1) unlinks an object by publishing its successor, (W2) advances the epoch and keeps the value before as
//          the object's tag, (W3) later scans the slots: the object is freed when every slot in use holds more than its
//          tag.
// Why it is right.  R1, R2, W2 and W3 are sequentially consistent. If W3 does not see R1's slot, R1 comes after W3, so
//          R2 reads the epoch of W2 or a later one and W1 happens before R3: the reader can't reach the object. If W3
//          sees the slot with an epoch above the tag, R1's epoch was read after W2, with the same consequence. A slot
//          whose epoch was stale when claimed only delays the freeing.
// Not promised.  A reader that never leaves keeps everything retired after it came. Readers wait for nothing but
//          a block from the disk.
// Why not liburcu.  Its barriers are invisible to ThreadSanitizer, which then can't check a single reader of the store.

inline constexpr std::size_t kReaderSlots = 128;

/// What readers and writers of one store share.
class EpochDomain {
 public:
  /// A reader's stay. While it lives, nothing that was reachable at its start is freed.
  class Guard {
   public:
    explicit Guard(const EpochDomain& domain);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    std::atomic<std::uint64_t>* slot_;
  };

  /// Advances the epoch and returns the one before: the tag of what was unlinked until now.
  std::uint64_t advance() { return epoch_.fetch_add(1, std::memory_order_seq_cst); }

  /// The lowest epoch that a reader holds; the present one if there is no reader.
  std::uint64_t oldest_reader() const;

 private:
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> epoch{0};
  };
  mutable std::array<Slot, kReaderSlots> slots_;
  std::atomic<std::uint64_t> epoch_{1};
};

/// What one writer has unlinked and not freed yet. Threads: its writer's only.
class RetireList {
 public:
  explicit RetireList(EpochDomain& domain) : domain_(&domain) {}
  ~RetireList() { free_all(); }
  RetireList(const RetireList&) = delete;
  RetireList& operator=(const RetireList&) = delete;

  /// Frees `object` with `destroy` once no reader can see it. Call after its successor is published.
  void retire(void* object, void (*destroy)(void*)) { fresh_.push_back({object, destroy}); }

  /// Tags what was retired since the last call and frees what no reader can see any more.
  void collect();

 private:
  struct Retired {
    void* object;
    void (*destroy)(void*);
  };
  struct Generation {
    std::uint64_t tag;
    std::vector<Retired> objects;
  };
  void free_all();

  EpochDomain* domain_;
  std::vector<Retired> fresh_;
  std::vector<Generation> waiting_;
};

}  // namespace drover::store

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "collection.h"
#include "drover/model/key.h"
#include "drover/model/limits.h"
#include "epoch.h"

namespace drover::store {

/// The hashed key space of one table or one index: kSegments segments, each a small hash table of collections.
///
/// A shard writes the segments it owns and no others; moving a segment between shards moves nothing in here.
/// A segment's table is open addressing over atomic pointers; a full one is replaced by one of twice the size,
/// published with one release store, the old one retired. Collections stay until the space goes. Threads:
/// find_or_create() by the writer of the key's shard; find() and collections() from any thread inside an
/// EpochDomain::Guard (the writer needs none for its own segments).
class Space {
  /// A header and its slots in one allocation: a look-up touches one line here in a small segment.
  struct Table {
    static Table* make(std::uint32_t capacity);
    static void destroy(Table* table);
    std::atomic<Collection*>* slots() { return reinterpret_cast<std::atomic<Collection*>*>(this + 1); }
    const std::atomic<Collection*>* slots() const {
      return reinterpret_cast<const std::atomic<Collection*>*>(this + 1);
    }
    std::uint32_t capacity() const { return mask + 1; }
    void insert(Collection* collection);

    std::uint32_t mask;
    std::uint32_t used;  // writer only
  };

 public:
  explicit Space(const CollectionTuning& tuning) : tuning_(tuning), segments_(model::kSegments) {}
  ~Space();
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  /// Null: there is no such collection.
  Collection* find(model::KeyHash hash, std::string_view partition_key) const;
  Collection& find_or_create(model::KeyHash hash, std::string_view partition_key, RetireList& retired);

  /// The collections of one segment in order of (hash, partition key).
  std::vector<const Collection*> collections(std::uint32_t segment) const;

  /// A look-up in steps, for a writer with many keys at hand: the same step of many look-ups, then the next one, so
  /// that their waits for memory pass together.
  class Probe {
   public:
    void begin(const Space& space, model::KeyHash hash) {
      hash_ = hash;
      table_ = space.table_of(hash);
      collection_ = nullptr;
    }
    void to_slot() {
      if (table_ == nullptr) return;
      collection_ = table_->slots()[static_cast<std::uint32_t>(hash_) & table_->mask].load(std::memory_order_acquire);
    }
    void to_collection() const {
      if (collection_ != nullptr) collection_->touch_collection();
    }
    void to_tail() const {
      if (collection_ != nullptr) collection_->touch_tail();
    }
    /// The collection in the hash's first slot, if it is the one looked for; null: look on with find().
    Collection* found(std::string_view partition_key) const {
      return collection_ != nullptr && collection_->hash() == hash_ && collection_->partition_key() == partition_key
                 ? collection_
                 : nullptr;
    }

   private:
    model::KeyHash hash_ = 0;
    const Table* table_ = nullptr;
    Collection* collection_ = nullptr;
  };

 private:
  Table* table_of(model::KeyHash hash) const {
    return segments_[model::segment_of(hash)].load(std::memory_order_acquire);  // pairs with find_or_create()
  }

  const CollectionTuning tuning_;
  std::vector<std::atomic<Table*>> segments_;
};

}  // namespace drover::store

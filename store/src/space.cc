#include "space.h"

#include <algorithm>
#include <new>
#include <tuple>

namespace drover::store {
namespace {
constexpr std::uint32_t kFirstCapacity = 2;
}

Space::~Space() {
  for (std::atomic<Table*>& segment : segments_) {
    Table* table = segment.load(std::memory_order_relaxed);  // nobody else is left
    if (table == nullptr) continue;
    for (std::uint32_t i = 0; i < table->capacity(); ++i) delete table->slots()[i].load(std::memory_order_relaxed);
    Table::destroy(table);
  }
}

Space::Table* Space::Table::make(std::uint32_t capacity) {
  void* memory = ::operator new(sizeof(Table) + capacity * sizeof(std::atomic<Collection*>));
  auto* table = new (memory) Table{capacity - 1, 0};
  for (std::uint32_t i = 0; i < capacity; ++i) new (table->slots() + i) std::atomic<Collection*>(nullptr);
  return table;
}

void Space::Table::destroy(Table* table) {
  ::operator delete(table);
}

void Space::Table::insert(Collection* collection) {
  std::uint32_t i = static_cast<std::uint32_t>(collection->hash()) & mask;
  while (slots()[i].load(std::memory_order_relaxed) != nullptr) i = (i + 1) & mask;  // own stores only
  slots()[i].store(collection, std::memory_order_release);  // pairs with find(): the collection is complete
  ++used;
}

Collection* Space::find(model::KeyHash hash, std::string_view partition_key) const {
  const Table* table = table_of(hash);
  if (table == nullptr) return nullptr;
  for (std::uint32_t i = static_cast<std::uint32_t>(hash) & table->mask;; i = (i + 1) & table->mask) {
    Collection* collection = table->slots()[i].load(std::memory_order_acquire);  // pairs with insert()
    if (collection == nullptr) return nullptr;
    if (collection->hash() == hash && collection->partition_key() == partition_key) return collection;
  }
}

Collection& Space::find_or_create(model::KeyHash hash, std::string_view partition_key, RetireList& retired) {
  if (Collection* found = find(hash, partition_key); found != nullptr) return *found;
  std::atomic<Table*>& segment = segments_[model::segment_of(hash)];
  Table* table = segment.load(std::memory_order_relaxed);  // own stores only
  // One slot in four stays free, so that a search always ends.
  if (table == nullptr || (table->used + 1) * 4 > table->capacity() * 3) {
    Table* larger = Table::make(table == nullptr ? kFirstCapacity : table->capacity() * 2);
    for (std::uint32_t i = 0; table != nullptr && i < table->capacity(); ++i) {
      if (Collection* collection = table->slots()[i].load(std::memory_order_relaxed)) larger->insert(collection);
    }
    segment.store(larger, std::memory_order_release);  // pairs with table_of()
    if (table != nullptr) retired.retire(table, [](void* old) { Table::destroy(static_cast<Table*>(old)); });
    table = larger;
  }
  auto* collection = new Collection(hash, partition_key, tuning_);
  table->insert(collection);
  return *collection;
}

std::vector<const Collection*> Space::collections(std::uint32_t segment) const {
  std::vector<const Collection*> found;
  const Table* table = segments_[segment].load(std::memory_order_acquire);  // pairs with find_or_create()
  if (table == nullptr) return found;
  for (std::uint32_t i = 0; i < table->capacity(); ++i) {
    const Collection* collection = table->slots()[i].load(std::memory_order_acquire);  // pairs with insert()
    if (collection != nullptr) found.push_back(collection);
  }
  std::sort(found.begin(), found.end(), [](const Collection* a, const Collection* b) {
    return std::make_tuple(a->hash(), a->partition_key()) < std::make_tuple(b->hash(), b->partition_key());
  });
  return found;
}

}  // namespace drover::store

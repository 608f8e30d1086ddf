#include "drover/partitioner/heat.h"

#include <algorithm>

#include "drover/model/check.h"

namespace drover::partitioner {
namespace {

bool hotter(const HotKey& a, const HotKey& b) {
  return a.count > b.count;
}

}  // namespace

HotKeySketch::HotKeySketch(std::size_t capacity) : capacity_(capacity) {
  DROVER_CHECK(capacity > 0, "a sketch keeps at least one key");
  entries_.reserve(capacity);
}

void HotKeySketch::add(model::KeyHash hash, std::string_view partition_key) {
  const model::LockGuard lock(mutex_);
  ++total_;
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.hash == hash && entry.key.partition_key == partition_key;
  });
  if (known != entries_.end()) {
    ++known->key.count;
    return;
  }
  if (entries_.size() < capacity_) {
    entries_.push_back({hash, {std::string(partition_key), 1, 0}});
    return;
  }
  // The coldest key makes room; what it had is the most that the new one can have had unseen.
  Entry& coldest = *std::min_element(entries_.begin(), entries_.end(),
                                     [](const Entry& a, const Entry& b) { return hotter(b.key, a.key); });
  coldest.hash = hash;
  coldest.key.partition_key.assign(partition_key);
  coldest.key.error = coldest.key.count++;
}

void HotKeySketch::decay() {
  const model::LockGuard lock(mutex_);
  total_ /= 2;
  for (Entry& entry : entries_) {
    entry.key.count /= 2;
    entry.key.error /= 2;
  }
  std::erase_if(entries_, [](const Entry& entry) { return entry.key.count == 0; });
}

std::vector<HotKey> HotKeySketch::top(std::size_t keys_max) const {
  std::vector<HotKey> keys;
  {
    const model::LockGuard lock(mutex_);
    keys.reserve(entries_.size());
    for (const Entry& entry : entries_) keys.push_back(entry.key);
  }
  std::sort(keys.begin(), keys.end(), hotter);
  if (keys.size() > keys_max) keys.resize(keys_max);
  return keys;
}

std::uint64_t HotKeySketch::total() const {
  const model::LockGuard lock(mutex_);
  return total_;
}

}  // namespace drover::partitioner

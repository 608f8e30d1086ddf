#include "drover/model/names.h"

namespace drover::model {

NameId AttributeNames::intern(std::string_view name) {
  if (name.size() > kInternedNameSizeBytesMax) return {};
  const LockGuard lock(mutex_);
  if (const auto known = by_name_.find(name); known != by_name_.end()) return known->second;
  if (storage_.size() == kInternedNamesMax) return {};
  const std::string& stored = storage_.emplace_back(name);
  const NameId id{static_cast<std::uint32_t>(storage_.size())};
  by_name_.emplace(stored, id);
  by_id_[id.value].store(&stored, std::memory_order_release);  // pairs with the load in name()
  return id;
}

std::size_t AttributeNames::size() const {
  const LockGuard lock(mutex_);
  return storage_.size();
}

std::string_view AttributeNames::name(NameId id) const {
  return *by_id_[id.value].load(std::memory_order_acquire);  // pairs with the store in intern()
}

}  // namespace drover::model

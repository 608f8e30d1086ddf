#include "epoch.h"

#include <algorithm>
#include <functional>
#include <thread>

namespace drover::store {

EpochDomain::Guard::Guard(const EpochDomain& domain) {
  static thread_local std::size_t home = std::hash<std::thread::id>{}(std::this_thread::get_id());
  for (std::size_t i = home;; ++i) {
    slot_ = &domain.slots_[i % kReaderSlots].epoch;
    std::uint64_t free = 0;
    // R1 and R2 of the essay in the header.
    if (slot_->compare_exchange_strong(free, domain.epoch_.load(std::memory_order_seq_cst),
                                       std::memory_order_seq_cst)) {
      (void)domain.epoch_.load(std::memory_order_seq_cst);
      return;
    }
    if ((i + 1 - home) % kReaderSlots == 0) std::this_thread::yield();
  }
}

// Pairs with the scan in oldest_reader(): what this reader read happens before the freeing.
EpochDomain::Guard::~Guard() {
  slot_->store(0, std::memory_order_release);
}

std::uint64_t EpochDomain::oldest_reader() const {
  std::uint64_t oldest = epoch_.load(std::memory_order_seq_cst);
  for (const Slot& slot : slots_) {
    const std::uint64_t epoch = slot.epoch.load(std::memory_order_seq_cst);
    if (epoch != 0) oldest = std::min(oldest, epoch);
  }
  return oldest;
}

void RetireList::collect() {
  if (!fresh_.empty()) waiting_.push_back({domain_->advance(), std::move(fresh_)});
  fresh_.clear();
  if (waiting_.empty()) return;
  const std::uint64_t oldest = domain_->oldest_reader();
  std::size_t done = 0;
  for (; done < waiting_.size() && waiting_[done].tag < oldest; ++done) {
    for (const Retired& retired : waiting_[done].objects) retired.destroy(retired.object);
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
}

void RetireList::free_all() {
  for (const Retired& retired : fresh_) retired.destroy(retired.object);
  for (const Generation& generation : waiting_) {
    for (const Retired& retired : generation.objects) retired.destroy(retired.object);
  }
}

}  // namespace drover::store

#include "entry_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace drover::store {

KeyHead KeyHead::of(std::string_view text) {
  KeyHead head;
  if (text.size() >= sizeof head) [[likely]] {
    std::memcpy(&head, text.data(), sizeof head);
  } else {
    std::memcpy(&head, text.data(), text.size());
  }
  for (std::uint64_t& word : head.words) word = __builtin_bswap64(word);
  return head;
}

std::size_t common_size(std::string_view a, std::string_view b) {
  if (b.starts_with(a)) return a.size();
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

EntryOrder EntryOrder::of(const model::RowBatch& batch) {
  EntryOrder order;
  std::string_view prefix = model::RowView(batch.row_bytes(batch.rows.front())).sort_key();
  for (const model::RowBatch::Row& row : batch.rows) {
    prefix = prefix.substr(0, common_size(prefix, model::RowView(batch.row_bytes(row)).sort_key()));
  }
  order.prefix = prefix;

  constexpr std::size_t kRecent = 16;  // groups known again, if no other hash takes their place
  struct Recent {
    const model::RowBatch::Row* row = nullptr;
    std::uint32_t group = 0;
  };
  std::array<Recent, kRecent> recent;
  order.marks.reserve(batch.rows.size());
  for (const model::RowBatch::Row& row : batch.rows) {
    Recent& known = recent[row.hash % kRecent];
    if (known.row == nullptr || known.row->hash != row.hash ||
        batch.partition_key(*known.row) != batch.partition_key(row)) {
      known = {&row, order.groups++};
    }
    const model::RowView view(batch.row_bytes(row));
    order.marks.push_back({KeyHead::of(view.sort_key().substr(prefix.size())), known.group, view.tombstone()});
  }
  return order;
}

KeyHead HeadBehind::behind(const KeyHead& head) const {
  char bytes[2 * sizeof head];
  const std::size_t size = rest_.copy(bytes, sizeof head);
  for (std::size_t i = 0; i < head.words.size(); ++i) {
    const std::uint64_t word = __builtin_bswap64(head.words[i]);
    std::memcpy(bytes + size + i * sizeof word, &word, sizeof word);
  }
  return KeyHead::of({bytes, sizeof head});
}

namespace {

constexpr unsigned kKeyBits = 64;

/// Takes the bits of a mask out of a number, closed up: an order among numbers that differ nowhere else stays.
class Bits {
 public:
  explicit Bits(std::uint64_t mask) {
    unsigned to = 0;
    while (mask != 0) {
      const auto from = static_cast<unsigned>(std::countr_zero(mask));
      const auto size = static_cast<unsigned>(std::countr_one(mask >> from));
      const std::uint64_t run = (size == kKeyBits ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1) << from;
      runs_[count_++] = {run, from - to};
      to += size;
      mask &= ~run;
    }
  }
  std::uint64_t of(std::uint64_t number) const {
    std::uint64_t taken = 0;
    for (unsigned i = 0; i < count_; ++i) taken |= (number & runs_[i].mask) >> runs_[i].shift;
    return taken;
  }

 private:
  struct Run {
    std::uint64_t mask;
    unsigned shift;
  };
  std::array<Run, kKeyBits / 2> runs_{};
  unsigned count_ = 0;
};

}  // namespace

void EntrySorter::sort(const std::vector<Entry>& entries) {
  KeyHead any = entries.front().head;
  KeyHead all = any;
  for (const Entry& entry : entries) {
    for (std::size_t i = 0; i < any.words.size(); ++i) {
      any.words[i] |= entry.head.words[i];
      all.words[i] &= entry.head.words[i];
    }
  }
  struct Part {
    std::size_t word;
    Bits bits;
    unsigned size;     ///< Of what the key takes.
    unsigned dropped;  ///< Bits for which it has no room.
  };
  std::vector<Part> parts;
  unsigned size = 0;
  for (std::size_t word = 0; word < any.words.size(); ++word) {
    const std::uint64_t differing = any.words[word] & ~all.words[word];
    const auto bits = static_cast<unsigned>(std::popcount(differing));
    const unsigned taken = std::min(bits, kKeyBits - size);
    if (taken > 0) parts.push_back({word, Bits(differing), taken, bits - taken});
    size += taken;
  }
  slots_.clear();
  slots_.reserve(entries.size());
  for (const Entry& entry : entries) {
    std::uint64_t key = 0;
    for (const Part& part : parts) {
      const std::uint64_t bits = part.bits.of(entry.head.words[part.word]) >> part.dropped;
      key = part.size == kKeyBits ? bits : key << part.size | bits;
    }
    slots_.push_back({key, static_cast<std::uint32_t>(slots_.size())});
  }
  sort_by_key(size);
  const auto less = [&](const Slot& a, const Slot& b) {
    return entries[a.entry].sort_key() < entries[b.entry].sort_key();
  };
  for (auto begin = slots_.begin(); begin != slots_.end();) {
    const auto end = std::find_if(begin + 1, slots_.end(), [&](const Slot& slot) { return slot.key != begin->key; });
    if (end - begin > 1) std::stable_sort(begin, end, less);
    begin = end;
  }
}

void EntrySorter::sort_by_key(unsigned bits) {
  constexpr std::size_t kFew = 512;
  if (slots_.size() < kFew) {
    std::stable_sort(slots_.begin(), slots_.end(), [](const Slot& a, const Slot& b) { return a.key < b.key; });
    return;
  }
  constexpr unsigned kDigitBits = 11;
  constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
  scratch_.resize(slots_.size());
  for (unsigned shift = 0; shift < bits; shift += kDigitBits) {
    std::array<std::uint32_t, kDigits> next{};
    for (const Slot& slot : slots_) ++next[slot.key >> shift & (kDigits - 1)];
    std::uint32_t begin = 0;
    for (std::uint32_t& digit : next) digit = std::exchange(begin, begin + digit);
    for (const Slot& slot : slots_) scratch_[next[slot.key >> shift & (kDigits - 1)]++] = slot;
    slots_.swap(scratch_);
  }
}

}  // namespace drover::store

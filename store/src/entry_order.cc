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
  slots_.resize(entries.size());
  for (std::uint32_t i = 0; i < entries.size(); ++i) slots_[i] = {0, i};
  sort_by_heads(slots_, [&](const Slot& slot) -> const KeyHead& { return entries[slot.entry].head; });
  sort_ties(entries, slots_);
}

/// Sorts what has equal keys: a few by their rows; of many new heads are taken, behind what these begin with.
void EntrySorter::sort_ties(const std::vector<Entry>& entries, std::span<Slot> slots) {
  constexpr std::ptrdiff_t kFew = 64;
  const auto sort_key = [&](const Slot& slot) { return entries[slot.entry].sort_key(); };
  for (auto begin = slots.begin(); begin != slots.end();) {
    const auto end = std::find_if(begin + 1, slots.end(), [&](const Slot& slot) { return slot.key != begin->key; });
    const std::span<Slot> ties(begin, end);
    begin = end;
    bool sorted = ties.size() == 1;
    if (ties.size() > kFew) {
      std::string_view prefix = sort_key(ties.front());
      for (const Slot& slot : ties) prefix = prefix.substr(0, common_size(prefix, sort_key(slot)));
      sorted = sort_by_heads(ties, [&](const Slot& slot) { return KeyHead::of(sort_key(slot).substr(prefix.size())); });
      if (sorted) sort_ties(entries, ties);
    }
    if (!sorted) {
      std::stable_sort(ties.begin(), ties.end(),
                       [&](const Slot& a, const Slot& b) { return sort_key(a) < sort_key(b); });
    }
  }
}

/// False: the heads are all the same.
template <typename HeadOf>
bool EntrySorter::sort_by_heads(std::span<Slot> slots, HeadOf head_of) {
  KeyHead any = head_of(slots.front());
  KeyHead all = any;
  for (const Slot& slot : slots) {
    const KeyHead& head = head_of(slot);
    for (std::size_t word = 0; word < any.words.size(); ++word) {
      any.words[word] |= head.words[word];
      all.words[word] &= head.words[word];
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
  for (Slot& slot : slots) {
    const KeyHead& head = head_of(slot);
    slot.key = 0;
    for (const Part& part : parts) {
      const std::uint64_t bits = part.bits.of(head.words[part.word]) >> part.dropped;
      slot.key = part.size == kKeyBits ? bits : slot.key << part.size | bits;
    }
  }
  sort_by_key(slots, size);
  return size > 0;
}

void EntrySorter::sort_by_key(std::span<Slot> slots, unsigned bits) {
  constexpr std::size_t kFew = 512;
  if (slots.size() < kFew) {
    std::stable_sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) { return a.key < b.key; });
    return;
  }
  constexpr unsigned kDigitBits = 11;
  constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
  scratch_.resize(slots.size());
  std::span<Slot> from = slots;
  std::span<Slot> to = scratch_;
  for (unsigned shift = 0; shift < bits; shift += kDigitBits) {
    std::array<std::uint32_t, kDigits> next{};
    for (const Slot& slot : from) ++next[slot.key >> shift & (kDigits - 1)];
    std::uint32_t begin = 0;
    for (std::uint32_t& digit : next) digit = std::exchange(begin, begin + digit);
    for (const Slot& slot : from) to[next[slot.key >> shift & (kDigits - 1)]++] = slot;
    std::swap(from, to);
  }
  if (from.data() != slots.data()) std::copy(from.begin(), from.end(), slots.begin());
}

}  // namespace drover::store

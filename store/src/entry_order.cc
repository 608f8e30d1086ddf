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

EntryOrder EntryOrder::of(const model::RowBatch& batch, std::span<const std::uint32_t> selected) {
  EntryOrder order;
  const auto sort_key = [&batch](std::uint32_t row) {
    return model::RowView(batch.row_bytes(batch.rows[row])).sort_key();
  };
  std::string_view prefix = sort_key(selected.front());
  for (const std::uint32_t i : selected) prefix = prefix.substr(0, common_size(prefix, sort_key(i)));
  order.prefix = prefix;

  constexpr std::size_t kRecent = 16;  // groups known again, if no other hash takes their place
  struct Recent {
    const model::RowBatch::Row* row = nullptr;
    std::uint32_t group = 0;
  };
  std::array<Recent, kRecent> recent;
  order.marks.reserve(selected.size());
  for (const std::uint32_t i : selected) {
    const model::RowBatch::Row& row = batch.rows[i];
    Recent& known = recent[row.hash % kRecent];
    if (known.row == nullptr || known.row->hash != row.hash ||
        batch.partition_key(*known.row) != batch.partition_key(row)) {
      known = {&row, static_cast<std::uint32_t>(order.firsts.size())};
      order.firsts.push_back(i);
    }
    const model::RowView view(batch.row_bytes(row));
    order.marks.push_back({KeyHead::of(view.sort_key().substr(prefix.size())), known.group,
                           row.begin + row.partition_key_size, row.row_size, view.tombstone()});
    order.bits.see(order.marks.back().head);
    order.row_bytes += row.row_size;
  }
  return order;
}

HeadBehind::HeadBehind(std::string_view prefix, std::size_t size) : rest_(KeyHead::of(prefix.substr(size))) {
  const std::size_t moved = std::min(prefix.size() - size, sizeof(KeyHead));
  words_ = moved / sizeof(std::uint64_t);
  shift_ = static_cast<unsigned>(moved % sizeof(std::uint64_t) * 8);
}

HeadBits HeadBehind::operator()(const HeadBits& bits) const {
  KeyHead in_all = bits.clear;
  for (std::uint64_t& word : in_all.words) word = ~word;
  HeadBits moved{(*this)(bits.set), (*this)(in_all)};
  for (std::uint64_t& word : moved.clear.words) word = ~word;
  return moved;
}

Bits::Bits(std::uint64_t mask) {
  unsigned to = 0;
  while (mask != 0) {
    const auto from = static_cast<unsigned>(std::countr_zero(mask));
    const auto size = static_cast<unsigned>(std::countr_one(mask >> from));
    const std::uint64_t run = (size == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1) << from;
    runs_[count_++] = {run, from - to};
    to += size;
    mask &= ~run;
  }
}

HeadPacker::HeadPacker(const HeadBits& bits) {
  constexpr unsigned kKeyBits = 64;
  for (std::size_t word = 0; word < bits.set.words.size(); ++word) {
    const std::uint64_t differing = bits.set.words[word] & bits.clear.words[word];
    const auto count = static_cast<unsigned>(std::popcount(differing));
    const unsigned taken = std::min(count, kKeyBits - size_);
    if (taken > 0) part_[parts_++] = {Bits(differing), word, taken, count - taken};
    size_ += taken;
  }
}

void EntrySorter::sort(std::span<Entry> entries, unsigned bits) {
  sort_by_key(entries, bits);
  sort_ties(entries);
}

/// Sorts what has equal keys: a few by their rows; of many new keys are made, of what is behind their beginning.
void EntrySorter::sort_ties(std::span<Entry> entries) {
  constexpr std::ptrdiff_t kFew = 64;
  for (auto begin = entries.begin(); begin != entries.end();) {
    const auto end =
        std::find_if(begin + 1, entries.end(), [&](const Entry& entry) { return entry.key != begin->key; });
    const std::span<Entry> ties(begin, end);
    begin = end;
    bool sorted = ties.size() == 1;
    if (ties.size() > kFew) {
      std::string_view prefix = ties.front().sort_key();
      for (const Entry& entry : ties) prefix = prefix.substr(0, common_size(prefix, entry.sort_key()));
      const auto head = [&](const Entry& entry) { return KeyHead::of(entry.sort_key().substr(prefix.size())); };
      HeadBits bits;
      for (const Entry& entry : ties) bits.see(head(entry));
      const HeadPacker packer(bits);
      sorted = packer.bits() > 0;
      if (sorted) {
        for (Entry& entry : ties) entry.key = packer(head(entry));
        sort(ties, packer.bits());
      }
    }
    if (!sorted) {
      std::stable_sort(ties.begin(), ties.end(),
                       [&](const Entry& a, const Entry& b) { return a.sort_key() < b.sort_key(); });
    }
  }
}

void EntrySorter::sort_by_key(std::span<Entry> entries, unsigned bits) {
  constexpr std::size_t kFew = 512;
  if (entries.size() < kFew) {
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
    return;
  }
  constexpr unsigned kDigitBits = 11;
  constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
  scratch_.resize(entries.size());
  std::span<Entry> from = entries;
  std::span<Entry> to = scratch_;
  for (unsigned shift = 0; shift < bits; shift += kDigitBits) {
    std::array<std::uint32_t, kDigits> next{};
    for (const Entry& entry : from) ++next[entry.key >> shift & (kDigits - 1)];
    std::uint32_t begin = 0;
    for (std::uint32_t& digit : next) digit = std::exchange(begin, begin + digit);
    for (const Entry& entry : from) to[next[entry.key >> shift & (kDigits - 1)]++] = entry;
    std::swap(from, to);
  }
  if (from.data() != entries.data()) std::copy(from.begin(), from.end(), entries.begin());
}

}  // namespace drover::store

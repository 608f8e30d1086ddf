#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "drover/model/batch.h"
#include "drover/model/row.h"

namespace drover::store {

/// Twenty-four bytes of a sort key as numbers that order as they do: of a joined key, the part of a time that varies
/// and the vehicle behind it.
struct KeyHead {
  std::array<std::uint64_t, 3> words{};
  /// Of the first bytes of a text, with zeros behind it.
  static KeyHead of(std::string_view text);
};

/// Which bits are set in any of some heads, and clear in any.
struct HeadBits {
  KeyHead set, clear;
  void see(const KeyHead& head) {
    for (std::size_t word = 0; word < head.words.size(); ++word) {
      set.words[word] |= head.words[word];
      clear.words[word] |= ~head.words[word];
    }
  }
  void see(const HeadBits& more) {
    for (std::size_t word = 0; word < set.words.size(); ++word) {
      set.words[word] |= more.set.words[word];
      clear.words[word] |= more.clear.words[word];
    }
  }
};

/// What orders some entries of a batch, beside them: whoever merges many batches looks at rows only where it moves
/// them, and once. Made by the sender, to whom the rows are near.
struct EntryOrder {
  struct Mark {
    KeyHead head;             ///< Of what follows the prefix in the entry's sort key.
    std::uint32_t group = 0;  ///< Entries of one group share their partition key. (Two groups may share one, too.)
    std::uint32_t begin = 0;  ///< Of the entry's row, in the batch's bytes.
    std::uint32_t row_size = 0;
    bool remove = false;
  };
  model::Bytes prefix;  ///< What all these sort keys begin with.
  std::vector<Mark> marks;
  HeadBits bits;                      ///< Of all marks.
  std::vector<std::uint32_t> firsts;  ///< A row of each group, in the batch.
  std::uint64_t row_bytes = 0;

  /// Of the batch's rows that are `selected`. Requires: there is one.
  static EntryOrder of(const model::RowBatch& batch, std::span<const std::uint32_t> selected);
};

/// Gives heads behind a shorter prefix. Pure.
class HeadBehind {
 public:
  /// Heads behind the first `size` bytes of `prefix`, from those behind the whole of it.
  HeadBehind(std::string_view prefix, std::size_t size);
  /// The prefix's rest, and of the head what there is room for.
  KeyHead operator()(const KeyHead& head) const {
    KeyHead moved = rest_;
    for (std::size_t word = words_; word < moved.words.size(); ++word) {
      const std::uint64_t high = head.words[word - words_];
      moved.words[word] |= high >> shift_;
      if (word > words_ && shift_ > 0) moved.words[word] |= head.words[word - words_ - 1] << (64 - shift_);
    }
    return moved;
  }
  HeadBits operator()(const HeadBits& bits) const;

 private:
  KeyHead rest_;           ///< Of the prefix, with zeros behind it.
  std::size_t words_ = 0;  ///< By which a head moves on, and
  unsigned shift_ = 0;     ///< by how many bits more.
};

/// Bits of a number, closed up: an order among numbers that differ nowhere else stays.
class Bits {
 public:
  Bits() = default;
  explicit Bits(std::uint64_t mask);
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
  std::array<Run, 32> runs_{};
  unsigned count_ = 0;
};

/// Packs the bits in which heads differ into one number: a few dozen, since digits differ in four bits and all else
/// hardly. What has no room is left off at the end. Pure.
class HeadPacker {
 public:
  /// `bits`: of all heads to come.
  explicit HeadPacker(const HeadBits& bits);
  std::uint64_t operator()(const KeyHead& head) const {
    std::uint64_t packed = 0;
    for (std::size_t i = 0; i < parts_; ++i) {
      const Part& part = part_[i];
      const std::uint64_t bits = part.bits.of(head.words[part.word]) >> part.dropped;
      packed = part.size == 64 ? bits : packed << part.size | bits;
    }
    return packed;
  }
  unsigned bits() const { return size_; }  ///< That its numbers take; 0: the heads are all the same.

 private:
  struct Part {
    Bits bits;
    std::size_t word = 0;
    unsigned size = 0;     ///< Of what the number takes.
    unsigned dropped = 0;  ///< Bits for which it has no room.
  };
  std::array<Part, 3> part_{};
  std::size_t parts_ = 0;
  unsigned size_ = 0;
};

/// One entry on its way into a merge.
struct Entry {
  std::uint64_t key = 0;  ///< Its head, packed.
  const char* row = nullptr;
  std::uint32_t row_size = 0;
  bool remove = false;
  std::string_view row_bytes() const { return {row, row_size}; }
  std::string_view sort_key() const { return model::RowView(row_bytes()).sort_key(); }
};

/// Sorts entries by their keys. A radix sort of those numbers takes a third of the time of a merge of the runs that are
/// there. Rows are looked at only where the numbers are equal, as one key from far away can make many.
///
/// Threads: one at a time; keeps its memory for the next time.
class EntrySorter {
 public:
  /// Stable. `bits`: of the keys that may differ. Entries of equal sort keys have equal keys before and behind it.
  void sort(std::span<Entry> entries, unsigned bits);

 private:
  void sort_ties(std::span<Entry> entries);
  void sort_by_key(std::span<Entry> entries, unsigned bits);
  std::vector<Entry> scratch_;
};

/// How many bytes two texts begin with alike.
std::size_t common_size(std::string_view a, std::string_view b);

}  // namespace drover::store

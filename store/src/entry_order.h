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

/// What orders the entries of one batch, beside them: whoever merges many batches looks at rows only where it moves
/// them, and once. Made by the sender, to whom the rows are near.
struct EntryOrder {
  struct Mark {
    KeyHead head;             ///< Of what follows the prefix in the entry's sort key.
    std::uint32_t group = 0;  ///< Entries of one group share their partition key. (Two groups may share one, too.)
    bool remove = false;
  };
  model::Bytes prefix;  ///< What all sort keys of the batch begin with.
  std::vector<Mark> marks;
  std::uint32_t groups = 0;

  /// Requires: the batch has a row.
  static EntryOrder of(const model::RowBatch& batch);
};

/// Gives heads behind a shorter prefix. Pure.
class HeadBehind {
 public:
  /// Heads behind the first `size` bytes of `prefix`, from those behind the whole of it.
  HeadBehind(std::string_view prefix, std::size_t size) : rest_(prefix.substr(size)) {}
  KeyHead operator()(const KeyHead& head) const { return rest_.empty() ? head : behind(head); }

 private:
  KeyHead behind(const KeyHead& head) const;
  std::string_view rest_;  ///< Of the prefix.
};

/// One entry on its way into a merge.
struct Entry {
  KeyHead head;  ///< Behind what all sort keys of the merge begin with.
  const char* row = nullptr;
  std::uint32_t row_size = 0;
  bool remove = false;
  std::string_view row_bytes() const { return {row, row_size}; }
  std::string_view sort_key() const { return model::RowView(row_bytes()).sort_key(); }
};

/// Sorts entries by the bits in which their heads differ, packed into one number: a few dozen, since digits differ in
/// four bits and all else hardly. A radix sort of those numbers takes a third of the time of a merge of the runs that
/// are there. Rows are looked at only where the numbers are equal, as one key from far away can make many.
///
/// Threads: one at a time; keeps its memory for the next time.
class EntrySorter {
 public:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t entry = 0;
  };
  /// Stable. Requires: not empty.
  void sort(const std::vector<Entry>& entries);
  /// Of the last sort(). Equal sort keys have equal `key`s.
  const std::vector<Slot>& order() const { return slots_; }

 private:
  template <typename HeadOf>
  bool sort_by_heads(std::span<Slot> slots, HeadOf head_of);
  void sort_ties(const std::vector<Entry>& entries, std::span<Slot> slots);
  void sort_by_key(std::span<Slot> slots, unsigned bits);
  std::vector<Slot> slots_, scratch_;
};

/// How many bytes two texts begin with alike.
std::size_t common_size(std::string_view a, std::string_view b);

}  // namespace drover::store

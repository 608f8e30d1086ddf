#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "drover/model/limits.h"
#include "drover/model/sync.h"

namespace drover::model {

/// Short id of an attribute name in stored rows. 0 is "no id": the name stands in the row as text.
struct NameId {
  std::uint32_t value = 0;
  friend auto operator<=>(const NameId&, const NameId&) = default;
};

/// The attribute names of one store, each stored once; rows refer to them by id.
///
/// Bounded by kInternedNamesMax names of at most kInternedNameSizeBytesMax bytes each: a stranger who sends ever new
/// names makes rows longer, not this table.
/// Threads: all members from any thread; name() takes no lock.
class AttributeNames {
 public:
  static constexpr std::size_t kInternedNameSizeBytesMax = 255;

  AttributeNames() = default;
  AttributeNames(const AttributeNames&) = delete;
  AttributeNames& operator=(const AttributeNames&) = delete;

  /// The id of `name`, given out at its first call; NameId{} when the table is full or the name too long.
  NameId intern(std::string_view name);

  /// Ids given out: they are 1 to size().
  std::size_t size() const;

  /// The name behind an id that intern() returned. Lives as long as this object.
  std::string_view name(NameId id) const;

 private:
  // Slot n is written once, before its id is handed out; whoever holds the id got it through a row or a call that
  // synchronises with that, so acquire here pairs with the release store in intern() for ids read from rows.
  std::array<std::atomic<const std::string*>, kInternedNamesMax + 1> by_id_{};
  mutable Mutex mutex_;
  std::deque<std::string> storage_ GUARDED_BY(mutex_);
  std::unordered_map<std::string_view, NameId> by_name_ GUARDED_BY(mutex_);
};

}  // namespace drover::model

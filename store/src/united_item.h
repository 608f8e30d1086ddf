#pragma once

#include <string_view>
#include <vector>

#include "drover/model/bytes.h"
#include "drover/model/names.h"
#include "drover/model/row.h"
#include "drover/model/version.h"

namespace drover::store {

// Rows of one key that unite
//
// State.   An item has a floor, the version of the last write that was all of it (a put, a delete, a record that
//          replaces; none: Version{}): nothing older counts. Above it each attribute is of the highest version that
//          named it. So two states unite by taking the higher floor, and of each attribute the higher version: whatever
//          the order, and however often a row comes, the state is the same.
// Stamps.  What an item inherits is of its floor's version: whatever a record says itself is later, and what replaces
//          the item leaves nothing of its stamp.
// Row.     All of the item in one write: no flag, as the floor is the row's version. One record alone, above nothing:
//          kRowUnites. Anything else has origins too, and its attributes stand by version, the highest first:
//
//     origins = varint(attributes of the row's version) varint(runs) { varint(attributes) version } [floor]
//
//          What stands behind those is of the floor's version. A version is its 16 bytes; no floor: Version{}.

/// What is known of one item, attribute by attribute. Its views are into the rows that it was made of.
struct UnitedItem {
  struct Attribute {
    std::string_view name;
    std::string_view encoded;  ///< Name and value.
    model::Version version;
    friend bool operator==(const Attribute&, const Attribute&) = default;
  };

  static UnitedItem of(const model::RowView& row, const model::AttributeNames& names);

  /// Drops what is older.
  void raise_floor(model::Version to);

  /// Whether readers see the same.
  bool same_content(const UnitedItem& other) const;
  /// Whether all that `other` has is here, with equal values. Nothing is in a deleted item.
  bool contains(const UnitedItem& other) const;
  friend bool operator==(const UnitedItem&, const UnitedItem&) = default;

  /// Appends the row that says all this, and `stamp` (encoded attributes that are not here).
  void append_row(model::Bytes& out, std::string_view sort_key, std::string_view stamp) const;

  model::Version version;  ///< The highest.
  model::Version floor;
  bool deleted = false;               ///< As of its version, which is its floor then.
  std::vector<Attribute> attributes;  ///< By name.
};

/// Both as one. Of a version that both know, `a` has the say.
UnitedItem unite(const UnitedItem& a, const UnitedItem& b);

/// Appends the row of one record that unites, with a stamp: as UnitedItem does, without a look at the names.
void append_stamped_row(model::Bytes& out, const model::RowView& row, std::string_view stamp);

}  // namespace drover::store

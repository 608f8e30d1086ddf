#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "drover/model/batch.h"
#include "drover/model/names.h"
#include "drover/model/row.h"
#include "drover/model/schema.h"
#include "drover/model/value_view.h"

namespace drover::store {

/// Whether a value can stand in a key of this type: an item without such a one has no entry in an index.
bool can_be_key(model::ValueView value, model::KeyType type, std::size_t size_bytes_max);

/// How one global index derives its entry from an item. Constant after construction; any thread.
class IndexPlan {
 public:
  IndexPlan(const model::TableSchema& schema, const model::IndexSchema& index, model::AttributeNames& names);

  enum class Outcome : std::uint8_t {
    kAppended,
    kNotInIndex,  ///< The item lacks a key attribute of the index: sparse, nothing appended.
    kRefused,     ///< A key attribute has another type than the index says, or an illegal size: nothing appended.
  };

  /// What inherited attributes come to in this index. Many items share them.
  struct Inherited {
    model::Bytes text;  ///< The attributes.
    bool refused = false;
    std::optional<model::Bytes> partition_key;
    std::optional<model::Bytes> sort_key;
    model::KeyHash partition_key_hash = 0;  ///< Of an entry's partition key, if it comes from here.
    model::Bytes kept;
  };

  /// Memory that append_entry() uses again and again: one for each plan and thread that calls it.
  struct Scratch {
    model::Bytes partition_key;
    model::Bytes sort_key;
    std::vector<std::string_view> kept;
    std::array<Inherited, 16> inherited;  ///< Seen lately: by a hash of the text.
  };

  /// An item as an index sees it.
  struct Source {
    std::string_view partition_key;
    std::string_view sort_key;
    std::string_view own;        ///< Encoded attributes.
    std::string_view inherited;  ///< More of them.
    model::NameMask own_names = model::NameMask::unknown();
  };
  /// Appends the entry of an item (or, as a tombstone, its removal) to `out`.
  Outcome append_entry(const Source& item, bool remove, Scratch& scratch, model::RowBatch& out) const;

  /// Whether two states of one item have the same place in the index: the attributes `present` there, and an item's own
  /// and inherited ones.
  bool same_place(std::string_view present, std::string_view own, std::string_view inherited) const;

 private:
  /// Where a key attribute of the index is found.
  struct Part {
    enum class From { kTablePartitionKey, kTableSortKey, kAttribute };
    From from = From::kAttribute;
    model::KeyAttribute attribute;
    model::NameId id;
  };
  Part part_of(const model::KeyAttribute& attribute) const;
  static bool is(const Part& part, const model::RawName& name);
  /// Makes `key` the encoded key that a value becomes, in `scratch` unless it lies in the row as it is; false: wrong
  /// type or size.
  static bool take_key(const Part& part, model::ValueView value, std::size_t size_bytes_max, model::Bytes& scratch,
                       std::string_view& key);
  bool projects(const model::RawName& name) const;
  struct Found;
  bool scan(const std::string_view& attributes, Scratch& scratch, Found& found) const;
  const Inherited& inherited_of(const std::string_view& attributes, Scratch& scratch) const;
  const model::TableSchema* schema_;
  const model::IndexSchema* index_;
  model::AttributeNames* names_;
  std::vector<model::NameId> included_;  ///< As index_->included.
  Part partition_;
  std::optional<Part> sort_;
  model::NameMask kept_ = model::NameMask::none();  ///< What the entry keeps of an item's attributes.
  bool joins_partition_key_ = true;  ///< Whether the table's keys stand in the entry's sort key: not if they are
  bool joins_sort_key_ = true;       ///< a key of the index already.
};

}  // namespace drover::store

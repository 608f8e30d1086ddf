#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "drover/model/attribute.h"
#include "drover/model/names.h"
#include "drover/store/item.h"
#include "drover/store/store.h"
#include "dynamodb/keys.h"
#include "dynamodb/request_expressions.h"
#include "expression/projection.h"

namespace drover::server {

/// What a page is to hold.
struct PageOptions {
  const expression::Condition* filter = nullptr;
  const std::vector<expression::Path>* projection = nullptr;
  std::uint64_t limit = UINT64_MAX;  ///< Items looked at, before the filter.
  bool count_only = false;
  bool all_attributes = false;  ///< Also those that a local index does not project.
};

/// One page of a Query or a Scan on its way into the answer: items are written straight from their rows.
///
/// A page ends at its limit, or with the item that takes it to 1 MB; then last_key() says where to go on.
class Page {
 public:
  /// Appends to `out`; everything must outlive the page.
  Page(const ReadTarget& target, const model::AttributeNames& names, const PageOptions& options, std::string& out);

  /// Takes the next item; false: the page has ended with it.
  bool add(const store::StoredItem& item);
  /// Ends the page with an item that was added last.
  void end(const store::StoredItem& item) { last_key_ = key_of(item); }

  std::uint64_t scanned() const { return scanned_; }
  std::uint64_t matched() const { return matched_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// The whole key of the item that ended the page; nothing if the page did not end by itself.
  const std::optional<model::Item>& last_key() const { return last_key_; }

 private:
  bool is_visible(std::string_view attribute) const;
  bool passes(const store::StoredItem& item);
  void write(const store::StoredItem& item);
  void write_attribute(std::string_view name, model::ValueView value);
  template <typename Use>
  void for_each_visible(const store::StoredItem& item, bool counted, Use use);
  model::Item key_of(const store::StoredItem& item);

  const ReadTarget& target_;
  const model::AttributeNames& names_;
  const PageOptions& options_;
  std::string& out_;
  store::ItemReader reader_;
  std::optional<std::vector<std::string>> visible_;  // sorted; nothing: all attributes
  std::vector<std::string> filtered_;                // attributes that the filter looks at, sorted
  std::optional<expression::Projection> projection_;

  bool first_attribute_ = true;
  std::uint64_t scanned_ = 0;
  std::uint64_t matched_ = 0;
  std::size_t size_bytes_ = 0;
  std::optional<model::Item> last_key_;
};

/// Adds the table's item of that key, if there is one.
void read_one(const store::Table& table, const EncodedKey& key, Page& page);

/// The items of a local index in its order: the table's collection, sorted anew. Keeps no more than one page of them.
class LocalIndexItems {
 public:
  /// `range` is of positions in the index, `limit` as in PageOptions.
  LocalIndexItems(const ReadTarget& target, const model::AttributeNames& names, const store::KeyRange& range,
                  bool ascending, std::uint64_t limit);

  /// Takes the table's items in any order.
  void add(const store::StoredItem& item);

  /// Adds what was kept to a page, in the index's order.
  void read(std::string_view partition_key, Page& page) const;

 private:
  const ReadTarget& target_;
  const model::AttributeNames& names_;
  const store::KeyRange& range_;
  const bool ascending_;
  const std::uint64_t limit_;
  std::map<model::Bytes, model::Bytes> rows_;  // by position
  std::size_t size_bytes_ = 0;                 // of rows_
  bool dropped_ = false;                       // there are more items than were kept
};

/// The encoded sort key that an item of the table has in a local index; nothing if the item is not in it.
std::optional<model::Bytes> local_index_key(const ReadTarget& target, const model::AttributeNames& names,
                                            const store::StoredItem& item);

}  // namespace drover::server

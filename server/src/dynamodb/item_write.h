#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "drover/model/attribute.h"
#include "drover/store/store.h"
#include "dynamodb/capacity.h"
#include "dynamodb/errors.h"
#include "dynamodb/keys.h"
#include "dynamodb/request_expressions.h"

namespace drover::server {

/// How large the item collection of a write is behind it.
struct CollectionMetrics {
  std::string key;  ///< The partition key: a JSON object.
  std::uint64_t size_bytes = 0;
};

/// `{"ItemCollectionKey":{…},"SizeEstimateRangeGB":[0.0,1.0]}`: between which whole numbers of GB the size lies.
void append_metrics(std::string& out, const CollectionMetrics& metrics);

/// One write of one item: what the request wants, and what came of it.
///
/// Threads: filled by the request's thread, then handed to submit(); from there on the store's writer has it, and
/// finally `finish`. Never more than one at a time.
struct ItemWrite {
  enum class Kind { kPut, kDelete, kUpdate };

  std::shared_ptr<store::Table> table;
  model::AttributeNames* names = nullptr;
  Kind kind = Kind::kPut;
  model::Item item;  ///< kPut: the whole item; otherwise the key.
  RequestExpressions expressions;
  bool wants_before = false;  ///< Whether `before` is needed for the answer.
  bool wants_after = false;   ///< Whether `after` is.
  bool wants_collection_size = false;
  bool return_on_failure = false;  ///< ReturnValuesOnConditionCheckFailure.

  model::Bytes encoded;  ///< kPut: the item's attributes as a row keeps them; submit() makes them.

  // What came of it.
  std::optional<ApiError> error;
  std::optional<model::Item> before;            ///< Nothing: no such item, or not looked at.
  std::optional<model::Item> after;             ///< Nothing: no such item, or not looked at.
  std::optional<CollectionMetrics> collection;  ///< Nothing: not asked for, or the table has no local index.

  /// Called once when the write can be read, or with the store's refusal.
  std::function<void(ItemWrite& write, const model::Status& status)> finish;
};

/// Hands a write to the store. Fails as store::Table::write() does; `finish` is then not called.
model::Status submit(const std::shared_ptr<ItemWrite>& write, EncodedKey key);

/// Refuses items that are larger than 400 KB; throws a ValidationException.
void check_item_size(const model::Item& item);

}  // namespace drover::server

#include "dynamodb/item_write.h"

#include <algorithm>
#include <utility>

#include "drover/model/limits.h"
#include "drover/model/value_view.h"
#include "dynamodb/attribute_reader.h"
#include "dynamodb/json_writer.h"
#include "expression/evaluate.h"
#include "expression/update.h"

namespace drover::server {
namespace {

using Decision = store::ItemWrite::Decision;
using Action = store::ItemWrite::Action;

/// All attributes but the key's, as a row keeps them.
model::Bytes encode_attributes(const ItemWrite& write, const model::Item& item) {
  model::Bytes out;
  for (const auto& [name, value] : item) {
    if (is_key_attribute(write.table->schema().key, name)) continue;
    model::append_name(out, name, *write.names);
    model::append_value(out, value, *write.names);
  }
  return out;
}

/// The item as it is: its stored attributes and the key that the request names.
model::Item decode_item(const ItemWrite& write, std::string_view attributes) {
  model::Item item;
  for (model::AttributeReader reader(attributes, *write.names); reader.next();) {
    item.emplace(reader.attribute().name, reader.attribute().value.to_value(*write.names));
  }
  for (const auto& [name, value] : write.item) {
    if (is_key_attribute(write.table->schema().key, name)) item.insert_or_assign(name, value);
  }
  return item;
}

Decision decide_put(ItemWrite& write) {
  Decision decision{Action::kPut, std::move(write.encoded)};
  if (write.wants_after) write.after = std::move(write.item);
  return decision;
}

Decision decide_update(ItemWrite& write) {
  const expression::Update* update = write.expressions.update ? &*write.expressions.update : nullptr;
  model::Item item = write.before ? *write.before : write.item;
  if (update != nullptr) {
    check(expression::apply(*update, item));
    if (!write.before && !update->actions.empty() && expression::only_removes(*update)) return {};
  }
  check_depth(item);
  check_index_keys(write.table->schema(), item,
                   write.expressions.legacy_update ? ItemOrigin::kRequest : ItemOrigin::kUpdateExpression);
  if (model::item_size_bytes(item) > model::kItemSizeBytesMax) {
    throw validation_error("Item size to update has exceeded the maximum allowed size");
  }
  Decision decision{Action::kPut, encode_attributes(write, item)};
  if (write.wants_after) write.after = std::move(item);
  return decision;
}

Decision decide(ItemWrite& write, std::optional<std::string_view> present) {
  const std::optional<expression::Condition>& condition = write.expressions.condition;
  const bool looks = condition || write.wants_before || write.kind == ItemWrite::Kind::kUpdate;
  if (present && looks) write.before = decode_item(write, *present);
  if (condition && !expression::matches(*condition, write.before ? *write.before : model::Item())) {
    throw condition_failed(write.return_on_failure ? std::move(write.before) : std::nullopt);
  }
  switch (write.kind) {
    case ItemWrite::Kind::kPut:
      return decide_put(write);
    case ItemWrite::Kind::kUpdate:
      return decide_update(write);
    case ItemWrite::Kind::kDelete:
      break;
  }
  return {present ? Action::kDelete : Action::kNone, {}};
}

}  // namespace

model::Status submit(const std::shared_ptr<ItemWrite>& write, EncodedKey key) {
  store::Table& table = *write->table;
  if (write->kind == ItemWrite::Kind::kPut) write->encoded = encode_attributes(*write, write->item);
  store::ItemWrite stored;
  stored.partition_key = std::move(key.partition_key);
  stored.sort_key = std::move(key.sort_key);
  stored.decide = [write](std::optional<std::string_view> present) -> Decision {
    try {
      return decide(*write, present);
    } catch (ApiError& error) {
      write->error = std::move(error);
    } catch (const std::exception&) {  // out of memory
      write->error = internal_error();
    }
    return {};
  };
  if (write->wants_collection_size) {
    const std::string& name = table.schema().key.partition_key.name;
    std::string partition_key;
    append_json_item(partition_key, {{name, write->item.at(name)}});
    stored.sized = [write, partition_key = std::move(partition_key)](std::uint64_t size_bytes) {
      write->collection = {partition_key, size_bytes};
    };
  }
  stored.done = [write](const model::Status& status) { write->finish(*write, status); };
  return table.write(std::move(stored));
}

void append_metrics(std::string& out, const CollectionMetrics& metrics) {
  constexpr std::uint64_t kGigabyte = std::uint64_t{1} << 30;
  out += "{\"ItemCollectionKey\":" + metrics.key + ",\"SizeEstimateRangeGB\":[";
  append_json_integer(out, metrics.size_bytes / kGigabyte);
  out += ".0,";
  append_json_integer(out, metrics.size_bytes / kGigabyte + 1);
  out += ".0]}";
}

void check_item_size(const model::Item& item) {
  if (model::item_size_bytes(item) > model::kItemSizeBytesMax) {
    throw validation_error("Item size has exceeded the maximum allowed size");
  }
}

}  // namespace drover::server

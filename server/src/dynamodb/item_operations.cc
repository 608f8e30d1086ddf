#include <utility>

#include "dynamodb/attribute_reader.h"
#include "dynamodb/capacity.h"
#include "dynamodb/item_write.h"
#include "dynamodb/json_writer.h"
#include "dynamodb/keys.h"
#include "dynamodb/operations.h"
#include "dynamodb/page.h"
#include "dynamodb/params.h"
#include "dynamodb/request_expressions.h"
#include "expression/projection.h"

namespace drover::server {
namespace {

enum class ReturnValues { kNone, kAllOld, kAllNew, kUpdatedOld, kUpdatedNew };

ReturnValues read_return_values(const json::object& request, Constraints& constraints) {
  const std::optional<std::string_view> given = find_string(request, "ReturnValues");
  constraints.one_of("returnValues", given, {"ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"});
  if (given == "ALL_NEW") return ReturnValues::kAllNew;
  if (given == "UPDATED_OLD") return ReturnValues::kUpdatedOld;
  if (given == "ALL_OLD") return ReturnValues::kAllOld;
  if (given == "UPDATED_NEW") return ReturnValues::kUpdatedNew;
  return ReturnValues::kNone;
}

/// What PutItem, DeleteItem and UpdateItem have in common.
struct WriteRequest {
  std::shared_ptr<ItemWrite> write = std::make_shared<ItemWrite>();
  ReturnValues returned = ReturnValues::kNone;
  CapacityReport capacity = CapacityReport::kNone;
};

/// `member` is the one that holds the item or its key.
WriteRequest read_write(store::Store& store, const json::object& request, ItemWrite::Kind kind, std::string_view member,
                        const ExpressionParameters& parameters) {
  WriteRequest read;
  Constraints constraints;
  const std::string_view table = table_name(request, constraints);
  const json::object* item = find_object(request, member, "AttributeValue");
  constraints.not_null(member == "Item" ? "item" : "key", item != nullptr);
  read.returned = read_return_values(request, constraints);
  read.capacity = capacity_report(request, constraints);
  read.write->wants_collection_size = wants_collection_metrics(request, constraints);
  const std::optional<std::string_view> on_failure = find_string(request, "ReturnValuesOnConditionCheckFailure");
  constraints.one_of("returnValuesOnConditionCheckFailure", on_failure, {"ALL_OLD", "NONE"});
  constraints.check();

  ItemWrite& write = *read.write;
  write.kind = kind;
  write.item = read_item(*item);
  if (kind != ItemWrite::Kind::kUpdate && read.returned != ReturnValues::kNone &&
      read.returned != ReturnValues::kAllOld) {
    throw validation_error("ReturnValues can only be ALL_OLD or NONE");
  }
  if (kind == ItemWrite::Kind::kPut) check_item_size(write.item);
  write.expressions = read_expressions(request, parameters);
  write.return_on_failure = on_failure == "ALL_OLD";
  const bool measured = read.capacity != CapacityReport::kNone;
  write.wants_before = measured || read.returned == ReturnValues::kAllOld || read.returned == ReturnValues::kUpdatedOld;
  write.wants_after = measured || read.returned == ReturnValues::kAllNew || read.returned == ReturnValues::kUpdatedNew;

  write.table = store.find_table(table);
  if (write.table == nullptr) throw table_not_found();
  write.names = &store.names();
  canonicalize_key(write.table->schema(), write.item);
  return read;
}

std::vector<expression::Path> touched_paths(const expression::Update& update) {
  std::vector<expression::Path> paths;
  for (const expression::UpdateAction& action : update.actions) paths.push_back(action.path);
  return paths;
}

/// What an answer gives back of the item; empty if nothing.
model::Item returned_attributes(const ItemWrite& write, ReturnValues returned) {
  const bool old = returned == ReturnValues::kAllOld || returned == ReturnValues::kUpdatedOld;
  const std::optional<model::Item>& item = old ? write.before : write.after;
  if (returned == ReturnValues::kNone || !item) return {};
  if (returned == ReturnValues::kAllOld || returned == ReturnValues::kAllNew) return *item;
  if (!write.expressions.update) return {};
  return expression::Projection(touched_paths(*write.expressions.update)).project(*item);
}

std::string write_answer(const ItemWrite& write, ReturnValues returned, CapacityReport capacity) {
  std::string out = "{";
  const model::Item attributes = returned_attributes(write, returned);
  if (!attributes.empty()) {
    out += "\"Attributes\":";
    append_json_item(out, attributes);
  }
  if (capacity != CapacityReport::kNone) {
    const ConsumedCapacity consumed = write_capacity(write.table->schema(), write.before ? &*write.before : nullptr,
                                                     write.after ? &*write.after : nullptr);
    if (out.size() > 1) out += ',';
    out += "\"ConsumedCapacity\":";
    append_capacity(out, consumed, capacity);
  }
  if (write.collection) {
    if (out.size() > 1) out += ',';
    out += "\"ItemCollectionMetrics\":";
    append_metrics(out, *write.collection);
  }
  out += '}';
  return out;
}

void submit(const WriteRequest& read, EncodedKey&& key, Reply&& reply) {
  read.write->finish = [reply = std::move(reply), returned = read.returned, capacity = read.capacity](
                           ItemWrite& write, const model::Status& status) {
    if (!status.ok()) return reply.fail(write_error(status));
    if (write.error) return reply.fail(*write.error);
    reply.ok(write_answer(write, returned, capacity));
  };
  const model::Status status = server::submit(read.write, std::move(key));
  if (!status.ok()) throw write_error(status);
}

/// The table's key stays as it is.
void check_update(const model::TableSchema& table, const RequestExpressions& expressions) {
  if (!expressions.update) return;
  const std::vector<expression::Path> paths = touched_paths(*expressions.update);
  for (const expression::Path& path : paths) {
    if (!is_key_attribute(table.key, path.head())) continue;
    throw invalid_parameter("Cannot update attribute " + path.head() + ". This attribute is part of the key");
  }
  check_scalar_keys(table, paths);
}

}  // namespace

std::string get_item(store::Store& store, const json::object& request) {
  static const ExpressionParameters kParameters{{"ProjectionExpression"}, {"AttributesToGet"}};
  Constraints constraints;
  const std::string_view name = table_name(request, constraints);
  const json::object* given = find_object(request, "Key", "AttributeValue");
  constraints.not_null("key", given != nullptr);
  const CapacityReport report = capacity_report(request, constraints);
  const bool consistent = find_bool(request, "ConsistentRead").value_or(false);
  constraints.check();
  model::Item key = read_item(*given);
  const RequestExpressions expressions = read_expressions(request, kParameters);
  const std::shared_ptr<store::Table> table = store.find_table(name);
  if (table == nullptr) throw table_not_found();

  const ReadTarget target{table->schema(), nullptr};
  PageOptions options;
  if (expressions.projection) {
    check_scalar_keys(target.table, *expressions.projection);
    options.projection = &*expressions.projection;
  }
  std::string out = "{\"Item\":";
  Page page(target, store.names(), options, out);
  read_one(*table, encode_key(target.table, key), page);
  if (page.matched() == 0) out.resize(1);
  if (report != CapacityReport::kNone) {
    ConsumedCapacity capacity;
    capacity.table = target.table.name;
    capacity.table_units = read_units(page.size_bytes(), consistent);
    if (out.size() > 1) out += ',';
    out += "\"ConsumedCapacity\":";
    append_capacity(out, capacity, report);
  }
  out += '}';
  return out;
}

void put_item(store::Store& store, const json::object& request, Reply reply) {
  static const ExpressionParameters kParameters{{"ConditionExpression"}, {"Expected", "ConditionalOperator"}};
  const WriteRequest read = read_write(store, request, ItemWrite::Kind::kPut, "Item", kParameters);
  EncodedKey key = encode_item_key(read.write->table->schema(), read.write->item);
  submit(read, std::move(key), std::move(reply));
}

void delete_item(store::Store& store, const json::object& request, Reply reply) {
  static const ExpressionParameters kParameters{{"ConditionExpression"}, {"Expected", "ConditionalOperator"}};
  const WriteRequest read = read_write(store, request, ItemWrite::Kind::kDelete, "Key", kParameters);
  EncodedKey key = encode_key(read.write->table->schema(), read.write->item);
  submit(read, std::move(key), std::move(reply));
}

void update_item(store::Store& store, const json::object& request, Reply reply) {
  static const ExpressionParameters kParameters{{"UpdateExpression", "ConditionExpression"},
                                                {"AttributeUpdates", "Expected", "ConditionalOperator"}};
  const WriteRequest read = read_write(store, request, ItemWrite::Kind::kUpdate, "Key", kParameters);
  EncodedKey key = encode_key(read.write->table->schema(), read.write->item);
  check_update(read.write->table->schema(), read.write->expressions);
  submit(read, std::move(key), std::move(reply));
}

}  // namespace drover::server

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <set>
#include <utility>

#include "drover/model/sync.h"
#include "dynamodb/attribute_reader.h"
#include "dynamodb/capacity.h"
#include "dynamodb/item_write.h"
#include "dynamodb/json_writer.h"
#include "dynamodb/keys.h"
#include "dynamodb/operations.h"
#include "dynamodb/page.h"
#include "dynamodb/params.h"
#include "dynamodb/request_expressions.h"

namespace drover::server {
namespace {

constexpr std::size_t kBatchWritesMax = 25;
constexpr std::size_t kBatchGetsMax = 100;
constexpr std::size_t kBatchGetSizeBytesMax = 16 * 1024 * 1024;

/// RequestItems, checked as far as both batches have it in common.
const json::object& request_items(const json::object& request, std::string_view type, Constraints& constraints) {
  const json::object* items = find_object(request, "RequestItems", type);
  constraints.not_null("requestItems", items != nullptr);
  if (items != nullptr && items->empty()) {
    constraints.fail("requestItems", "'{}'", "Member must have length greater than or equal to 1");
  }
  constraints.check();
  for (const auto& [table, requests] : *items) constraints.name("requestItems." + std::string(table), table);
  constraints.check();
  return *items;
}

void append_capacities(std::string& out, const std::map<std::string, ConsumedCapacity>& capacities,
                       CapacityReport report) {
  if (report == CapacityReport::kNone) return;
  out += ",\"ConsumedCapacity\":[";
  bool first = true;
  for (const auto& [table, capacity] : capacities) {
    if (!first) out += ',';
    first = false;
    append_capacity(out, capacity, report);
  }
  out += ']';
}

// --- BatchGetItem

/// The keys of one table, and how to read them.
struct TableGets {
  std::shared_ptr<store::Table> table;
  RequestExpressions expressions;
  std::vector<EncodedKey> keys;
  const json::array* given = nullptr;  // the same keys as they came
  const json::object* request = nullptr;
  bool consistent = false;
};

TableGets read_gets(store::Store& store, std::string_view name, const json::object& request) {
  static const ExpressionParameters kParameters{{"ProjectionExpression"}, {"AttributesToGet"}};
  TableGets gets;
  gets.request = &request;
  gets.given = find_array(request, "Keys");
  Constraints constraints;
  const std::string member = "requestItems." + std::string(name) + ".member.keys";
  constraints.not_null(member, gets.given != nullptr);
  if (gets.given != nullptr && gets.given->empty()) {
    constraints.fail(member, "'[]'", "Member must have length greater than or equal to 1");
  }
  if (gets.given != nullptr && gets.given->size() > kBatchGetsMax) {
    constraints.fail(member, "'" + json::serialize(*gets.given) + "'",
                     "Member must have length less than or equal to 100");
  }
  constraints.check();
  gets.consistent = find_bool(request, "ConsistentRead").value_or(false);
  gets.expressions = read_expressions(request, kParameters);
  std::vector<model::Item> keys;
  for (const json::value& key : *gets.given) keys.push_back(read_item(to_object(key, "AttributeValue")));
  gets.table = store.find_table(name);
  if (gets.table == nullptr) throw table_not_found();
  for (const model::Item& key : keys) gets.keys.push_back(encode_key(gets.table->schema(), key));
  std::vector<EncodedKey> sorted = gets.keys;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw validation_error("Provided list of item keys contains duplicates");
  }
  return gets;
}

/// What an unprocessed table's entry holds besides its keys.
std::string get_settings(const json::object& request) {
  json::object rest = request;
  rest.erase("Keys");
  std::string out = json::serialize(rest);
  out.pop_back();
  return out + (rest.empty() ? "" : ",") + "\"Keys\":[";
}

// --- BatchWriteItem

/// `"table":[request,…]` for each table of which something was left.
class Leftovers {
 public:
  void add(std::string_view table, const std::string& json) {
    std::string& list = by_table_[std::string(table)];
    if (!list.empty()) list += ',';
    list += json;
  }
  void append(std::string& out) const {
    out += '{';
    bool first = true;
    for (const auto& [table, list] : by_table_) {
      if (!first) out += ',';
      first = false;
      append_json_string(out, table);
      out += ":[" + list + ']';
    }
    out += '}';
  }

 private:
  std::map<std::string, std::string> by_table_;
};

/// A batch under way: its writes finish one by one, the last one answers.
///
/// Threads: finish() from any.
class BatchWrite {
 public:
  BatchWrite(Reply reply, CapacityReport capacity, std::size_t writes)
      : reply_(std::move(reply)), capacity_(capacity), pending_(writes), writes_(writes) {}

  void finish(const ItemWrite& write, const model::Status& status) {
    model::LockGuard lock(mutex_);
    if (!status.ok()) error_ = write_error(status);
    if (write.error) error_ = *write.error;
    if (capacity_ != CapacityReport::kNone && status.ok()) {
      const ConsumedCapacity used = write_capacity(write.table->schema(), write.before ? &*write.before : nullptr,
                                                   write.after ? &*write.after : nullptr);
      const auto [sum, fresh] = capacities_.emplace(used.table, used);
      if (!fresh) add(sum->second, used);
      tables_.push_back(write.table);
    }
    if (write.collection && status.ok()) {
      std::uint64_t& size_bytes = collections_[write.table->schema().name][write.collection->key];
      size_bytes = std::max(size_bytes, write.collection->size_bytes);
    }
    end_one();
  }

  /// The store took no more.
  void leave_over(std::string_view table, const std::string& request) {
    model::LockGuard lock(mutex_);
    leftovers_.add(table, request);
    ++left_over_;
    end_one();
  }

 private:
  void end_one() REQUIRES_LOCK(mutex_) {
    if (--pending_ > 0) return;
    if (error_) return reply_.fail(*error_);
    if (left_over_ == writes_) return reply_.fail(throttled());
    std::string out = "{\"UnprocessedItems\":";
    leftovers_.append(out);
    append_capacities(out, capacities_, capacity_);
    append_collections(out);
    out += '}';
    reply_.ok(std::move(out));
  }

  void append_collections(std::string& out) const REQUIRES_LOCK(mutex_) {
    if (collections_.empty()) return;
    out += ",\"ItemCollectionMetrics\":{";
    for (const auto& [table, sizes] : collections_) {
      if (out.back() != '{') out += ',';
      append_json_string(out, table);
      out += ":[";
      for (const auto& [key, size_bytes] : sizes) {
        if (out.back() != '[') out += ',';
        append_metrics(out, {key, size_bytes});
      }
      out += ']';
    }
    out += '}';
  }

  const Reply reply_;
  const CapacityReport capacity_;
  model::Mutex mutex_;
  std::size_t pending_ GUARDED_BY(mutex_);
  const std::size_t writes_;
  std::size_t left_over_ GUARDED_BY(mutex_) = 0;
  Leftovers leftovers_ GUARDED_BY(mutex_);
  std::map<std::string, ConsumedCapacity> capacities_ GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<store::Table>> tables_ GUARDED_BY(mutex_);  // whose names capacities_ refers to
  /// By table and partition key: the largest size that a write of the batch saw.
  std::map<std::string, std::map<std::string, std::uint64_t>> collections_ GUARDED_BY(mutex_);
  std::optional<ApiError> error_ GUARDED_BY(mutex_);
};

struct PreparedWrite {
  std::shared_ptr<ItemWrite> write;
  EncodedKey key;
  const json::value* request = nullptr;
};

PreparedWrite read_batch_write(const json::value& request) {
  PreparedWrite prepared{std::make_shared<ItemWrite>(), {}, &request};
  const json::object& given = to_object(request, "WriteRequest");
  const json::object* put = find_object(given, "PutRequest", "PutRequest");
  const json::object* erase = find_object(given, "DeleteRequest", "DeleteRequest");
  if ((put != nullptr) == (erase != nullptr)) {
    throw validation_error(
        "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes");
  }
  const json::object* item =
      put != nullptr ? find_object(*put, "Item", "AttributeValue") : find_object(*erase, "Key", "AttributeValue");
  Constraints constraints;
  constraints.not_null(put != nullptr ? "requestItems.member.putRequest.item" : "requestItems.member.deleteRequest.key",
                       item != nullptr);
  constraints.check();
  prepared.write->kind = put != nullptr ? ItemWrite::Kind::kPut : ItemWrite::Kind::kDelete;
  prepared.write->item = read_item(*item);
  if (put != nullptr) check_item_size(prepared.write->item);
  return prepared;
}

/// In a batch a missing or wrongly typed key is the same error for puts as it is for deletes.
EncodedKey batch_key(const ItemWrite& write) {
  const model::TableSchema& table = write.table->schema();
  if (write.kind == ItemWrite::Kind::kDelete) return encode_key(table, write.item);
  for (const model::KeyAttribute* attribute :
       {&table.key.partition_key, table.key.sort_key ? &*table.key.sort_key : nullptr}) {
    if (attribute == nullptr) continue;
    const auto found = write.item.find(attribute->name);
    if (found == write.item.end() || found->second.type != expression::attribute_type(attribute->type)) {
      throw validation_error("The provided key element does not match the schema");
    }
  }
  return encode_item_key(table, write.item);
}

const json::array& batch_writes_of(std::string_view table, const json::value& requests) {
  if (requests.is_object()) throw serialization_error("Start of structure or map found where not expected");
  if (!requests.is_array()) throw serialization_error("Unexpected field type");
  const json::array& list = requests.get_array();
  if (list.empty() || list.size() > kBatchWritesMax) {
    Constraints constraints;
    json::object given;
    given.emplace(table, list);
    constraints.fail(
        "requestItems", "'" + json::serialize(given) + "'",
        "Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must "
        "have length greater than or equal to 1]");
    constraints.check();
  }
  return list;
}

}  // namespace

std::string batch_get_item(store::Store& store, const json::object& request) {
  Constraints constraints;
  const CapacityReport report = capacity_report(request, constraints);
  std::vector<TableGets> tables;
  std::size_t keys = 0;
  for (const auto& [name, value] : request_items(request, "KeysAndAttributes", constraints)) {
    tables.push_back(read_gets(store, name, to_object(value, "KeysAndAttributes")));
    keys += tables.back().keys.size();
    if (keys > kBatchGetsMax) throw validation_error("Too many items requested for the BatchGetItem call");
  }

  std::string out = "{\"Responses\":{";
  std::string unprocessed;
  std::map<std::string, ConsumedCapacity> capacities;
  std::size_t size_bytes = 0;
  for (const TableGets& gets : tables) {
    const ReadTarget target{gets.table->schema(), nullptr};
    PageOptions options;
    if (gets.expressions.projection) options.projection = &*gets.expressions.projection;
    ConsumedCapacity& capacity = capacities[target.table.name];
    capacity.table = target.table.name;
    if (&gets != &tables.front()) out += ',';
    append_json_string(out, target.table.name);
    out += ":[";
    std::string left;
    bool first = true;
    for (std::size_t i = 0; i < gets.keys.size(); ++i) {
      if (size_bytes >= kBatchGetSizeBytesMax) {
        left += (left.empty() ? "" : ",") + json::serialize((*gets.given)[i]);
        continue;
      }
      std::string item;
      Page page(target, store.names(), options, item);
      read_one(*gets.table, gets.keys[i], page);
      size_bytes += page.size_bytes();
      capacity.table_units += read_units(page.size_bytes(), gets.consistent);
      if (page.matched() == 0) continue;
      if (!first) out += ',';
      first = false;
      out += item;
    }
    out += ']';
    if (left.empty()) continue;
    if (!unprocessed.empty()) unprocessed += ',';
    append_json_string(unprocessed, target.table.name);
    unprocessed += ':' + get_settings(*gets.request) + left + "]}";
  }
  out += "},\"UnprocessedKeys\":{" + unprocessed + '}';
  append_capacities(out, capacities, report);
  out += '}';
  return out;
}

void batch_write_item(store::Store& store, const json::object& request, Reply reply) {
  Constraints constraints;
  const CapacityReport report = capacity_report(request, constraints);
  const bool sized = wants_collection_metrics(request, constraints);
  std::vector<PreparedWrite> writes;
  for (const auto& [name, requests] : request_items(request, "WriteRequest", constraints)) {
    const std::size_t first = writes.size();
    for (const json::value& each : batch_writes_of(name, requests)) writes.push_back(read_batch_write(each));
    if (writes.size() > kBatchWritesMax) throw validation_error("Too many items requested for the BatchWriteItem call");
    const std::shared_ptr<store::Table> table = store.find_table(name);
    if (table == nullptr) throw table_not_found();
    std::set<EncodedKey> keys;
    for (std::size_t i = first; i < writes.size(); ++i) {
      ItemWrite& write = *writes[i].write;
      write.table = table;
      write.names = &store.names();
      write.wants_before = write.wants_after = report != CapacityReport::kNone;
      write.wants_collection_size = sized;
      canonicalize_key(table->schema(), write.item);
      writes[i].key = batch_key(write);
      if (!keys.insert(writes[i].key).second) {
        throw validation_error("Provided list of item keys contains duplicates");
      }
    }
  }

  const auto batch = std::make_shared<BatchWrite>(std::move(reply), report, writes.size());
  for (PreparedWrite& prepared : writes) {
    prepared.write->finish = [batch](ItemWrite& write, const model::Status& status) { batch->finish(write, status); };
    const model::Status status = submit(prepared.write, std::move(prepared.key));
    if (!status.ok()) batch->leave_over(prepared.write->table->schema().name, json::serialize(*prepared.request));
  }
}

}  // namespace drover::server

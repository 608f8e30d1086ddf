#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <utility>

#include "drover/model/key.h"
#include "dynamodb/json_writer.h"
#include "dynamodb/keys.h"
#include "dynamodb/operations.h"
#include "dynamodb/params.h"

namespace drover::server {
namespace {

constexpr std::int64_t kTableNamesMax = 100;
constexpr std::int64_t kCapacityUnitsMax = 1'000'000'000'000;

// --- CreateTable

/// The attribute definitions and key schemas of a CreateTable as they came; what they refer to is checked later.
struct Definition {
  std::string name;
  model::KeyType type = model::KeyType::kString;
};
struct GivenKey {
  std::vector<std::string> names;
  std::vector<std::string> types;  // HASH, RANGE
};

std::string text_list(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

std::string required_string(const json::object& object, std::string_view name, const std::string& member,
                            Constraints& constraints) {
  const std::optional<std::string_view> value = find_string(object, name);
  constraints.not_null(member, value.has_value());
  return std::string(value.value_or(""));
}

std::vector<Definition> read_definitions(const json::object& request, Constraints& constraints) {
  std::vector<Definition> out;
  const json::array* given = find_array(request, "AttributeDefinitions");
  constraints.not_null("attributeDefinitions", given != nullptr);
  if (given == nullptr) return out;
  for (const json::value& each : *given) {
    const json::object& definition = to_object(each, "AttributeDefinition");
    const std::string member = "attributeDefinitions." + std::to_string(out.size() + 1) + ".member.";
    Definition read;
    read.name = required_string(definition, "AttributeName", member + "attributeName", constraints);
    const std::string type = required_string(definition, "AttributeType", member + "attributeType", constraints);
    if (!type.empty()) constraints.one_of(member + "attributeType", type, {"B", "N", "S"});
    if (!read.name.empty()) constraints.length(member + "attributeName", read.name, 1, 255);
    read.type = type == "N" ? model::KeyType::kNumber : type == "B" ? model::KeyType::kBinary : model::KeyType::kString;
    out.push_back(std::move(read));
  }
  return out;
}

GivenKey read_key_schema(const json::object& object, const std::string& member, Constraints& constraints) {
  GivenKey out;
  const json::array* given = find_array(object, "KeySchema");
  constraints.not_null(member, given != nullptr);
  if (given == nullptr) return out;
  if (given->empty()) constraints.fail(member, "'[]'", "Member must have length greater than or equal to 1");
  if (given->size() > 2) {
    constraints.fail(member, "'[" + std::to_string(given->size()) + " elements]'",
                     "Member must have length less than or equal to 2");
  }
  for (const json::value& each : *given) {
    const json::object& element = to_object(each, "KeySchemaElement");
    const std::string place = member + "." + std::to_string(out.names.size() + 1) + ".member.";
    out.names.push_back(required_string(element, "AttributeName", place + "attributeName", constraints));
    out.types.push_back(required_string(element, "KeyType", place + "keyType", constraints));
    if (!out.names.back().empty()) constraints.length(place + "attributeName", out.names.back(), 1, 255);
    if (!out.types.back().empty()) constraints.one_of(place + "keyType", out.types.back(), {"HASH", "RANGE"});
  }
  return out;
}

/// `index` tells the words for a key attribute that is not defined: DynamoDB has different ones for a table's.
model::KeySchema to_key_schema(const GivenKey& given, const std::vector<Definition>& definitions, bool index) {
  std::vector<std::string> defined(definitions.size());
  std::transform(definitions.begin(), definitions.end(), defined.begin(),
                 [](const Definition& each) { return each.name; });
  if (!index && given.names.size() > defined.size()) {
    throw validation_error("Invalid KeySchema: Some index key attribute have no definition");
  }
  const auto find = [&](const std::string& name) {
    const auto found =
        std::find_if(definitions.begin(), definitions.end(), [&](const Definition& each) { return each.name == name; });
    if (found == definitions.end()) {
      throw invalid_parameter("Some index key attributes are not defined in AttributeDefinitions. Keys: [" +
                              text_list(given.names) + "], AttributeDefinitions: [" + text_list(defined) + "]");
    }
    return model::KeyAttribute{found->name, found->type};
  };
  model::KeySchema key;
  key.partition_key = find(given.names[0]);
  if (given.names.size() > 1) key.sort_key = find(given.names[1]);
  if (given.names.size() > 1 && given.names[0] == given.names[1]) {
    throw validation_error("Both the Hash Key and the Range Key element in the KeySchema have the same name");
  }
  if (given.types[0] != "HASH") {
    throw validation_error("Invalid KeySchema: The first KeySchemaElement is not a HASH key type");
  }
  if (given.types.size() > 1 && given.types[1] != "RANGE") {
    throw validation_error("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type");
  }
  return key;
}

void read_projection(const json::object& index, const std::string& member, model::IndexSchema& out,
                     Constraints& constraints) {
  const json::object* projection = find_object(index, "Projection", "Projection");
  constraints.not_null(member + "projection", projection != nullptr);
  if (projection == nullptr) return;
  const std::optional<std::string_view> type = find_string(*projection, "ProjectionType");
  constraints.one_of(member + "projection.projectionType", type, {"ALL", "INCLUDE", "KEYS_ONLY"});
  const json::array* names = find_array(*projection, "NonKeyAttributes");
  if (names != nullptr && names->empty()) {
    constraints.fail(member + "projection.nonKeyAttributes", "'[]'",
                     "Member must have length greater than or equal to 1");
  }
  constraints.check();
  if (!type) throw invalid_parameter("Unknown ProjectionType: null");
  out.projection = *type == "INCLUDE"     ? model::ProjectionType::kInclude
                   : *type == "KEYS_ONLY" ? model::ProjectionType::kKeysOnly
                                          : model::ProjectionType::kAll;
  if (names == nullptr) return;
  if (*type != "INCLUDE") {
    throw invalid_parameter("ProjectionType is " + std::string(*type) + ", but NonKeyAttributes is specified");
  }
  for (const json::value& name : *names) {
    out.included.emplace_back(to_string(name));
    constraints.length(member + "projection.nonKeyAttributes.member", out.included.back(), 1, 255);
  }
  constraints.check();
}

std::string read_index_name(const json::object& object, const std::string& member, Constraints& constraints) {
  std::string name = required_string(object, "IndexName", member + "indexName", constraints);
  if (!name.empty()) constraints.name(member + "indexName", name);
  return name;
}

model::IndexSchema read_index(const json::object& object, const std::string& member,
                              const std::vector<Definition>& definitions) {
  Constraints constraints;
  model::IndexSchema index;
  index.name = read_index_name(object, member, constraints);
  const GivenKey key = read_key_schema(object, member + "keySchema", constraints);
  constraints.check();
  index.key = to_key_schema(key, definitions, true);
  read_projection(object, member, index, constraints);
  return index;
}

void read_indexes(const json::object& request, std::string_view parameter, const std::vector<Definition>& definitions,
                  bool pay_per_request, model::TableSchema& schema) {
  const json::array* given = find_array(request, parameter);
  if (given == nullptr) return;
  if (given->empty()) throw invalid_parameter("List of " + std::string(parameter) + " is empty");
  const bool local = parameter == "LocalSecondaryIndexes";
  const std::string list = local ? "localSecondaryIndexes." : "globalSecondaryIndexes.";
  std::size_t number = 0;
  for (const json::value& each : *given) {
    const json::object& object = to_object(each, local ? "LocalSecondaryIndex" : "GlobalSecondaryIndex");
    model::IndexSchema index = read_index(object, list + std::to_string(++number) + ".member.", definitions);
    index.local = local;
    if (pay_per_request && find_object(object, "ProvisionedThroughput", "ProvisionedThroughput") != nullptr) {
      throw invalid_parameter("ProvisionedThroughput should not be specified for index: " + index.name +
                              " when BillingMode is PAY_PER_REQUEST");
    }
    schema.indexes.push_back(std::move(index));
  }
}

/// Whether the table is paid per request. Checked as DynamoDB does; Drover keeps no provisioned throughput.
bool read_billing(const json::object& request, Constraints& constraints) {
  const std::optional<std::string_view> mode = find_string(request, "BillingMode");
  constraints.one_of("billingMode", mode, {"PROVISIONED", "PAY_PER_REQUEST"});
  const json::object* throughput = find_object(request, "ProvisionedThroughput", "ProvisionedThroughput");
  std::optional<std::int64_t> read;
  std::optional<std::int64_t> write;
  if (throughput != nullptr) {
    read = find_integer(*throughput, "ReadCapacityUnits");
    write = find_integer(*throughput, "WriteCapacityUnits");
    constraints.not_null("provisionedThroughput.writeCapacityUnits", write.has_value());
    constraints.not_null("provisionedThroughput.readCapacityUnits", read.has_value());
    constraints.at_least("provisionedThroughput.writeCapacityUnits", write, 1);
    constraints.at_least("provisionedThroughput.readCapacityUnits", read, 1);
  }
  constraints.check();
  if (mode == "PAY_PER_REQUEST") {
    if (throughput == nullptr) return true;
    throw invalid_parameter(
        "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST");
  }
  if (throughput == nullptr) {
    throw invalid_parameter(
        "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED");
  }
  const std::pair<const char*, std::int64_t> units[] = {{"ReadCapacityUnits", *read}, {"WriteCapacityUnits", *write}};
  for (const auto& [name, value] : units) {
    if (value > kCapacityUnitsMax) {
      throw validation_error("Given value " + std::to_string(value) + " for " + name + " is out of bounds");
    }
  }
  return false;
}

/// Each attribute is defined once, and for the sake of a key.
void check_definitions(const std::vector<Definition>& definitions, const model::TableSchema& schema) {
  std::vector<std::string> names;
  for (const Definition& definition : definitions) {
    if (std::find(names.begin(), names.end(), definition.name) != names.end()) {
      throw invalid_parameter("Duplicate AttributeName in AttributeDefinitions: " + definition.name);
    }
    names.push_back(definition.name);
  }
  const auto used = [&](const std::string& name) {
    return is_key_attribute(schema.key, name) ||
           std::any_of(schema.indexes.begin(), schema.indexes.end(),
                       [&](const model::IndexSchema& index) { return is_key_attribute(index.key, name); });
  };
  if (std::all_of(names.begin(), names.end(), used)) return;
  if (schema.indexes.empty()) {
    throw invalid_parameter(
        "Number of attributes in KeySchema does not exactly match number of attributes defined in "
        "AttributeDefinitions");
  }
  std::vector<std::string> keys;
  for (const std::string& name : names) {
    if (used(name)) keys.push_back(name);
  }
  throw invalid_parameter("Some AttributeDefinitions are not used. AttributeDefinitions: [" + text_list(names) +
                          "], keys used: [" + text_list(keys) + "]");
}

model::TableSchema read_schema(const json::object& request) {
  Constraints constraints;
  model::TableSchema schema;
  schema.name = table_name(request, constraints);
  const std::vector<Definition> definitions = read_definitions(request, constraints);
  const GivenKey key = read_key_schema(request, "keySchema", constraints);
  const bool pay_per_request = read_billing(request, constraints);
  schema.key = to_key_schema(key, definitions, false);
  read_indexes(request, "LocalSecondaryIndexes", definitions, pay_per_request, schema);
  read_indexes(request, "GlobalSecondaryIndexes", definitions, pay_per_request, schema);
  check_definitions(definitions, schema);
  return schema;
}

// --- UpdateTable

/// One element of GlobalSecondaryIndexUpdates.
struct IndexUpdate {
  enum class Action { kUpdate, kCreate, kDelete };
  Action action = Action::kUpdate;
  const json::object* object = nullptr;
  std::string member;  ///< "globalSecondaryIndexUpdates.1.member.create."
  std::string index;
};

std::vector<IndexUpdate> read_index_updates(const json::array& given, Constraints& constraints) {
  constexpr std::pair<const char*, IndexUpdate::Action> kActions[] = {{"Update", IndexUpdate::Action::kUpdate},
                                                                      {"Create", IndexUpdate::Action::kCreate},
                                                                      {"Delete", IndexUpdate::Action::kDelete}};
  std::vector<IndexUpdate> updates;
  for (const json::value& each : given) {
    const json::object& element = to_object(each, "GlobalSecondaryIndexUpdate");
    IndexUpdate update;
    for (const auto& [name, action] : kActions) {
      const json::object* object = find_object(element, name, std::string(name) + "GlobalSecondaryIndexAction");
      if (object == nullptr) continue;
      if (update.object != nullptr) {
        throw invalid_parameter(
            "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object");
      }
      update.action = action;
      update.object = object;
      update.member = "globalSecondaryIndexUpdates." + std::to_string(updates.size() + 1) + ".member." +
                      static_cast<char>(name[0] + ('a' - 'A')) + (name + 1) + '.';
    }
    if (update.object == nullptr) {
      throw invalid_parameter(
          "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
          "GlobalSecondaryIndexUpdate.Delete must not be null");
    }
    update.index = read_index_name(*update.object, update.member, constraints);
    updates.push_back(std::move(update));
  }
  constraints.check();
  for (auto update = updates.begin(); update != updates.end(); ++update) {
    const bool again =
        std::any_of(updates.begin(), update, [&](const IndexUpdate& other) { return other.index == update->index; });
    if (!again) continue;
    throw invalid_parameter("Only one global secondary index update per index is allowed simultaneously. Index: " +
                            update->index);
  }
  return updates;
}

/// Refuses what DynamoDB refuses of changes to a table's indexes as it stands.
void check_index_updates(const store::Table& table, const model::TableSchema& schema,
                         const std::vector<IndexUpdate>& updates) {
  std::size_t at_once = 0;
  for (const IndexUpdate& update : updates) at_once += update.action != IndexUpdate::Action::kUpdate;
  const bool creates = std::any_of(updates.begin(), updates.end(), [](const IndexUpdate& update) {
    return update.action == IndexUpdate::Action::kCreate;
  });
  // A deletion ends a creation that is under way.
  if (creates) {
    at_once += static_cast<std::size_t>(std::count_if(schema.indexes.begin(), schema.indexes.end(),
                                                      [&](const auto& index) { return table.is_filling(index.name); }));
  }
  if (at_once > 1) {
    throw limit_exceeded(
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table");
  }
  for (const IndexUpdate& update : updates) {
    const model::IndexSchema* index = schema.find_index(update.index);
    if (update.action == IndexUpdate::Action::kCreate) {
      if (index != nullptr) throw validation_error("Attempting to create an index which already exists");
      const auto global = std::count_if(schema.indexes.begin(), schema.indexes.end(),
                                        [](const model::IndexSchema& each) { return !each.local; });
      if (global < model::kGlobalIndexesMax) continue;
      throw limit_exceeded("GlobalSecondaryIndex count exceeds the per-table limit of 20");
    }
    if (index == nullptr) throw table_not_found();
    if (index->local) {
      throw validation_error(std::string("Cannot ") +
                             (update.action == IndexUpdate::Action::kDelete ? "delete" : "update") +
                             " an index that is not a GlobalSecondaryIndex: " + update.index);
    }
  }
}

// --- descriptions

std::string_view type_letter(model::KeyType type) {
  return model::wire_name(expression::attribute_type(type));
}

void append_definitions(std::string& out, const model::TableSchema& schema) {
  std::vector<const model::KeyAttribute*> attributes;
  const auto add = [&](const model::KeySchema& key) {
    for (const model::KeyAttribute* attribute : {&key.partition_key, key.sort_key ? &*key.sort_key : nullptr}) {
      if (attribute == nullptr) continue;
      const bool there = std::any_of(attributes.begin(), attributes.end(),
                                     [&](const auto* each) { return each->name == attribute->name; });
      if (!there) attributes.push_back(attribute);
    }
  };
  add(schema.key);
  for (const model::IndexSchema& index : schema.indexes) add(index.key);
  out += "\"AttributeDefinitions\":[";
  for (const model::KeyAttribute* attribute : attributes) {
    if (attribute != attributes.front()) out += ',';
    out += "{\"AttributeName\":";
    append_json_string(out, attribute->name);
    out.append(",\"AttributeType\":\"").append(type_letter(attribute->type)).append("\"}");
  }
  out += ']';
}

void append_key_schema(std::string& out, const model::KeySchema& key) {
  out += ",\"KeySchema\":[{\"AttributeName\":";
  append_json_string(out, key.partition_key.name);
  out += ",\"KeyType\":\"HASH\"}";
  if (key.sort_key) {
    out += ",{\"AttributeName\":";
    append_json_string(out, key.sort_key->name);
    out += ",\"KeyType\":\"RANGE\"}";
  }
  out += ']';
}

/// Provisioned throughput is not Drover's: zeros, as DynamoDB shows for a table paid per request.
void append_throughput(std::string& out) {
  out += ",\"ProvisionedThroughput\":{\"NumberOfDecreasesToday\":0,\"ReadCapacityUnits\":0,\"WriteCapacityUnits\":0}";
}

std::string table_arn(const model::TableSchema& schema) {
  return "arn:aws:dynamodb:us-east-1:000000000000:table/" + schema.name;
}

/// `deleting`: the name of an index that is about to go; empty: none.
void append_index(std::string& out, const store::Table& table, const model::IndexSchema& index,
                  std::string_view deleting) {
  out += "{\"IndexName\":";
  append_json_string(out, index.name);
  append_key_schema(out, index.key);
  out += ",\"Projection\":{\"ProjectionType\":";
  out += index.projection == model::ProjectionType::kAll        ? "\"ALL\""
         : index.projection == model::ProjectionType::kKeysOnly ? "\"KEYS_ONLY\""
                                                                : "\"INCLUDE\",\"NonKeyAttributes\":[";
  if (index.projection == model::ProjectionType::kInclude) {
    for (const std::string& name : index.included) {
      if (&name != &index.included.front()) out += ',';
      append_json_string(out, name);
    }
    out += ']';
  }
  out += "},\"IndexArn\":";
  append_json_string(out, table_arn(table.schema()) + "/index/" + index.name);
  const store::Table::Size size = index.local ? store::Table::Size{} : table.size(index.name);
  out += ",\"ItemCount\":";
  append_json_integer(out, size.items);
  out += ",\"IndexSizeBytes\":";
  append_json_integer(out, size.bytes);
  if (!index.local) {
    const bool filling = table.is_filling(index.name);
    out += index.name == deleting ? ",\"IndexStatus\":\"DELETING\""
           : filling              ? ",\"IndexStatus\":\"CREATING\",\"Backfilling\":true"
                                  : ",\"IndexStatus\":\"ACTIVE\"";
    append_throughput(out);
  }
  out += '}';
}

void append_indexes(std::string& out, const store::Table& table, const model::TableSchema& schema, bool local,
                    std::string_view deleting) {
  bool any = false;
  for (const model::IndexSchema& index : schema.indexes) {
    if (index.local != local) continue;
    out += any ? "," : local ? ",\"LocalSecondaryIndexes\":[" : ",\"GlobalSecondaryIndexes\":[";
    any = true;
    append_index(out, table, index, deleting);
  }
  if (any) out += ']';
}

/// One id for a table's life: from its name and the time of its making.
std::string table_id(const store::Table& table) {
  const std::string seed = table.schema().name + '/' + std::to_string(table.created_ms());
  const model::KeyHash high = model::hash_key(seed);
  const model::KeyHash low = model::hash_key(seed + '/');
  std::array<char, 40> text;
  const int size =
      std::snprintf(text.data(), text.size(), "%08x-%04x-4%03x-8%03x-%012llx", static_cast<unsigned>(high >> 32),
                    static_cast<unsigned>(high >> 16 & 0xffff), static_cast<unsigned>(high & 0xfff),
                    static_cast<unsigned>(low >> 52), static_cast<unsigned long long>(low & 0xffff'ffff'ffff));
  return {text.data(), static_cast<std::size_t>(size)};
}

void append_seconds(std::string& out, std::int64_t time_ms) {
  std::array<char, 32> text;
  const double seconds = static_cast<double>(time_ms) / 1000;
  out.append(text.data(),
             std::to_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed, 3).ptr);
}

std::string description(const store::Table& table, std::string_view member, std::string_view status,
                        std::string_view deleting = {}) {
  const model::TableSchema& schema = table.schema();
  std::string out = "{\"" + std::string(member) + "\":{";
  append_definitions(out, schema);
  out += ",\"TableName\":";
  append_json_string(out, schema.name);
  append_key_schema(out, schema.key);
  out.append(",\"TableStatus\":\"").append(status).append("\",\"CreationDateTime\":");
  append_seconds(out, table.created_ms());
  append_throughput(out);
  const store::Table::Size size = table.size("");
  out += ",\"TableSizeBytes\":";
  append_json_integer(out, size.bytes);
  out += ",\"ItemCount\":";
  append_json_integer(out, size.items);
  out += ",\"TableArn\":";
  append_json_string(out, table_arn(schema));
  out += ",\"TableId\":\"" + table_id(table) + "\",\"BillingModeSummary\":{\"BillingMode\":\"PAY_PER_REQUEST\"}";
  append_indexes(out, table, schema, true, deleting);
  append_indexes(out, table, schema, false, deleting);
  out += "}}";
  return out;
}

std::shared_ptr<store::Table> find_named_table(store::Store& store, const json::object& request) {
  Constraints constraints;
  const std::string_view name = table_name(request, constraints);
  constraints.check();
  std::shared_ptr<store::Table> table = store.find_table(name);
  if (table == nullptr) throw table_not_found(name);
  return table;
}

}  // namespace

std::string create_table(store::Store& store, const json::object& request) {
  const model::TableSchema schema = read_schema(request);
  const model::Result<std::shared_ptr<store::Table>> table = store.create_table(schema);
  if (!table.ok() && table.status().code() == model::StatusCode::kExists) throw table_in_use(schema.name);
  check(table.ok() ? model::Status{} : table.status());
  return description(**table, "TableDescription", "ACTIVE");
}

std::string update_table(store::Store& store, const json::object& request) {
  Constraints constraints;
  const std::string name(table_name(request, constraints));
  constraints.one_of("billingMode", find_string(request, "BillingMode"), {"PROVISIONED", "PAY_PER_REQUEST"});
  const json::array* given = find_array(request, "GlobalSecondaryIndexUpdates");
  const std::vector<Definition> definitions = find_array(request, "AttributeDefinitions") != nullptr
                                                  ? read_definitions(request, constraints)
                                                  : std::vector<Definition>{};
  const bool throughput = find_member(request, "BillingMode") != nullptr ||
                          find_object(request, "ProvisionedThroughput", "ProvisionedThroughput") != nullptr;
  const std::vector<IndexUpdate> updates =
      given != nullptr ? read_index_updates(*given, constraints) : std::vector<IndexUpdate>{};
  constraints.check();
  // Drover keeps no throughput: a change of it alone changes nothing.
  if (updates.empty() && !throughput) {
    throw validation_error(
        "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates or "
        "SSESpecification or ReplicaUpdates is required");
  }
  const std::shared_ptr<store::Table> table = store.find_table(name);
  if (table == nullptr) throw table_not_found(name);
  const model::TableSchema& schema = table->schema();
  check_index_updates(*table, schema, updates);
  std::string answer;
  for (const IndexUpdate& update : updates) {
    model::Status status;
    if (update.action == IndexUpdate::Action::kCreate) {
      if (definitions.empty()) {
        throw invalid_parameter("AttributeDefinitions is not specified for index: " + update.index);
      }
      model::TableSchema changed = schema;
      changed.indexes.push_back(read_index(*update.object, update.member, definitions));
      check_definitions(definitions, changed);
      status = store.create_index(name, changed.indexes.back());
      if (status.code() == model::StatusCode::kExists) {  // another call was first
        throw validation_error("Attempting to create an index which already exists");
      }
    } else if (update.action == IndexUpdate::Action::kDelete) {
      answer = description(*table, "TableDescription", "UPDATING", update.index);
      status = store.delete_index(name, update.index);
    }
    if (status.code() == model::StatusCode::kNotFound) throw table_not_found(name);  // another call was first
    check(status);
  }
  return answer.empty() ? description(*table, "TableDescription", "UPDATING") : answer;
}

std::string delete_table(store::Store& store, const json::object& request) {
  const std::shared_ptr<store::Table> table = find_named_table(store, request);
  const std::string& name = table->schema().name;
  const model::Status status = store.delete_table(name);
  if (status.code() == model::StatusCode::kNotFound) throw table_not_found(name);  // another call was first
  check(status);
  return description(*table, "TableDescription", "DELETING");
}

std::string describe_table(store::Store& store, const json::object& request) {
  return description(*find_named_table(store, request), "Table", "ACTIVE");
}

std::string list_tables(store::Store& store, const json::object& request) {
  Constraints constraints;
  const std::optional<std::int64_t> limit = find_integer(request, "Limit");
  constraints.at_least("limit", limit, 1);
  constraints.at_most("limit", limit, kTableNamesMax);
  const std::optional<std::string_view> after = find_string(request, "ExclusiveStartTableName");
  if (after) constraints.name("exclusiveStartTableName", *after);
  constraints.check();

  const std::vector<std::string> names = store.table_names();
  auto first = after ? std::upper_bound(names.begin(), names.end(), *after) : names.begin();
  const auto count = std::min<std::ptrdiff_t>(limit.value_or(kTableNamesMax), names.end() - first);
  std::string out = "{\"TableNames\":[";
  for (auto name = first; name != first + count; ++name) {
    if (name != first) out += ',';
    append_json_string(out, *name);
  }
  out += ']';
  if (first + count != names.end()) {
    out += ",\"LastEvaluatedTableName\":";
    append_json_string(out, *(first + count - 1));
  }
  out += '}';
  return out;
}

std::string update_time_to_live(store::Store& store, const json::object& request) {
  Constraints constraints;
  const std::string_view name = table_name(request, constraints);
  const json::object* specification = find_object(request, "TimeToLiveSpecification", "TimeToLiveSpecification");
  constraints.not_null("timeToLiveSpecification", specification != nullptr);
  std::optional<std::string_view> attribute;
  std::optional<bool> enabled;
  if (specification != nullptr) {
    attribute = find_string(*specification, "AttributeName");
    enabled = find_bool(*specification, "Enabled");
    constraints.not_null("timeToLiveSpecification.attributeName", attribute.has_value());
    constraints.not_null("timeToLiveSpecification.enabled", enabled.has_value());
    if (attribute) constraints.length("timeToLiveSpecification.attributeName", *attribute, 1, 255);
  }
  constraints.check();
  const model::Status status = store.change_retention(name, [&](model::Retention& retention) -> model::Status {
    std::string& present = retention.ttl_attribute;
    if (!present.empty() && present != *attribute) {
      return model::invalid("TimeToLive is active on a different AttributeName: current AttributeName is " + present);
    }
    if (*enabled != present.empty()) {
      return model::invalid(*enabled ? "TimeToLive is already enabled" : "TimeToLive is already disabled");
    }
    present = *enabled ? *attribute : std::string_view();
    return {};
  });
  if (status.code() == model::StatusCode::kNotFound) throw table_not_found(name);
  check(status);
  std::string out = "{\"TimeToLiveSpecification\":{\"Enabled\":";
  out += *enabled ? "true" : "false";
  out += ",\"AttributeName\":";
  append_json_string(out, *attribute);
  out += "}}";
  return out;
}

std::string describe_time_to_live(store::Store& store, const json::object& request) {
  const std::string attribute = find_named_table(store, request)->retention().ttl_attribute;
  if (attribute.empty()) return "{\"TimeToLiveDescription\":{\"TimeToLiveStatus\":\"DISABLED\"}}";
  std::string out = "{\"TimeToLiveDescription\":{\"TimeToLiveStatus\":\"ENABLED\",\"AttributeName\":";
  append_json_string(out, attribute);
  out += "}}";
  return out;
}

}  // namespace drover::server

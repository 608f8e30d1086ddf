#include <simdjson.h>

#include <atomic>
#include <boost/json/parse.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "drover/model/value_view.h"
#include "drover/store/item.h"
#include "dynamodb/attribute_reader.h"
#include "dynamodb/errors.h"
#include "dynamodb/item_write.h"
#include "dynamodb/json_writer.h"
#include "dynamodb/keys.h"
#include "progress.h"
#include "store_command.h"

// Items as lines of text, and back. A line of DynamoDB-JSON is {"Item":{"name":{"S":"text"},…}}. A line of plain JSON
// is
// {"name":"text",…}; what JSON has no words for stands in it as DynamoDB-JSON, {"SS":["a"]} or {"B":"AA=="}, and a map
// that would look the same is wrapped: {"M":{"B":"text"}}. So both ways give every item back as it was.
namespace drover::cli {
namespace {

using model::AttributeType;
using model::AttributeValue;
namespace ondemand = simdjson::ondemand;

constexpr std::size_t kOutputBufferBytes = std::size_t{1} << 20;
constexpr std::uint64_t kLinesPerCut = 1'000'000;  ///< What import keeps in the log of API writes at most.
constexpr std::int64_t kRestTimeoutMs = 60'000;    ///< Of a look whether what is in hand has been applied.
constexpr auto kFullPause = std::chrono::microseconds(200);

/// Whether a map's only name would be taken for a type of DynamoDB-JSON.
bool is_marker(std::string_view name) {
  return name == "M" || name == "B" || name == "SS" || name == "NS" || name == "BS";
}

void append_plain(std::string& out, const AttributeValue& value);

void append_plain_map(std::string& out, const AttributeValue::Map& map) {
  out += '{';
  for (const auto& [name, value] : map) {
    if (out.back() != '{') out += ',';
    server::append_json_string(out, name);
    out += ':';
    append_plain(out, value);
  }
  out += '}';
}

void append_plain(std::string& out, const AttributeValue& value) {
  switch (value.type) {
    case AttributeType::kNull:
      out += "null";
      return;
    case AttributeType::kBool:
      out += value.boolean ? "true" : "false";
      return;
    case AttributeType::kString:
      return server::append_json_string(out, value.bytes);
    case AttributeType::kNumber:
      return value.number.append_text(out);
    case AttributeType::kList:
      out += '[';
      for (const AttributeValue& element : value.list) {
        if (out.back() != '[') out += ',';
        append_plain(out, element);
      }
      out += ']';
      return;
    case AttributeType::kMap: {
      const bool wrapped = value.map.size() == 1 && is_marker(value.map.begin()->first);
      if (wrapped) out += "{\"M\":";
      append_plain_map(out, value.map);
      if (wrapped) out += '}';
      return;
    }
    case AttributeType::kBinary:
    case AttributeType::kStringSet:
    case AttributeType::kNumberSet:
    case AttributeType::kBinarySet:
      return server::append_json_value(out, value);
  }
}

AttributeValue read_plain(ondemand::value json);

model::Item read_plain_map(ondemand::object object) {
  model::Item map;
  for (auto field : object) {
    std::string name(std::string_view(field.unescaped_key()));
    server::check_attribute_name(name);
    AttributeValue value = read_plain(field.value());
    if (!map.emplace(std::move(name), std::move(value)).second) throw server::validation_error("a name stands twice");
  }
  return map;
}

/// A map, or what DynamoDB-JSON says of one of our marked values.
AttributeValue read_plain_object(ondemand::object object) {
  AttributeValue value;
  value.type = AttributeType::kMap;
  std::string marker;
  if (object.count_fields() == 1) marker = std::string_view((*object.begin()).unescaped_key());
  object.reset();
  if (marker == "M") {
    value.map = read_plain_map((*object.begin()).value());
  } else if (is_marker(marker)) {
    return server::read_value(boost::json::parse(std::string_view(object.raw_json())));
  } else {
    value.map = read_plain_map(object);
  }
  return value;
}

/// A number's digits, however many.
std::string_view number_text(ondemand::value& json) {
  const std::string_view token = json.raw_json_token();
  return token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
}

AttributeValue read_plain(ondemand::value json) {
  switch (json.type()) {
    case ondemand::json_type::null:
      if (!json.is_null()) throw server::validation_error("a word that JSON does not know");
      return AttributeValue::null();
    case ondemand::json_type::boolean:
      return AttributeValue::of_bool(json.get_bool());
    case ondemand::json_type::string:
      return AttributeValue::string(std::string(std::string_view(json.get_string())));
    case ondemand::json_type::number:
      return AttributeValue::of_number(server::value_of(model::Decimal::parse(number_text(json))));
    case ondemand::json_type::array: {
      AttributeValue value;
      value.type = AttributeType::kList;
      for (auto element : json.get_array()) value.list.push_back(read_plain(element.value()));
      return value;
    }
    case ondemand::json_type::object:
      break;
  }
  return read_plain_object(json.get_object());
}

/// One item a line, from whichever form.
class LineReader {
 public:
  explicit LineReader(bool plain) : plain_(plain) {}

  /// Throws an ApiError or a std::exception with the reason.
  model::Item read(const std::string& line) {
    if (plain_) {
      padded_ = simdjson::padded_string(line);
      ondemand::document document = parser_.iterate(padded_);
      model::Item item = read_plain_map(document.get_object());
      if (document.current_location().error() != simdjson::OUT_OF_BOUNDS)
        throw server::validation_error("something stands behind the item");
      return item;
    }
    const boost::json::value json = boost::json::parse(line);
    const boost::json::object* object = json.if_object();
    const boost::json::value* item = object != nullptr ? object->if_contains("Item") : nullptr;
    if (item == nullptr || !item->is_object()) {
      throw server::validation_error("there is no {\"Item\":{…}}; of plain JSON: --format json");
    }
    return server::read_item(item->get_object());
  }

 private:
  const bool plain_;
  ondemand::parser parser_;
  simdjson::padded_string padded_;
};

/// Writes under way into one table, and the first that failed.
class Writes {
 public:
  explicit Writes(store::Table& table, model::AttributeNames& names) : table_(table), names_(names) {}

  /// Waits where too many are under way. Throws an ApiError on an item that is none of this table's.
  model::Status put(model::Item item, std::uint64_t line) {
    const model::TableSchema& schema = table_.schema();
    server::canonicalize_key(schema, item);
    server::EncodedKey key = server::encode_item_key(schema, item);
    server::check_depth(item);
    server::check_item_size(item);
    model::Bytes attributes;
    for (const auto& [name, value] : item) {
      if (server::is_key_attribute(schema.key, name)) continue;
      model::append_name(attributes, name, names_);
      model::append_value(attributes, value, names_);
    }
    store::ItemWrite write;
    write.partition_key = std::move(key.partition_key);
    write.sort_key = std::move(key.sort_key);
    write.inherits = false;
    write.decide = [attributes = std::move(attributes)](std::optional<std::string_view>) {
      return store::ItemWrite::Decision{store::ItemWrite::Action::kPut, attributes};
    };
    write.done = [this, line](const model::Status& status) {
      if (!status.ok()) note_failure(line, status);
    };
    for (;;) {
      if (model::Status status = failure(); !status.ok()) return status;
      // NOLINTNEXTLINE(bugprone-use-after-move): moved from only on success
      model::Status status = table_.write(std::move(write));
      if (status.code() != model::StatusCode::kFull) return status;
      std::this_thread::sleep_for(kFullPause);
    }
  }

  model::Status failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  void note_failure(std::uint64_t line, const model::Status& status) {
    const std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = {status.code(), "line " + std::to_string(line) + ": " + status.message()};
  }

  store::Table& table_;
  model::AttributeNames& names_;
  mutable std::mutex mutex_;
  model::Status failure_;  // under mutex_
};

/// Imports line by line; how many there were.
model::Result<std::uint64_t> import_lines(std::istream& in, store::Store& store, store::Table& table, bool plain) {
  Progress progress("importing");
  LineReader reader(plain);
  Writes writes(table, store.names());
  std::uint64_t line = 0;
  std::uint64_t items = 0;
  model::Status status;
  for (std::string text; status.ok() && std::getline(in, text);) {
    ++line;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto at_line = [line](const std::string& why) {
      return model::invalid("line " + std::to_string(line) + ": " + why);
    };
    try {
      status = writes.put(reader.read(text), line);
    } catch (const server::ApiError& error) {
      status = at_line(error.message);
    } catch (const std::exception& error) {
      status = at_line(error.what());
    }
    if (!status.ok()) break;
    progress.add(1);
    if (++items % kLinesPerCut == 0) status = settle(store);
  }
  // What is under way refers to `writes`.
  while (!store.drain(kRestTimeoutMs)) {
  }
  if (status.ok() && in.bad()) status = {model::StatusCode::kUnavailable, "the input can't be read to its end"};
  if (status.ok()) status = writes.failure();
  if (model::Status settled = settle(store); status.ok()) status = settled;
  return status.ok() ? model::Result<std::uint64_t>(items) : status;
}

/// Makes the config's tables that are missing.
model::Status create_tables(store::Store& store, const ConfigOption& option) {
  const server::LoadedConfig loaded = option.load();
  if (!loaded.errors.empty()) return model::invalid("the config is wrong");
  for (const model::TableSchema& schema : loaded.config.tables) {
    const auto created = store.create_table(schema);
    if (created.ok() || created.status().code() == model::StatusCode::kExists) continue;
    return {created.status().code(), "table " + schema.name + ": " + created.status().message()};
  }
  return {};
}

}  // namespace

int export_items(const StoreCommandOptions& options) {
  auto opened = open_store(options.directory);
  if (!opened.ok()) return fail(opened.status());
  store::Store& store = **opened;
  const auto chosen = choose_table(store, options.table);
  if (!chosen.ok()) return fail(chosen.status());
  const store::Table& table = **chosen;
  store::ItemReader reader(table.schema(), nullptr, store.names());
  Progress progress("exporting");
  std::string out;
  const model::Status status = table.scan("", 0, model::kSegments, std::nullopt, [&](const store::StoredItem& stored) {
    // By name, whatever order the record had: an item has one text.
    const model::Item item = reader.to_item(stored);
    if (options.format == "json") {
      append_plain_map(out, item);
    } else {
      out += "{\"Item\":";
      server::append_json_item(out, item);
      out += '}';
    }
    out += '\n';
    progress.add(1);
    if (out.size() >= kOutputBufferBytes) {
      std::fwrite(out.data(), 1, out.size(), stdout);
      out.clear();
    }
    return std::ferror(stdout) == 0;
  });
  std::fwrite(out.data(), 1, out.size(), stdout);
  if (!status.ok()) return fail({model::StatusCode::kInvalid, status.message()});
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return fail({model::StatusCode::kUnavailable, "standard output can't be written"});
  }
  return tell_of_damage(store.recovery(), std::cerr);
}

int import_items(const StoreCommandOptions& options) {
  const bool with_config = !options.config.file.empty();
  auto opened = with_config ? open_or_make_store(options.directory) : open_store(options.directory);
  if (!opened.ok()) return fail(opened.status());
  store::Store& store = **opened;
  if (with_config) {
    if (const model::Status status = create_tables(store, options.config); !status.ok()) return fail(status);
  }
  const auto table = choose_table(store, options.table);
  if (!table.ok()) return fail(table.status());
  std::ifstream file;
  if (!options.file.empty()) {
    file.open(options.file);
    if (!file) return fail({model::StatusCode::kUnavailable, options.file + " can't be read"});
  }
  const auto items = import_lines(options.file.empty() ? std::cin : file, store, **table, options.format == "json");
  if (!items.ok()) return fail(items.status());
  std::cout << *items << " items imported into " << (*table)->schema().name << '\n';
  return 0;
}

}  // namespace drover::cli

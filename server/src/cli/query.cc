#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bucket_walk.h"
#include "client.h"
#include "commands.h"
#include "drover/server/config.h"
#include "table.h"

namespace drover::cli {
namespace {

namespace json = boost::json;

/// What is printed unless --limit or --newest says otherwise.
constexpr std::size_t kItemsMaxDefault = 1'000;
/// A walk without --since ends behind so many buckets without an item.
constexpr std::size_t kEmptyBucketsMax = 400;

struct QueryOptions {
  std::string key;
  std::string table;
  std::string index;
  std::string endpoint = "http://127.0.0.1:8000";
  std::vector<std::string> between;
  std::string equals;
  std::string begins_with;
  std::optional<std::size_t> newest;
  std::size_t limit = kItemsMaxDefault;
  std::string since;
  std::string until;
  bool descending = false;
  bool as_json = false;
};

/// A key attribute as DescribeTable tells of it.
struct KeyAttribute {
  std::string name;
  std::string type;  // S, N or B
};

struct Keys {
  KeyAttribute partition_key;
  std::optional<KeyAttribute> sort_key;
};

struct Answer {
  json::array items;
  std::uint64_t items_read = 0;
  bool has_more = false;
  std::string stopped;  ///< Where a walk through buckets gave up; empty: it didn't.
};

/// The table to query: the one that was named, or the only one there is.
model::Result<std::string> find_table(Client& client, const QueryOptions& options) {
  if (!options.table.empty()) return options.table;
  auto answer = client.call("ListTables", {});
  if (!answer.ok()) return answer.status();
  const json::array& names = answer.value().at("TableNames").as_array();
  if (names.empty()) return model::invalid("there is no table yet");
  if (names.size() == 1) return std::string(names.front().as_string());
  std::string all;
  for (const json::value& name : names) all += (all.empty() ? "" : ", ") + std::string(name.as_string());
  return model::invalid("there are several tables, name one with --table: " + all);
}

Keys keys_of(const json::object& described, const json::array& attribute_definitions) {
  Keys keys;
  for (const json::value& element : described.at("KeySchema").as_array()) {
    KeyAttribute attribute{std::string(element.at("AttributeName").as_string()), "S"};
    for (const json::value& definition : attribute_definitions) {
      if (definition.at("AttributeName").as_string() == attribute.name) {
        attribute.type = definition.at("AttributeType").as_string();
      }
    }
    if (element.at("KeyType").as_string() == "HASH") {
      keys.partition_key = std::move(attribute);
    } else {
      keys.sort_key = std::move(attribute);
    }
  }
  return keys;
}

model::Result<Keys> find_keys(Client& client, const std::string& table, const std::string& index) {
  auto answer = client.call("DescribeTable", {{"TableName", table}});
  if (!answer.ok()) return answer.status();
  const json::object& described = answer.value().at("Table").as_object();
  const json::array& definitions = described.at("AttributeDefinitions").as_array();
  if (index.empty()) return keys_of(described, definitions);
  std::string all;
  for (const std::string_view kind : {"GlobalSecondaryIndexes", "LocalSecondaryIndexes"}) {
    const json::value* indexes = described.if_contains(kind);
    if (indexes == nullptr) continue;
    for (const json::value& candidate : indexes->as_array()) {
      const json::string& name = candidate.at("IndexName").as_string();
      if (name == index) return keys_of(candidate.as_object(), definitions);
      all += (all.empty() ? "" : ", ") + std::string(name);
    }
  }
  return model::invalid("table " + table + " has no index " + index + (all.empty() ? "" : "; it has " + all));
}

/// Adds the condition on the sort key, if one was asked for.
model::Status add_sort_condition(const QueryOptions& options, const Keys& keys, std::string& condition,
                                 json::object& names, json::object& values) {
  if (options.between.empty() && options.equals.empty() && options.begins_with.empty()) return {};
  if (!keys.sort_key) return model::invalid("there is no sort key here to put a condition on");
  names["#s"] = keys.sort_key->name;
  const auto value = [&](const std::string& text) { return json::object{{keys.sort_key->type, text}}; };
  if (!options.between.empty()) {
    condition += " AND #s BETWEEN :a AND :b";
    values[":a"] = value(options.between[0]);
    values[":b"] = value(options.between[1]);
  } else if (!options.equals.empty()) {
    condition += " AND #s = :a";
    values[":a"] = value(options.equals);
  } else {
    condition += " AND begins_with(#s, :a)";
    values[":a"] = value(options.begins_with);
  }
  return {};
}

model::Result<json::object> make_request(const QueryOptions& options, const std::string& table, const Keys& keys) {
  std::string condition = "#p = :p";
  json::object names{{"#p", keys.partition_key.name}};
  json::object values{{":p", json::object{{keys.partition_key.type, options.key}}}};
  if (model::Status status = add_sort_condition(options, keys, condition, names, values); !status.ok()) return status;
  json::object request{{"TableName", table},
                       {"KeyConditionExpression", condition},
                       {"ExpressionAttributeNames", std::move(names)},
                       {"ExpressionAttributeValues", std::move(values)}};
  if (!options.index.empty()) request["IndexName"] = options.index;
  if (options.newest || options.descending || BucketWalk::is_for(options.key)) request["ScanIndexForward"] = false;
  return request;
}

/// Reads page after page, until `items_max` items are here.
model::Result<Answer> read_pages(Client& client, json::object request, std::size_t items_max) {
  Answer answer;
  while (answer.items.size() < items_max) {
    request["Limit"] = items_max - answer.items.size();
    auto page = client.call("Query", request);
    if (!page.ok()) return page.status();
    for (json::value& item : page.value().at("Items").as_array()) answer.items.push_back(std::move(item));
    answer.items_read += page.value().at("ScannedCount").to_number<std::uint64_t>();
    const json::value* last = page.value().if_contains("LastEvaluatedKey");
    answer.has_more = last != nullptr;
    if (last == nullptr) break;
    request["ExclusiveStartKey"] = *last;
  }
  return answer;
}

/// Reads bucket after bucket, the newest first, until `items_max` items are here.
model::Result<Answer> walk_buckets(Client& client, const json::object& request, BucketWalk walk,
                                   std::size_t items_max) {
  Answer answer;
  std::size_t empty = 0;
  for (; !walk.at_end() && answer.items.size() < items_max; walk.next()) {
    json::object of_bucket = request;
    of_bucket["ExpressionAttributeValues"].as_object()[":p"] = json::object{{"S", walk.key()}};
    auto found = read_pages(client, std::move(of_bucket), items_max - answer.items.size());
    if (!found.ok()) return found.status();
    empty = found->items.empty() ? empty + 1 : 0;
    for (json::value& item : found->items) answer.items.push_back(std::move(item));
    answer.items_read += found->items_read;
    answer.has_more = found->has_more;
    if (empty == kEmptyBucketsMax && !walk.bounded()) {
      answer.stopped =
          "; the " + std::to_string(empty) + " buckets back to " + walk.key() + " are empty (--since goes on)";
      break;
    }
  }
  return answer;
}

/// A value as people read it: text, number and the like bare, what is nested as DynamoDB's JSON.
std::string cell_text(const json::value& value) {
  const json::object& typed = value.as_object();
  const std::string_view type = typed.begin()->key();
  const json::value& content = typed.begin()->value();
  if (content.is_string()) return std::string(content.as_string());
  if (type == "NULL") return "null";
  return json::serialize(content);
}

std::size_t terminal_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

/// The items as a table: the keys' columns first, then the attributes as they come up.
std::string items_table(const json::array& items, const Keys& keys) {
  std::vector<std::string> columns{keys.partition_key.name};
  if (keys.sort_key) columns.push_back(keys.sort_key->name);
  for (const json::value& item : items) {
    for (const auto& attribute : item.as_object()) {
      const std::string name(attribute.key());
      if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);
    }
  }
  std::vector<std::vector<std::string>> rows;
  for (const json::value& item : items) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const std::string& column : columns) {
      const json::value* value = item.as_object().if_contains(column);
      row.push_back(value == nullptr ? "" : cell_text(*value));
    }
  }
  return format_table(columns, rows, terminal_width());
}

void print(const Answer& answer, const Keys& keys, bool as_json) {
  if (as_json) {
    std::cout << json::serialize(json::object{
                     {"Items", answer.items}, {"Count", answer.items.size()}, {"ScannedCount", answer.items_read}})
              << '\n';
    return;
  }
  if (!answer.items.empty()) std::cout << items_table(answer.items, keys) << '\n';
  std::cout << answer.items.size() << (answer.items.size() == 1 ? " item" : " items") << ", " << answer.items_read
            << " read" << (answer.has_more ? "; there may be more (--limit N)" : "") << answer.stopped << '\n';
}

model::Status run(const QueryOptions& options) {
  std::optional<BucketWalk> walk;
  if (BucketWalk::is_for(options.key)) {
    auto made = BucketWalk::make(options.key, options.since, options.until, options.between);
    if (!made.ok()) return made.status();
    walk = *made;
  } else if (!options.since.empty() || !options.until.empty()) {
    return model::invalid("--since and --until choose buckets of time: KEY needs one, such as 'VEH#V-7741#{%Y-%m}'");
  }
  auto client = Client::connect(options.endpoint);
  if (!client.ok()) return client.status();
  const auto table = find_table(*client, options);
  if (!table.ok()) return table.status();
  const auto keys = find_keys(*client, *table, options.index);
  if (!keys.ok()) return keys.status();
  auto request = make_request(options, *table, *keys);
  if (!request.ok()) return request.status();
  const std::size_t items_max = options.newest.value_or(options.limit);
  const auto answer = walk ? walk_buckets(*client, *request, *walk, items_max)
                           : read_pages(*client, std::move(request).value(), items_max);
  if (!answer.ok()) return answer.status();
  print(*answer, *keys, options.as_json);
  return {};
}

/// Boost.JSON throws when an answer isn't shaped as the protocol says.
model::Status run_guarded(const QueryOptions& options) {
  try {
    return run(options);
  } catch (const std::exception& error) {
    return {model::StatusCode::kUnavailable,
            "what answers at " + options.endpoint + " is not DynamoDB's protocol: " + error.what()};
  }
}

int query(const QueryOptions& options) {
  const model::Status status = run_guarded(options);
  if (status.ok()) return 0;
  std::cerr << "drover query: " << status.message() << '\n';
  return status.code() == model::StatusCode::kUnavailable ? server::kExitUnavailable : 1;
}

}  // namespace

void add_query(CLI::App& app, Command& command) {
  const CLI::Range whole_number(std::size_t{1}, std::size_t{1'000'000'000});
  CLI::App* query_command = app.add_subcommand("query", "Asks a running Drover for one item collection");
  auto options = std::make_shared<QueryOptions>();  // owned by the callback
  query_command
      ->add_option("key", options->key,
                   "The partition key, such as 'VEH#V-7741'; with a bucket of time in it, as 'VEH#V-7741#{%Y-%m}', the "
                   "buckets are read one after the other, the newest first, until there are enough items")
      ->required()
      ->type_name("KEY");
  query_command->add_option("-t,--table", options->table, "The table; not needed if there is only one")
      ->type_name("NAME");
  query_command->add_option("-i,--index", options->index, "Asks this index; KEY is then its partition key")
      ->type_name("NAME");
  auto* between =
      query_command->add_option("-b,--between", options->between, "Only sort keys from A to B, both included")
          ->expected(2)
          ->type_name("A B");
  auto* equals = query_command->add_option("-e,--equals", options->equals, "Only the item with this sort key")
                     ->type_name("SORTKEY");
  auto* begins =
      query_command->add_option("-p,--begins-with", options->begins_with, "Only sort keys that begin with this")
          ->type_name("PREFIX");
  between->excludes(equals, begins);
  equals->excludes(begins);
  auto* newest = query_command->add_option("-n,--newest", options->newest, "The last N items, the newest first")
                     ->check(whole_number)
                     ->type_name("N");
  query_command->add_option("-l,--limit", options->limit, "At most N items; 1000 if not given")
      ->check(whole_number)
      ->type_name("N")
      ->excludes(newest);
  query_command
      ->add_option("--since", options->since,
                   "The oldest bucket that is read: 2026, 2026-01, 2026-01-31 or 2026-01-31T09; if not given, as "
                   "--between says, or until " +
                       std::to_string(kEmptyBucketsMax) + " in a row are empty")
      ->type_name("TIME");
  query_command->add_option("--until", options->until, "The newest one; as --between says, or now if not given")
      ->type_name("TIME");
  query_command->add_flag("-d,--descending", options->descending, "The newest first");
  query_command->add_flag("-j,--json", options->as_json, "Prints DynamoDB's JSON instead of a table");
  query_command->add_option("--endpoint", options->endpoint, "Where Drover answers; http://127.0.0.1:8000 if not given")
      ->type_name("URL");
  query_command->footer(
      "Prints the items, how many there are, and how many were read to find them.\n"
      "\n"
      "Examples:\n"
      "  drover query 'VEH#V-7741'                        the vehicle and all its readings\n"
      "  drover query 'VEH#V-7741' --newest 10            its last ten readings\n"
      "  drover query 'VEH#V-7741' --equals META          the vehicle alone\n"
      "  drover query 'VEH#V-7741' --descending --between TS#2026-06-23T09:00:00Z TS#2026-06-23T09:10:00Z\n"
      "  drover query 'VEH#V-7741#{%Y-%m}' --newest 20    its last readings, from as many months as it takes\n"
      "  drover query 'VEH#V-7741#{%Y-%m}' --since 2026-01 --until 2026-03\n"
      "  drover query DEP-LON-3 --index depot --newest 5  what was read last at one depot");
  query_command->callback([options, &command] { command = [options] { return query(*options); }; });
}

}  // namespace drover::cli

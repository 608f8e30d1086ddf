#include "drover/server/config.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "config_advice.h"
#include "settings.h"

namespace drover::server {
namespace {

constexpr std::int64_t kDayMs = std::int64_t{24} * 3600 * 1000;
constexpr std::int64_t kRetainMsMax = 36'500 * kDayMs;
/// How far ahead of the clock a reading may be, unless its topic says otherwise.
constexpr std::int64_t kAheadMsMax = kDayMs;

/// What librdkafka properties Drover sets from settings of its own, and where.
struct OwnProperty {
  std::string_view property;
  std::string_view instead;
};
constexpr std::array kOwnProperties{
    OwnProperty{"bootstrap.servers", "set kafka.brokers instead"},
    OwnProperty{"metadata.broker.list", "set kafka.brokers instead"},
    OwnProperty{"group.id", "set kafka.group instead"},
    OwnProperty{"enable.auto.commit", "Drover decides what may be committed: take it out"},
    OwnProperty{"enable.auto.offset.store", "Drover decides what may be committed: take it out"},
};

void read_property(const std::string& property, const Setting& setting, ingest::ConsumerOptions& out) {
  const auto own = std::find_if(kOwnProperties.begin(), kOwnProperties.end(),
                                [&](const OwnProperty& candidate) { return candidate.property == property; });
  if (own != kOwnProperties.end()) return setting.problem(std::string(own->instead));
  auto value = setting.text();
  if (!value) return;
  if (const model::Status status = ingest::validate_property(property, *value); !status.ok()) {
    // librdkafka's words repeat the value, which may be a secret.
    setting.problem(setting.is_section() ? "librdkafka doesn't take this value" : status.message());
  }
  out.librdkafka[property] = std::move(*value);
}

void read_kafka(Section kafka, ingest::ConsumerOptions& out) {
  if (auto brokers = kafka.find("brokers")) {
    if (brokers->is_list()) {
      for (const std::string& broker :
           brokers->texts("HOST:PORT, or a list of them").value_or(std::vector<std::string>{})) {
        out.brokers += (out.brokers.empty() ? "" : ",") + broker;
      }
    } else if (auto text = brokers->text()) {
      out.brokers = std::move(*text);
    }
  }
  kafka.read("group", out.group);
  kafka.read("handles", out.handles, 1, 16);
  kafka.read("batch_records", out.batch_records_max, 1, model::kBatchRecordsMax);
  if (auto fetch = kafka.find("fetch")) {
    constexpr std::array kWays{ingest::Fetch::kDirect, ingest::Fetch::kLibrdkafka};
    if (auto choice = fetch->choice({"direct", "librdkafka"})) out.fetch = kWays[*choice];
  }
  if (auto properties = kafka.find("librdkafka")) {
    if (auto section = properties->section()) {
      for (const auto& [property, setting] : section->all()) read_property(property, setting, out);
    }
  }
  kafka.finish();
}

void read_key_attribute(const Setting& setting, model::KeyAttribute& out) {
  auto section = setting.section();
  if (!section) return;
  if (auto name = section->require("name", "the attribute's name")) out.name = name->text().value_or("");
  if (auto type = section->find("type")) {
    constexpr std::array kTypesOfKeys{model::KeyType::kString, model::KeyType::kNumber, model::KeyType::kBinary};
    if (auto choice = type->choice({"S", "N", "B"})) out.type = kTypesOfKeys[*choice];
  }
  section->finish();
}

void read_keys(Section& section, model::KeySchema& out) {
  if (auto key = section.require("partition_key", "{name: ATTRIBUTE, type: S, N or B}")) {
    read_key_attribute(*key, out.partition_key);
  }
  if (auto key = section.find("sort_key")) read_key_attribute(*key, out.sort_key.emplace());
}

model::IndexSchema read_index(Section index) {
  model::IndexSchema out;
  if (auto name = index.require("name", "the index's name")) out.name = name->text().value_or("");
  read_keys(index, out.key);
  if (auto local = index.find("local")) out.local = local->boolean().value_or(false);
  if (auto projection = index.find("projection")) {
    constexpr std::array kProjections{model::ProjectionType::kAll, model::ProjectionType::kKeysOnly,
                                      model::ProjectionType::kInclude};
    if (auto choice = projection->choice({"ALL", "KEYS_ONLY", "INCLUDE"})) out.projection = kProjections[*choice];
  }
  if (auto include = index.find("include")) {
    out.included = include->texts("a list of attribute names").value_or(std::vector<std::string>{});
    if (out.projection != model::ProjectionType::kInclude) {
      include->problem("goes with projection: INCLUDE only: change the projection, or take this out");
    }
  }
  index.finish();
  return out;
}

model::TimeSortKey read_time_sort_key(Section section) {
  model::TimeSortKey out;
  section.read("prefix", out.prefix);
  if (auto precision = section.find("precision")) {
    constexpr std::array kPrecisions{model::TimePrecision::kSeconds, model::TimePrecision::kMillis,
                                     model::TimePrecision::kMicros, model::TimePrecision::kNanos};
    if (auto choice = precision->choice({"seconds", "millis", "micros", "nanos"})) out.precision = kPrecisions[*choice];
  }
  section.finish();
  return out;
}

constexpr std::uint64_t kCollectionLimitBytesMin = std::uint64_t{1} << 10;
constexpr std::uint64_t kCollectionLimitBytesMax = std::uint64_t{1} << 50;

/// A table as the file has it.
struct Table {
  model::TableSchema schema;
  model::Retention retention;
};

Table read_table(Section table, store::StoreOptions& store) {
  Table read;
  model::TableSchema& out = read.schema;
  if (auto name = table.require("name", "the table's name")) out.name = name->text().value_or("");
  if (auto keys = table.require("keys", "the table's partition_key and, for collections, its sort_key")) {
    if (auto section = keys->section()) {
      read_keys(*section, out.key);
      section->finish();
    }
  }
  if (auto time = table.find("time_sort_key")) {
    if (auto section = time->section()) out.time_sort_key = read_time_sort_key(std::move(*section));
    if (!out.key.sort_key || out.key.sort_key->type != model::KeyType::kString) {
      time->problem("needs a sort key of type S: times are kept as text");
    }
  }
  if (auto inherit = table.find("inherit")) {
    out.inherit = inherit->texts("a list of attribute names").value_or(std::vector<std::string>{});
    if (!out.inherit.empty() && !out.key.sort_key) {
      inherit->problem("needs a sort key: what is inherited comes from another item of the same collection");
    }
  }
  table.read("inherit_from", out.inherit_from);
  if (auto indexes = table.find("indexes")) {
    for (const Setting& index : indexes->list("a list of indexes").value_or(std::vector<Setting>{})) {
      if (auto section = index.section()) out.indexes.push_back(read_index(std::move(*section)));
    }
  }
  if (auto ttl = table.find("ttl")) {
    read.retention.ttl_attribute = ttl->text().value_or("");
    if (read.retention.ttl_attribute.empty() ||
        read.retention.ttl_attribute.size() > model::kKeyAttributeNameSizeBytesMax) {
      ttl->problem(
          "needs the name of an attribute, of at most 255 bytes: it holds the second in which an item expires");
    }
  }
  if (auto retain = table.find("retain")) {
    read.retention.retain_ms = retain->duration_ms(1'000, kRetainMsMax).value_or(0);
    if (!out.time_sort_key) retain->problem("needs a time_sort_key: the time in it tells how old an item is");
  }
  if (auto limit = table.find("item_collection_limit")) {
    if (auto bytes = limit->size_bytes(kCollectionLimitBytesMin, kCollectionLimitBytesMax)) {
      store.item_collection_limits[out.name] = *bytes;
    }
    if (std::none_of(out.indexes.begin(), out.indexes.end(), [](const auto& index) { return index.local; })) {
      limit->problem("goes with a local index: without one a collection has no limit; take it out");
    }
  }
  table.finish();
  return read;
}

/// Reads a value that ingest parses: a path or a template.
template <typename Parsed>
void read_parsed(const Setting& setting, model::Result<Parsed> (*parse)(std::string_view), Parsed& out) {
  const auto text = setting.text();
  if (!text) return;
  auto parsed = parse(*text);
  if (parsed.ok()) {
    out = std::move(parsed).value();
  } else {
    setting.wrong(parsed.status().message());
  }
}

void read_attributes(const Setting& setting, std::vector<ingest::AttributeMapping>& out) {
  if (setting.is_text("all")) return;
  constexpr std::string_view kAccepted = "all, or a list of paths (lat, location.lat, {path: location.lat, name: lat})";
  const auto elements = setting.list(kAccepted);
  if (!elements) return;
  if (elements->empty()) setting.wrong(std::string(kAccepted));
  for (const Setting& element : *elements) {
    ingest::AttributeMapping mapping;
    if (element.is_section()) {
      auto section = element.section();
      if (auto path = section->require("path", "a path such as location.lat")) {
        read_parsed(*path, &ingest::JsonPath::parse, mapping.path);
      }
      if (auto name = section->require("name", "the attribute's name")) mapping.name = name->text().value_or("");
      section->finish();
    } else {
      read_parsed(element, &ingest::JsonPath::parse, mapping.path);
      mapping.name = mapping.path.text();
    }
    out.push_back(std::move(mapping));
  }
}

ingest::MetaMapping read_meta(Section meta) {
  ingest::MetaMapping out;
  if (auto when = meta.require("when", "{path: PATH, equals: TEXT}: how a META record is known")) {
    if (auto section = when->section()) {
      if (auto path = section->require("path", "a path such as kind")) {
        read_parsed(*path, &ingest::JsonPath::parse, out.path);
      }
      section->read("equals", out.equals);
      section->finish();
    }
  }
  meta.read("sort_key", out.sort_key);
  if (auto attributes = meta.find("attributes")) read_attributes(*attributes, out.attributes);
  meta.finish();
  return out;
}

ingest::Mapping read_topic(Section topic) {
  ingest::Mapping out;
  if (auto name = topic.require("name", "the topic's name")) out.topic = name->text().value_or("");
  if (auto table = topic.require("table", "the name of a table of this file")) out.table = table->text().value_or("");
  if (auto path = topic.require("vehicle_id", "the path of the vehicle's id, such as vehicleId")) {
    read_parsed(*path, &ingest::JsonPath::parse, out.id_path);
  }
  if (auto path = topic.find("time")) {
    read_parsed(*path, &ingest::JsonPath::parse, out.time_path);
  }
  if (auto unit = topic.find("time_unit")) {
    constexpr std::array kUnits{model::TimeUnit::kSeconds, model::TimeUnit::kMillis, model::TimeUnit::kMicros,
                                model::TimeUnit::kNanos};
    if (auto choice = unit->choice({"seconds", "millis", "micros", "nanos"})) out.time_unit = kUnits[*choice];
  }
  if (auto key = topic.require("partition_key", "a template such as VEH#{vehicleId}")) {
    read_parsed(*key, &ingest::KeyTemplate::parse, out.partition_key);
  }
  if (auto key = topic.find("sort_key")) read_parsed(*key, &ingest::KeyTemplate::parse, out.sort_key);
  if (auto attributes = topic.find("attributes")) read_attributes(*attributes, out.attributes);
  if (auto meta = topic.find("meta")) {
    if (auto section = meta->section()) out.meta = read_meta(std::move(*section));
  }
  out.ahead_ms_max = kAheadMsMax;
  if (auto ahead = topic.find("max_ahead")) {
    out.ahead_ms_max = ahead->duration_ms(1'000, kRetainMsMax).value_or(kAheadMsMax);
  }
  if (auto same_key = topic.find("on_same_key")) {
    constexpr std::array kSameKeys{ingest::SameKey::kReplace, ingest::SameKey::kMerge};
    if (auto choice = same_key->choice({"replace", "merge"})) out.on_same_key = kSameKeys[*choice];
  }
  topic.finish();
  return out;
}

void read_address(Section& section, Address& out) {
  section.read("host", out.host);
  section.read("port", out.port, 0, 65'535);
}

/// Reads the config and keeps where its tables and topics stand, for what can only be checked with all of it at hand.
class ConfigReader {
 public:
  explicit ConfigReader(SettingsTree& tree) : tree_(tree), root_(tree, Setting(tree, "", tree.root()), tree.root()) {}

  LoadedConfig read() {
    with_section("kafka", [this](Section section) { read_kafka(std::move(section), config_.kafka); });
    read_tables();
    read_topics();
    with_section("api", [this](Section section) {
      read_address(section, config_.api);
      section.read("threads", config_.api_threads, 1, 64);
      section.finish();
    });
    with_section("admin", [this](Section section) {
      read_address(section, config_.admin);
      section.finish();
    });
    with_section("store", [this](Section section) {
      section.read("directory", config_.store_directory);
      if (auto budget = section.find("memory_budget")) {
        config_.store.memory_budget_bytes = budget->size_bytes(std::uint64_t{1} << 20, std::uint64_t{1} << 50)
                                                .value_or(config_.store.memory_budget_bytes);
        if (config_.store_directory.empty()) budget->problem("goes with store.directory: set it, or take this out");
      }
      if (auto interval = section.find("checkpoint_interval")) {
        config_.checkpoint_interval_ms = interval->duration_ms(100, 3'600'000).value_or(config_.checkpoint_interval_ms);
        if (config_.store_directory.empty()) interval->problem("goes with store.directory: set it, or take this out");
      }
      if (auto limit = section.find("item_collection_limit")) {
        config_.store.item_collection_limit_bytes =
            limit->size_bytes(kCollectionLimitBytesMin, kCollectionLimitBytesMax)
                .value_or(config_.store.item_collection_limit_bytes);
      }
      section.read("workers", config_.store.workers, 0, 256);
      section.read("shards_per_table", config_.store.shards_per_table, 0, 1024);
      section.read("inbox_batches", config_.store.inbox_batches, 1, 1024);
      section.finish();
    });
    with_section("log", [this](Section section) {
      constexpr std::array<const char*, 6> kLevels{"trace", "debug", "info", "warn", "error", "off"};
      if (auto level = section.find("level")) {
        if (auto choice = level->choice({"trace", "debug", "info", "warn", "error", "off"})) {
          config_.log_level = kLevels[*choice];
        }
      }
      section.finish();
    });
    if (auto timeout = root_.find("stop_timeout")) {
      config_.stop_timeout_ms = timeout->duration_ms(1'000, 600'000).value_or(config_.stop_timeout_ms);
    }
    root_.finish();
    // Half of the time for leaving the group, the rest for applying what is in hand and closing the listeners.
    config_.kafka.stop_timeout_ms = config_.stop_timeout_ms / 2;
    check_addresses();

    LoadedConfig loaded{.config = std::move(config_), .errors = tree_.problems(), .warnings = {}};
    if (loaded.errors.empty()) loaded.warnings = advise(loaded.config, {tables_, topics_, api_, admin_});
    return loaded;
  }

 private:
  template <typename Read>
  void with_section(std::string_view name, Read read) {
    auto setting = root_.find(name);
    if (!setting) return;
    if (name == "api") api_ = setting;
    if (name == "admin") admin_ = setting;
    if (auto section = setting->section()) read(std::move(*section));
  }

  void read_tables() {
    auto tables = root_.find("tables");
    if (!tables) return;
    for (const Setting& setting : tables->list("a list of tables").value_or(std::vector<Setting>{})) {
      auto section = setting.section();
      if (!section) continue;
      const std::size_t problems = tree_.problems().size();
      auto [table, retention] = read_table(std::move(*section), config_.store);
      if (tree_.problems().size() == problems) {
        if (model::Status status = model::validate(table); !status.ok()) setting.problem(status.message());
      }
      if (find_table(table.name) != nullptr)
        setting.problem("there is a table " + quoted(table.name) + " above: name it otherwise");
      if (retention != model::Retention{}) config_.retention.insert_or_assign(table.name, std::move(retention));
      config_.tables.push_back(std::move(table));
      tables_.push_back(setting);
    }
  }

  void read_topics() {
    auto topics = root_.find("topics");
    if (!topics) return;
    for (const Setting& setting : topics->list("a list of topics").value_or(std::vector<Setting>{})) {
      auto section = setting.section();
      if (!section) continue;
      const std::size_t problems = tree_.problems().size();
      ingest::Mapping topic = read_topic(std::move(*section));
      check_topic(setting, topic, tree_.problems().size() == problems);
      config_.topics.push_back(std::move(topic));
      topics_.push_back(setting);
    }
    if (!config_.topics.empty() && config_.kafka.brokers.empty()) {
      topics->problem("there are topics but no brokers to read them from: set kafka.brokers");
    }
  }

  /// What needs the whole file. Whether the mapping fits its table is asked only if both could be read.
  void check_topic(const Setting& setting, const ingest::Mapping& topic, bool readable) {
    for (const ingest::Mapping& other : config_.topics) {
      if (other.topic == topic.topic) {
        setting.problem("topic " + quoted(topic.topic) + " has a mapping above: one is all it can have");
      }
    }
    const model::TableSchema* table = find_table(topic.table);
    if (table == nullptr) {
      std::vector<std::string> names;
      for (const model::TableSchema& candidate : config_.tables) names.push_back(candidate.name);
      setting.inside("table").problem("table " + quoted(topic.table) + " is not in this file" +
                                      did_you_mean(topic.table, names) +
                                      (names.empty() ? "; there are no tables" : "; there is " + either(names)));
      return;
    }
    if (!readable) return;
    if (model::Status status = ingest::validate(topic, *table); !status.ok())
      add_mapping_problem(setting, status.message());
  }

  /// A mapping's problem begins with the name of its setting: `sort_key: needs …`.
  static void add_mapping_problem(const Setting& topic, const std::string& message) {
    const std::size_t end = message.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.");
    if (end == std::string::npos || end == 0 || !std::string_view(message).substr(end).starts_with(": ")) {
      return topic.problem(message);
    }
    topic.inside(message.substr(0, end)).problem(message.substr(end + 2));
  }

  void check_addresses() {
    const bool same =
        config_.api.port != 0 && config_.api.port == config_.admin.port && config_.api.host == config_.admin.host;
    if (!same) return;
    (admin_ ? *admin_ : root_.self()).problem("api and admin can't share port " + std::to_string(config_.api.port));
  }

  const model::TableSchema* find_table(std::string_view name) const {
    const auto found = std::find_if(config_.tables.begin(), config_.tables.end(),
                                    [name](const model::TableSchema& table) { return table.name == name; });
    return found == config_.tables.end() ? nullptr : &*found;
  }

  SettingsTree& tree_;
  Section root_;
  Config config_;
  std::vector<Setting> tables_;  // where config_.tables stand
  std::vector<Setting> topics_;  // where config_.topics stand
  std::optional<Setting> api_;
  std::optional<Setting> admin_;
};

}  // namespace

std::string ConfigProblem::text() const {
  std::string text = file;
  if (line > 0) text += ":" + std::to_string(line);
  text += ": " + setting + ": ";
  if (!found.empty()) text += "found " + found + ", accepted: ";
  return text + accepted;
}

LoadedConfig load_config(const std::string& file, const std::vector<std::string>& overrides) {
  SettingsTree tree(file);
  if (!tree.load()) return {.config = {}, .errors = tree.problems(), .warnings = {}};
  for (const std::string& assignment : overrides) tree.override_with(assignment);
  if (!tree.root().IsMap() && !tree.root().IsNull()) {
    tree.add_problem("(file)", tree.root(), "", "a config is a section: kafka:, tables:, topics:, …");
    return {.config = {}, .errors = tree.problems(), .warnings = {}};
  }
  return ConfigReader(tree).read();
}

}  // namespace drover::server

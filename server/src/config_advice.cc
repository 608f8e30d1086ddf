#include "config_advice.h"

#include <algorithm>
#include <string>

namespace drover::server {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Whether a mapping may write the attribute. Without a list it may write any.
bool writes(const std::vector<ingest::AttributeMapping>& attributes, const std::string& name) {
  return attributes.empty() ||
         std::any_of(attributes.begin(), attributes.end(),
                     [&](const ingest::AttributeMapping& mapping) { return mapping.name == name; });
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

void advise_on_table(const model::TableSchema& table, const Setting& place, std::vector<ConfigProblem>& out) {
  for (const model::IndexSchema& index : table.indexes) {
    if (index.local || !contains(table.inherit, index.key.partition_key.name)) continue;
    out.push_back(place.warning("index " + quoted(index.name) + " gathers the readings of many vehicles by " +
                                index.key.partition_key.name +
                                ", which few distinct values share: each of its collections takes the heat of all its "
                                "vehicles, and grows without end. Keep the number of values well above the number of "
                                "shards, or add the day to the key"));
  }
}

/// Advice on one topic and the table it feeds.
class TopicAdvice {
 public:
  TopicAdvice(const ingest::Mapping& topic, const model::TableSchema& table, const Setting& place,
              std::vector<ConfigProblem>& out)
      : topic_(topic), table_(table), place_(place), out_(out) {}

  void give() {
    endless_stream_with_local_index();
    nothing_to_inherit();
    empty_index();
  }

 private:
  void warn(std::string sentence) { out_.push_back(place_.warning(std::move(sentence))); }

  /// Whether each reading of a vehicle makes an item of its own: its sort key has something that its partition key
  /// hasn't.
  bool grows_without_end() const {
    return !topic_.sort_key.field.empty() && topic_.sort_key.field != topic_.partition_key.field;
  }

  void endless_stream_with_local_index() {
    if (!grows_without_end() || !topic_.partition_key.digits.empty()) return;
    const auto local = std::find_if(table_.indexes.begin(), table_.indexes.end(),
                                    [](const model::IndexSchema& index) { return index.local; });
    if (local == table_.indexes.end()) return;
    warn("a stream that grows without end goes to table " + quoted(table_.name) + ", whose local index " +
         quoted(local->name) +
         " caps every collection at 10 GB (item_collection_limit): past that, its writes fail. Make the index a global "
         "one, or put the day into "
         "the partition key");
  }

  void nothing_to_inherit() {
    if (!table_.inherit.empty() && !topic_.partition_key.digits.empty()) {
      warn("table " + quoted(table_.name) + " inherits from the item " + quoted(table_.inherit_from) +
           ", which the bucket in partition_key keeps out of the readings' collections: they get nothing from it. Send "
           "what they need with each record, or leave the bucket out");
      return;
    }
    for (const std::string& name : table_.inherit) {
      if (topic_.meta && topic_.meta->sort_key == table_.inherit_from && writes(topic_.meta->attributes, name))
        continue;
      warn("table " + quoted(table_.name) + " inherits " + name + " from the item " + quoted(table_.inherit_from) +
           ", which this topic doesn't write: readings get it only if another topic or the API does. See meta");
    }
  }

  void empty_index() {
    for (const model::IndexSchema& index : table_.indexes) {
      const std::string& name = index.key.partition_key.name;
      if (name == table_.key.partition_key.name || (table_.key.sort_key && name == table_.key.sort_key->name)) continue;
      const bool inherits = contains(table_.inherit, name) && topic_.partition_key.digits.empty();
      if (inherits || writes(topic_.attributes, name)) continue;
      warn("index " + quoted(index.name) + " takes items with the attribute " + name +
           ", which this topic's readings don't have: add it to attributes, or to the table's inherit");
    }
  }

  const ingest::Mapping& topic_;
  const model::TableSchema& table_;
  const Setting& place_;
  std::vector<ConfigProblem>& out_;
};

void advise_on_address(const std::string& name, const Address& address, const std::optional<Setting>& place,
                       std::vector<ConfigProblem>& out) {
  if (!place || is_loopback(address.host)) return;
  out.push_back(place->warning(name + " listens on " + address.host + ", and there is no authentication yet: whoever " +
                               "reaches that port reads and writes. Keep it behind a firewall"));
}

}  // namespace

std::vector<ConfigProblem> advise(const Config& config, const ConfigPlaces& places) {
  std::vector<ConfigProblem> out;
  for (std::size_t i = 0; i < config.tables.size(); ++i) advise_on_table(config.tables[i], places.tables[i], out);
  for (std::size_t i = 0; i < config.topics.size(); ++i) {
    const auto table =
        std::find_if(config.tables.begin(), config.tables.end(),
                     [&](const model::TableSchema& candidate) { return candidate.name == config.topics[i].table; });
    TopicAdvice(config.topics[i], *table, places.topics[i], out).give();
  }
  advise_on_address("api", config.api, places.api, out);
  advise_on_address("admin", config.admin, places.admin, out);
  return out;
}

}  // namespace drover::server

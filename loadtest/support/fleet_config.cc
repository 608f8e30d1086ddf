#include "loadtest/support/fleet_config.h"

#include "drover/ingest/mapping.h"

namespace drover::loadtest {
namespace {

ingest::JsonPath path(const char* name) {
  return {{name}};
}

model::TableSchema fleet_table(model::TimePrecision precision, bool depot_index) {
  model::TableSchema table;
  table.name = kTable;
  table.key = {{"vehicleId"}, model::KeyAttribute{"recordedAt"}};
  table.time_sort_key = model::TimeSortKey{"TS#", precision};
  if (!depot_index) return table;
  table.inherit = {"depotCode"};
  model::IndexSchema depot;
  depot.name = kDepotIndex;
  depot.key = {{"depotCode"}, model::KeyAttribute{"recordedAt"}};
  table.indexes = {depot};
  return table;
}

ingest::Mapping fleet_mapping(const std::string& topic) {
  ingest::Mapping mapping;
  mapping.topic = topic;
  mapping.table = kTable;
  mapping.id_path = path("vehicleId");
  mapping.time_path = path("recordedAt");
  mapping.partition_key = {"VEH#", "vehicleId", ""};
  mapping.sort_key = {"TS#", "recordedAt", ""};
  mapping.meta =
      ingest::MetaMapping{path("kind"),
                          "meta",
                          "META",
                          {{path("plate"), "plate"}, {path("model"), "model"}, {path("depotCode"), "depotCode"}}};
  return mapping;
}

}  // namespace

server::Config fleet_config(const std::string& brokers, const std::string& topic, model::TimePrecision precision,
                            bool depot_index) {
  server::Config config;
  config.kafka.brokers = brokers;
  config.tables = {fleet_table(precision, depot_index)};
  config.topics = {fleet_mapping(topic)};
  config.log_level = "warn";
  return config;
}

}  // namespace drover::loadtest

#pragma once

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "drover/model/attribute.h"
#include "drover/model/schema.h"
#include "drover/store/item.h"
#include "drover/store/store.h"
#include "tests/support/rows.h"

/// A table driven as ingest and the API drive it.
namespace drover::test {

/// The telemetry table of the examples: vehicleId and recordedAt, readings inherit the vehicle's depotCode.
inline model::TableSchema telemetry_schema(std::vector<model::IndexSchema> indexes = {}) {
  model::TableSchema schema;
  schema.name = "telemetry";
  schema.key = {{"vehicleId", model::KeyType::kString}, model::KeyAttribute{"recordedAt", model::KeyType::kString}};
  schema.indexes = std::move(indexes);
  schema.inherit = {"depotCode"};
  return schema;
}

/// All readings of a depot by time.
inline model::IndexSchema depot_index() {
  return {"depot",
          {{"depotCode", model::KeyType::kString}, model::KeyAttribute{"recordedAt", model::KeyType::kString}},
          false,
          model::ProjectionType::kAll,
          {}};
}

/// Offers every part of a batch until its shard takes it; false: the table is gone.
inline bool feed(store::Table& table, std::shared_ptr<const model::RowBatch> rows) {
  for (partitioner::RoutedBatch& part : table.route(std::move(rows))) {
    model::Status status = table.submit(std::move(part));
    for (; status.code() == model::StatusCode::kFull; status = table.submit(std::move(part))) std::this_thread::yield();
    if (!status.ok()) return false;
  }
  return true;
}

/// One API write and its outcome, index entries included.
inline model::Status write_and_wait(store::Table& table, std::string partition_key, std::string sort_key,
                                    std::function<store::ItemWrite::Decision(std::optional<std::string_view>)> decide) {
  std::promise<model::Status> done;
  std::future<model::Status> outcome = done.get_future();
  store::ItemWrite write{std::move(partition_key), std::move(sort_key), std::move(decide),
                         [&done](model::Status status) { done.set_value(std::move(status)); }};
  model::Status status = table.write(std::move(write));
  for (; status.code() == model::StatusCode::kFull; status = table.write(std::move(write))) std::this_thread::yield();
  return status.ok() ? outcome.get() : status;
}

inline model::Status put(store::Table& table, std::string partition_key, std::string sort_key,
                         model::Bytes attributes) {
  return write_and_wait(table, std::move(partition_key), std::move(sort_key), [&](auto) {
    return store::ItemWrite::Decision{store::ItemWrite::Action::kPut, attributes};
  });
}

inline model::Status remove(store::Table& table, std::string partition_key, std::string sort_key) {
  return write_and_wait(table, std::move(partition_key), std::move(sort_key), [](auto) {
    return store::ItemWrite::Decision{store::ItemWrite::Action::kDelete, {}};
  });
}

inline model::Status erase(store::Table& table, std::string partition_key) {
  std::promise<model::Status> done;
  std::future<model::Status> outcome = done.get_future();
  store::ItemWrite write{
      std::move(partition_key), {}, {}, [&done](model::Status status) { done.set_value(std::move(status)); }};
  write.erases = true;
  const model::Status status = table.write(std::move(write));
  return status.ok() ? outcome.get() : status;
}

/// The items of one collection, key attributes included. `index` empty: the table's.
inline std::vector<model::Item> read_items(const store::Table& table, const model::AttributeNames& names,
                                           std::string_view index, std::string_view partition_key,
                                           const store::KeyRange& range = {}, bool ascending = true) {
  store::ItemReader reader(table.schema(), index.empty() ? nullptr : table.schema().find_index(index), names);
  std::vector<model::Item> items;
  const model::Status status = table.read(index, partition_key, range, ascending, [&](const store::StoredItem& item) {
    items.push_back(reader.to_item(item));
    return true;
  });
  DROVER_CHECK(status.ok(), "the index is there");
  return items;
}

}  // namespace drover::test

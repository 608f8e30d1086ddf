// A stranger's program: puts two readings of a vehicle into a table and prints the sort key of the newest.
#include <drover/model/key.h>
#include <drover/model/value_view.h>
#include <drover/store/item.h>
#include <drover/store/store.h>

#include <future>
#include <iostream>
#include <string>
#include <utility>

namespace {

using drover::model::Bytes;
using drover::model::KeyAttribute;
using drover::model::KeyType;
using drover::model::Status;
using drover::model::StatusCode;
using drover::store::ItemWrite;

Status put(drover::store::Table& table, Bytes partition_key, Bytes sort_key, Bytes attributes) {
  std::promise<Status> outcome;
  ItemWrite write{.partition_key = std::move(partition_key),
                  .sort_key = std::move(sort_key),
                  .decide =
                      [attributes = std::move(attributes)](std::optional<std::string_view>) {
                        return ItemWrite::Decision{ItemWrite::Action::kPut, attributes};
                      },
                  .done = [&outcome](Status status) { outcome.set_value(std::move(status)); }};
  if (Status status = table.write(std::move(write)); !status.ok()) return status;
  return outcome.get_future().get();
}

}  // namespace

int main() {
  const auto store = drover::store::Store::open({.workers = 1});
  drover::model::TableSchema schema;
  schema.name = "telemetry";
  schema.key = {{"vehicleId", KeyType::kString}, KeyAttribute{"recordedAt", KeyType::kString}};
  const auto created = store->create_table(schema);
  if (!created.ok()) {
    std::cerr << created.status().message() << "\n";
    return 1;
  }
  drover::store::Table& table = **created;

  Bytes attributes;
  drover::model::append_name(attributes, "speedKph", store->names());
  drover::model::append_value(attributes, drover::model::AttributeValue::string("88"), store->names());
  for (const char* recorded_at : {"TS#2026-06-23T09:00:01Z", "TS#2026-06-23T09:00:02Z"}) {
    if (const Status status = put(table, "VEH#V-7741", recorded_at, attributes); !status.ok()) {
      std::cerr << status.message() << "\n";
      return 1;
    }
  }

  const Status read = table.read("", "VEH#V-7741", {}, false, [](const drover::store::StoredItem& item) {
    std::cout << item.row.sort_key() << "\n";
    return false;
  });
  return read.ok() ? 0 : 1;
}

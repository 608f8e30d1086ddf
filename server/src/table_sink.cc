#include "table_sink.h"

#include <algorithm>
#include <utility>

namespace drover::server {
namespace {

class PendingParts final : public ingest::RowSink::Pending {
 public:
  /// `table` is null if there is none that takes the rows.
  PendingParts(std::shared_ptr<store::Table> table, std::vector<partitioner::RoutedBatch> parts)
      : table_(std::move(table)), parts_(std::move(parts)) {}

  /// A full shard doesn't hold the others' parts back: each shard has one part, so no order is lost.
  model::Status offer() override {
    if (table_ == nullptr) return gone();
    std::vector<partitioner::RoutedBatch> left;
    for (partitioner::RoutedBatch& part : parts_) {
      const model::Status status = table_->submit(std::move(part));
      if (status.code() == model::StatusCode::kStopping) return gone();
      if (!status.ok()) left.push_back(std::move(part));  // NOLINT(bugprone-use-after-move): moved from on success only
    }
    parts_ = std::move(left);
    if (parts_.empty()) return {};
    return {model::StatusCode::kFull, "a shard's inbox is full"};
  }

 private:
  static model::Status gone() { return {model::StatusCode::kStopping, "the table is gone"}; }

  std::shared_ptr<store::Table> table_;  // shared with the store: a deleted table lives until the last part has let go
  std::vector<partitioner::RoutedBatch> parts_;
};

}  // namespace

TableSink::TableSink(store::Store& store, const std::vector<model::TableSchema>& tables) : store_(store) {
  for (const model::TableSchema& table : tables) keys_[table.name] = table.key;
}

std::unique_ptr<ingest::RowSink::Pending> TableSink::route(const std::string& table,
                                                           std::shared_ptr<const model::RowBatch> rows) {
  std::shared_ptr<store::Table> found = store_.find_table(table);
  const auto keys = keys_.find(table);
  if (found == nullptr || keys == keys_.end() || found->schema().key != keys->second) {
    return std::make_unique<PendingParts>(nullptr, std::vector<partitioner::RoutedBatch>{});
  }
  auto parts = found->route(std::move(rows));
  return std::make_unique<PendingParts>(std::move(found), std::move(parts));
}

}  // namespace drover::server

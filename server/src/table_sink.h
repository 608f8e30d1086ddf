#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "drover/ingest/consumer.h"
#include "drover/model/schema.h"
#include "drover/store/store.h"

namespace drover::server {

/// Between ingest and the store: routes decoded rows to the shards of their table and hands them over.
///
/// Rows are encoded for the key schema that their topic was configured with. A table that was deleted, or made anew
/// with other keys, takes none of them. Threads: route() from any; a Pending from one at a time.
class TableSink final : public ingest::RowSink {
 public:
  /// `tables`: the schemas that rows are encoded for. `store` outlives this.
  TableSink(store::Store& store, const std::vector<model::TableSchema>& tables);

  std::unique_ptr<Pending> route(const std::string& table, std::shared_ptr<const model::RowBatch> rows) override;

 private:
  store::Store& store_;
  std::map<std::string, model::KeySchema> keys_;
};

}  // namespace drover::server

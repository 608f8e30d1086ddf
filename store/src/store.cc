#include "drover/store/store.h"

#include <chrono>
#include <map>
#include <thread>

#include "drover/model/sync.h"
#include "table.h"

namespace drover::store {
namespace {

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(StoreOptions options) : shared_(options) {}

  ~MemoryStore() override {
    std::map<std::string, std::shared_ptr<MemoryTable>, std::less<>> tables;
    {
      const model::LockGuard lock(mutex_);
      tables.swap(tables_);
    }
    for (const auto& [name, table] : tables) table->close();
  }

  model::AttributeNames& names() override { return shared_.names; }

  model::Result<std::shared_ptr<Table>> create_table(const model::TableSchema& schema) override {
    if (model::Status status = model::validate(schema); !status.ok()) return status;
    const model::LockGuard lock(mutex_);
    if (tables_.contains(schema.name)) return model::Status{model::StatusCode::kExists, "table exists: " + schema.name};
    auto table = MemoryTable::make(shared_, schema);
    tables_.emplace(schema.name, table);
    return std::shared_ptr<Table>(std::move(table));
  }

  model::Status delete_table(std::string_view name) override {
    std::shared_ptr<MemoryTable> table;
    {
      const model::LockGuard lock(mutex_);
      const auto found = tables_.find(name);
      if (found == tables_.end()) return {model::StatusCode::kNotFound, "no such table: " + std::string(name)};
      table = std::move(found->second);
      tables_.erase(found);
    }
    table->close();
    return {};
  }

  std::shared_ptr<Table> find_table(std::string_view name) const override {
    const model::LockGuard lock(mutex_);
    const auto found = tables_.find(name);
    return found == tables_.end() ? nullptr : found->second;
  }

  std::vector<std::string> table_names() const override {
    const model::LockGuard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, table] : tables_) names.push_back(name);
    return names;
  }

  StoreStats stats() const override {
    std::vector<std::shared_ptr<MemoryTable>> tables;
    {
      const model::LockGuard lock(mutex_);
      for (const auto& [name, table] : tables_) tables.push_back(table);
    }
    StoreStats stats;
    for (const auto& table : tables) table->add_stats(stats);
    return stats;
  }

  // Pairs with the decrements after applying: whoever sees 0 may read what was applied.
  bool idle() const override { return shared_.in_flight.load(std::memory_order_acquire) == 0; }

  bool drain(std::int64_t timeout_ms) override {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    while (!idle()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

 private:
  Shared shared_;
  mutable model::Mutex mutex_;
  std::map<std::string, std::shared_ptr<MemoryTable>, std::less<>> tables_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Store> Store::open(StoreOptions options) {
  return std::make_unique<MemoryStore>(options);
}

}  // namespace drover::store

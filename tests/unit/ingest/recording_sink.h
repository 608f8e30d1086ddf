#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "drover/ingest/consumer.h"
#include "drover/model/row.h"

namespace drover::ingest::test {

/// A sink that keeps the offsets of what it was handed, by source, in their order, and can be full or gone.
class RecordingSink : public RowSink {
 public:
  using Offsets = std::map<std::uint16_t, std::vector<std::uint64_t>>;

  std::unique_ptr<Pending> route(const std::string& table, std::shared_ptr<const model::RowBatch> rows) override {
    return std::make_unique<Batch>(*this, table, std::move(rows));
  }

  void set_full(std::uint16_t source, bool full) {
    const std::lock_guard lock(mutex_);
    full ? void(full_.insert(source)) : void(full_.erase(source));
  }
  void set_gone() {
    const std::lock_guard lock(mutex_);
    gone_ = true;
  }
  Offsets offsets() const {
    const std::lock_guard lock(mutex_);
    return offsets_;
  }
  std::size_t rows() const {
    const std::lock_guard lock(mutex_);
    return count();
  }
  std::map<std::uint16_t, std::string> tables() const {
    const std::lock_guard lock(mutex_);
    return tables_;
  }

  /// Waits for so many rows in all; false: they did not come.
  bool wait_for_rows(std::size_t rows) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return count() >= rows; });
  }
  bool wait_for_rows_of(std::uint16_t source, std::size_t rows) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return offsets_[source].size() >= rows; });
  }
  /// Waits until a batch of that source was refused since the call.
  bool wait_until_refused(std::uint16_t source) {
    std::unique_lock lock(mutex_);
    refused_.erase(source);
    return changed_.wait_for(lock, kPatience, [&] { return refused_.contains(source); });
  }

 private:
  static constexpr std::chrono::seconds kPatience{60};

  class Batch : public Pending {
   public:
    Batch(RecordingSink& sink, std::string table, std::shared_ptr<const model::RowBatch> rows)
        : sink_(sink), table_(std::move(table)), rows_(std::move(rows)) {}

    model::Status offer() override {
      const std::lock_guard lock(sink_.mutex_);
      const auto version = [this](const model::RowBatch::Row& row) {
        return model::RowView(rows_->row_bytes(row)).version();
      };
      const std::uint16_t source = version(rows_->rows.front()).source().value;
      sink_.changed_.notify_all();
      if (sink_.gone_) return {model::StatusCode::kStopping, "gone"};
      if (sink_.full_.contains(source)) {
        sink_.refused_.insert(source);
        return {model::StatusCode::kFull, "full"};
      }
      sink_.tables_[source] = table_;
      for (const model::RowBatch::Row& row : rows_->rows) sink_.offsets_[source].push_back(version(row).offset);
      return {};
    }

   private:
    RecordingSink& sink_;
    const std::string table_;
    const std::shared_ptr<const model::RowBatch> rows_;
  };

  std::size_t count() const {
    std::size_t rows = 0;
    for (const auto& [source, offsets] : offsets_) rows += offsets.size();
    return rows;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Offsets offsets_;
  std::map<std::uint16_t, std::string> tables_;
  std::set<std::uint16_t> full_;
  std::set<std::uint16_t> refused_;
  bool gone_ = false;
};

}  // namespace drover::ingest::test

#include "drover/server/pipeline.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "admin.h"
#include "checkpointer.h"
#include "drover/ingest/consumer.h"
#include "drover/model/clock.h"
#include "dynamodb/api.h"
#include "http_server.h"
#include "sweeper.h"
#include "table_sink.h"

namespace drover::server {
namespace {

/// For answers under way when the listeners close.
constexpr std::int64_t kListenerStopMs = 1'000;

class DroverPipeline final : public Pipeline {
 public:
  DroverPipeline(Config config, std::unique_ptr<store::Store> store)
      : config_(std::move(config)),
        store_(std::move(store)),
        sink_(*store_, config_.tables),
        sweeper_(*store_),
        api_(DynamoDbApi::make(*store_)),
        api_server_(HttpServer::make(
            {.address = config_.api, .threads = config_.api_threads, .name = "api"},
            [this](const HttpRequest& request, Respond respond) { api_->handle(request, std::move(respond)); })),
        admin_({.store = *store_,
                .ingest = [this] { return ingest_stats(); },
                .api = [this] { return api_->stats(); },
                .checkpoints = [this] { return checkpoint_stats(); },
                .version = std::string(version()),
                .reads_kafka = !config_.topics.empty()}),
        admin_server_(HttpServer::make(
            {.address = config_.admin, .name = "admin"},
            [this](const HttpRequest& request, const Respond& respond) { admin_.handle(request, respond); })) {}

  ~DroverPipeline() override { (void)stop(); }

  model::Status start() override {
    model::Status status = create_tables();
    if (status.ok()) status = open_consumer();
    if (status.ok()) status = api_server_->start();
    if (status.ok()) status = admin_server_->start();
    if (!status.ok()) {
      consumer_.reset();
      (void)stop();
      return status;
    }
    if (!config_.store_directory.empty()) {
      checkpointer_.emplace(*store_, consumer_.get(), config_.checkpoint_interval_ms).start();
    }
    sweeper_.start();
    if (consumer_ != nullptr) consumer_->start();
    return {};
  }

  model::Status stop() override {
    if (stopped_) return {};
    stopped_ = true;
    const std::int64_t deadline_ns = model::steady_clock_ns() + config_.stop_timeout_ms * 1'000'000;
    const auto left_ms = [deadline_ns] {
      return std::max<std::int64_t>(0, (deadline_ns - model::steady_clock_ns()) / 1'000'000);
    };
    if (consumer_ != nullptr) consumer_->stop();
    sweeper_.stop();
    api_server_->stop(std::min(left_ms(), kListenerStopMs));
    const bool drained = store_->drain(left_ms());
    model::Status kept;
    if (checkpointer_) kept = checkpointer_->stop();
    admin_server_->stop(std::min(left_ms(), kListenerStopMs));
    if (drained) return kept;
    return {model::StatusCode::kUnavailable,
            "what was in hand could not be applied within stop_timeout; the next start reads it from Kafka again"};
  }

  store::Store& store() override { return *store_; }
  ingest::IngestStats ingest_stats() const override {
    return consumer_ == nullptr ? ingest::IngestStats{} : consumer_->stats();
  }
  store::CheckpointStats checkpoint_stats() const override {
    return checkpointer_ ? checkpointer_->stats() : store::CheckpointStats{};
  }
  Address api_address() const override { return api_server_->address(); }
  Address admin_address() const override { return admin_server_->address(); }

 private:
  model::Status create_tables() {
    for (const model::TableSchema& table : config_.tables) {
      const auto created = store_->create_table(table);
      const auto present = store_->find_table(table.name);
      model::Status status = created.ok() ? model::Status{} : created.status();
      if (present != nullptr && may_become(present->schema(), table)) {
        status = add_indexes(present->schema(), table);
      } else if (present != nullptr && !created.ok() && present->schema().key == table.key) {
        status = model::invalid(
            "store.directory has it with other indexes, inherited attributes or a time sort key than the config says: "
            "change the config, or run drover store rebuild");
      }
      if (!status.ok()) return {status.code(), "table " + table.name + ": " + status.message()};
      if (status = set_retention(table.name); !status.ok()) return status;
    }
    return {};
  }

  /// Whether global indexes are all that a table lacks of what the config says. One that it has beside those stays.
  static bool may_become(const model::TableSchema& present, const model::TableSchema& wanted) {
    model::TableSchema with_wanted = wanted;
    with_wanted.indexes = present.indexes;
    const auto is_there = [&](const model::IndexSchema& index) {
      const model::IndexSchema* found = present.find_index(index.name);
      return found != nullptr ? *found == index : !index.local;
    };
    const auto is_wanted = [&](const model::IndexSchema& index) {
      return !index.local || wanted.find_index(index.name) != nullptr;
    };
    return present == with_wanted && std::all_of(wanted.indexes.begin(), wanted.indexes.end(), is_there) &&
           std::all_of(present.indexes.begin(), present.indexes.end(), is_wanted);
  }

  model::Status add_indexes(const model::TableSchema& present, const model::TableSchema& wanted) {
    for (const model::IndexSchema& index : wanted.indexes) {
      if (present.find_index(index.name) != nullptr) continue;
      if (model::Status status = store_->create_index(wanted.name, index); !status.ok()) return status;
    }
    return {};
  }

  model::Status set_retention(const std::string& table) {
    const auto found = config_.retention.find(table);
    const model::Retention wanted = found != config_.retention.end() ? found->second : model::Retention{};
    return store_->change_retention(table, [&](model::Retention& retention) {
      if (!wanted.ttl_attribute.empty()) retention.ttl_attribute = wanted.ttl_attribute;
      retention.retain_ms = wanted.retain_ms;
      return model::Status();
    });
  }

  model::Status open_consumer() {
    if (config_.topics.empty()) return {};
    std::vector<ingest::Topic> topics;
    for (const ingest::Mapping& mapping : config_.topics) {
      const auto table = store_->find_table(mapping.table);
      if (table == nullptr) return model::invalid("topic " + mapping.topic + ": there is no table " + mapping.table);
      topics.push_back({mapping, table->schema()});
      topics.back().mapping.age_ms_max = table->retention().retain_ms;
    }
    auto opened =
        ingest::Consumer::open(config_.kafka, std::move(topics), store_->names(), sink_, store_->recovery().positions);
    if (!opened.ok()) return opened.status();
    consumer_ = std::move(opened).value();
    return {};
  }

  // The way of the data, read upwards: Kafka, consumer, sink, store; below it, what reads. Declared from sink to
  // source, as start() goes, so that destruction goes from source to sink, as stop() does.
  const Config config_;
  const std::unique_ptr<store::Store> store_;
  TableSink sink_;
  std::unique_ptr<ingest::Consumer> consumer_;  // null without topics
  std::optional<Checkpointer> checkpointer_;    // none in memory only
  Sweeper sweeper_;
  const std::unique_ptr<DynamoDbApi> api_;
  const std::unique_ptr<HttpServer> api_server_;
  Admin admin_;
  const std::unique_ptr<HttpServer> admin_server_;
  bool stopped_ = false;
};

}  // namespace

model::Result<std::unique_ptr<Pipeline>> Pipeline::make(Config config, const store::RecoveryProgress& progress) {
  std::unique_ptr<store::Store> store;
  if (config.store_directory.empty()) {
    store = store::Store::open(config.store);
  } else {
    auto opened = store::Store::open(config.store_directory, config.store, progress);
    if (!opened.ok()) return opened.status();
    store = std::move(opened).value();
  }
  return std::unique_ptr<Pipeline>(std::make_unique<DroverPipeline>(std::move(config), std::move(store)));
}

std::string_view version() {
  return DROVER_VERSION;
}

}  // namespace drover::server

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "drover/ingest/consumer.h"
#include "drover/model/schema.h"
#include "drover/model/status.h"
#include "drover/store/store.h"

namespace drover::server {

/// Where a listener listens. Port 0 takes any free one.
struct Address {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
};

/// Everything that `drover serve` is told, checked: what the YAML file, `--set` and the environment say together.
struct Config {
  ingest::ConsumerOptions kafka;           ///< No brokers: no ingest, the API alone.
  std::vector<model::TableSchema> tables;  ///< Missing ones are created at the start.
  /// By a table's name, of those whose items go by themselves. Without a TTL attribute, that stays as UpdateTimeToLive
  /// left it.
  std::map<std::string, model::Retention> retention;
  std::vector<ingest::Mapping> topics;
  store::StoreOptions store;
  std::string store_directory;                  ///< Empty: in memory only.
  std::int64_t checkpoint_interval_ms = 5'000;  ///< At least, between two checkpoints.
  Address api{"127.0.0.1", 8000};
  std::uint32_t api_threads = 1;
  Address admin{"127.0.0.1", 9464};  ///< /metrics, /heat, /healthz, /readyz.
  std::string log_level = "info";
  std::int64_t stop_timeout_ms = 10'000;  ///< From SIGTERM to the exit.
};

/// A setting that is wrong, or (a warning) a design that will hurt.
struct ConfigProblem {
  std::string file;  ///< "--set" for an override.
  int line = 0;      ///< From 1; 0: not at a line (`--set`, an unreadable file). A missing setting has its section's.
  std::string setting;   ///< "tables[0].keys.partition_key"
  std::string found;     ///< Empty: `accepted` says it all. Never a secret's value.
  std::string accepted;  ///< What would be accepted; for a warning, what hurts and what to do instead.

  /// `deploy/drover.yaml:12: kafka.handles: found "many", accepted: a whole number from 1 to 16`
  std::string text() const;
};

struct LoadedConfig {
  Config config;
  std::vector<ConfigProblem> errors;  ///< Empty: the config is good.
  std::vector<ConfigProblem> warnings;
};

/// Reads a YAML file and applies `overrides` ("a.b=c", the values being YAML). Never throws; all problems are
/// collected.
LoadedConfig load_config(const std::string& file, const std::vector<std::string>& overrides);

inline constexpr int kExitConfig = 78;       ///< EX_CONFIG: the config is wrong.
inline constexpr int kExitUnavailable = 69;  ///< EX_UNAVAILABLE: a port is taken, …

}  // namespace drover::server

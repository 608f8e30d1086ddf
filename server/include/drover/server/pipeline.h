#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "drover/ingest/stats.h"
#include "drover/model/status.h"
#include "drover/server/config.h"
#include "drover/store/store.h"

namespace drover::server {

/// Drover's version, "0.1.0".
std::string_view version();

/// All stages joined: Kafka to store to readers, with the API and the admin address. What `drover serve` runs.
///
/// Threads: start() and stop() from one thread; the rest from any.
class Pipeline {
 public:
  /// Opens the store, with all that stands in its directory: `progress` hears of it. An error says what to change.
  static model::Result<std::unique_ptr<Pipeline>> make(Config config, const store::RecoveryProgress& progress = {});
  virtual ~Pipeline() = default;

  /// Starts from sink to source: tables, listeners, then the consumer. An error says what to change (port taken, a
  /// table with another key schema, a wrong librdkafka property); nothing runs then.
  virtual model::Status start() = 0;
  /// Stops from source to sink: consuming ends, what is in hand is applied, the group is left, listeners close. Returns
  /// within the configured stop timeout; kUnavailable if something had to be left behind.
  virtual model::Status stop() = 0;

  virtual store::Store& store() = 0;
  virtual ingest::IngestStats ingest_stats() const = 0;
  virtual store::CheckpointStats checkpoint_stats() const = 0;
  /// The addresses in use, with real ports.
  virtual Address api_address() const = 0;
  virtual Address admin_address() const = 0;
};

}  // namespace drover::server

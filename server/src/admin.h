#pragma once

#include <functional>
#include <string>

#include "drover/ingest/stats.h"
#include "drover/metrics/collector.h"
#include "drover/metrics/operations.h"
#include "drover/store/store.h"
#include "heat_report.h"
#include "http_server.h"

namespace drover::server {

/// A source is caught up when it is at most this far behind: in records, or in the age of what it reads.
inline constexpr std::int64_t kCaughtUpRecordsMax = 10'000;
inline constexpr double kCaughtUpSecondsMax = 10;

/// What is served to operators: /metrics, /heat, /healthz, /readyz, /backup, /erase, and an index of them at /.
///
/// Threads: handle() from one thread at a time (the admin server has one).
class Admin {
 public:
  struct Sources {
    store::Store& store;
    std::function<ingest::IngestStats()> ingest;
    std::function<metrics::ApiStats()> api;
    std::function<store::CheckpointStats()> checkpoints;
    std::string version;
    bool reads_kafka = false;  ///< Whether there are topics, and so a connection to be ready.
  };
  explicit Admin(Sources sources);

  void handle(const HttpRequest& request, const Respond& respond);

 private:
  HttpResponse ready();
  HttpResponse back_up(const HttpRequest& request);
  void erase(const HttpRequest& request, const Respond& respond);

  const Sources sources_;
  const metrics::Collector collector_;
  HeatReport heat_;
  bool was_caught_up_ = false;
};

}  // namespace drover::server

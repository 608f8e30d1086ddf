#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "drover/metrics/operations.h"
#include "drover/store/store.h"
#include "http_server.h"

namespace drover::server {

/// The DynamoDB JSON protocol over one store.
///
/// Threads: handle() from any; it does not wait: a write answers through `respond` from a store worker.
class DynamoDbApi {
 public:
  static std::unique_ptr<DynamoDbApi> make(store::Store& store);
  virtual ~DynamoDbApi() = default;
  virtual void handle(const HttpRequest& request, Respond respond) = 0;
  virtual metrics::ApiStats stats() const = 0;
};

}  // namespace drover::server

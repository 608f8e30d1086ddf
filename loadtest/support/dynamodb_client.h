#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "drover/model/status.h"

namespace drover::loadtest {

/// A keep-alive connection to a server that speaks the DynamoDB JSON protocol.
///
/// Threads: one at a time.
class DynamoDbClient {
 public:
  /// kUnavailable if nobody listens there.
  static model::Result<std::unique_ptr<DynamoDbClient>> connect(const std::string& host, std::uint16_t port);
  virtual ~DynamoDbClient() = default;

  /// The answer's body. kInvalid with the body if the status is not 200; kUnavailable if the connection broke.
  virtual model::Result<std::string> call(std::string_view operation, std::string_view body) = 0;
};

}  // namespace drover::loadtest

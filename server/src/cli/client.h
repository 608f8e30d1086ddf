#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <string>

#include "drover/model/status.h"

namespace drover::cli {

/// A blocking client of a DynamoDB address or an admin address, over one keep-alive connection.
class Client {
 public:
  /// `endpoint`: http://HOST:PORT. kInvalid if it isn't of that form, kUnavailable if nothing answers there.
  static model::Result<Client> connect(const std::string& endpoint);

  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  /// One operation, "Query" or the like. An error answer is kInvalid with the server's words.
  model::Result<boost::json::object> call(const std::string& operation, const boost::json::object& request);
  /// Posts to a path of an admin address. An error answer is kInvalid with the server's words.
  model::Result<boost::json::object> post(const std::string& path, const boost::json::object& request);

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace drover::cli

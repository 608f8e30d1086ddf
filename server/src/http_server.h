#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "drover/model/status.h"
#include "drover/server/config.h"

namespace drover::server {

/// A request as a handler sees it; views are valid until its answer has been given.
struct HttpRequest {
  std::string_view method;
  std::string_view target;  ///< Path and query, as sent.
  std::string_view body;    ///< Decompressed.
  std::string_view content_type;
  std::string_view host;        ///< The Host header, or empty.
  std::string_view amz_target;  ///< X-Amz-Target, or empty.
  bool keep_alive = true;
};

struct HttpResponse {
  unsigned status = 200;
  std::string_view content_type = "application/json";  ///< A literal.
  std::string body;
  /// Further headers, complete lines each ending in \r\n.
  std::string extra_headers;
};

/// Gives the answer to one request: once, from any thread.
using Respond = std::function<void(HttpResponse&&)>;
using HttpHandler = std::function<void(const HttpRequest&, Respond)>;

/// An HTTP/1.1 server with keep-alive on Boost.Beast, bounded in connections, header and body sizes and idle time.
///
/// A connection's requests are handled one after the other, so pipelined ones are answered in their order.
/// Request bodies may be gzip-compressed; what they inflate to has the same bound as a plain body.
/// Threads: the handler runs on the server's own threads; it must not wait. An answer that is given on the thread that
/// the handler was called on is written at once, one from elsewhere is posted to the connection's thread.
class HttpServer {
 public:
  struct Options {
    Address address;
    std::uint32_t threads = 1;
    std::size_t body_size_bytes_max = 16 * 1024 * 1024;  ///< Beyond: 413.
    std::size_t header_size_bytes_max = 16 * 1024;       ///< Beyond: 431.
    std::size_t connections_max = 4096;                  ///< Beyond: 503, and closed.
    std::int64_t idle_timeout_ms = 30'000;               ///< Without a request under way.
    std::int64_t request_timeout_ms = 30'000;  ///< For a request to arrive whole, and for its answer to be taken.
    std::string name = "http";                 ///< Of its threads, and of its settings in error messages.
  };
  static std::unique_ptr<HttpServer> make(Options options, HttpHandler handler);
  virtual ~HttpServer() = default;
  /// kUnavailable: "port 8000 on 127.0.0.1 is in use: choose another one with --set api.port=N".
  virtual model::Status start() = 0;
  /// Stops accepting, lets answers under way out (for at most `timeout_ms`), closes all.
  virtual void stop(std::int64_t timeout_ms) = 0;
  virtual Address address() const = 0;  ///< With the real port.
};

}  // namespace drover::server

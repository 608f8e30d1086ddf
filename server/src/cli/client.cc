#include "client.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <string_view>
#include <utility>

namespace drover::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace json = boost::json;

constexpr std::string_view kScheme = "http://";
constexpr std::uint64_t kAnswerSizeBytesMax = 64 * 1024 * 1024;
constexpr std::chrono::seconds kTimeout{30};  ///< Of a connect, a request, an answer.

/// The server's words in an error answer: `ResourceNotFoundException: Cannot do operations on …`.
std::string error_text(const json::object& answer, unsigned status) {
  const auto text_of = [&](std::string_view name) -> std::string {
    const json::value* value = answer.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
  };
  std::string type = text_of("__type");
  type.erase(0, type.find('#') + 1);
  const std::string message = text_of("message").empty() ? text_of("Message") : text_of("message");
  if (type.empty() && message.empty()) return "the answer has status " + std::to_string(status);
  return type.empty() ? message : type + ": " + message;
}

}  // namespace

class Client::Impl {
 public:
  model::Status connect(const std::string& endpoint) {
    std::string_view rest = endpoint;
    if (!rest.starts_with(kScheme)) return model::invalid("an endpoint is written http://HOST:PORT, not " + endpoint);
    rest.remove_prefix(kScheme.size());
    if (rest.ends_with('/')) rest.remove_suffix(1);
    host_ = rest;
    const std::size_t colon = rest.rfind(':');
    const bool has_port = colon != std::string_view::npos && rest.find(']', colon) == std::string_view::npos;
    std::string name(rest.substr(0, has_port ? colon : rest.size()));
    if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);

    boost::system::error_code error;
    const auto found =
        asio::ip::tcp::resolver(context_).resolve(name, has_port ? std::string(rest.substr(colon + 1)) : "80", error);
    if (!error) {
      error = within_timeout([&](auto done) {
        stream_.async_connect(found, [done](const boost::system::error_code& problem, const auto&) { done(problem); });
      });
    }
    if (!error) return {};
    return {model::StatusCode::kUnavailable, "nothing answers at " + endpoint + " (" + error.message() +
                                                 "): is `drover serve` running there? Another place: --endpoint"};
  }

  model::Result<json::object> call(const std::string& operation, const json::object& request) {
    http::request<http::string_body> message{http::verb::post, "/", 11};
    message.set(http::field::content_type, "application/x-amz-json-1.0");
    message.set("X-Amz-Target", "DynamoDB_20120810." + operation);
    return exchange(message, request, "DynamoDB's protocol");
  }

  model::Result<json::object> post(const std::string& path, const json::object& request) {
    http::request<http::string_body> message{http::verb::post, path, 11};
    message.set(http::field::content_type, "application/json");
    return exchange(message, request, "an admin address of this Drover's version");
  }

 private:
  model::Result<json::object> exchange(http::request<http::string_body>& message, const json::object& request,
                                       const std::string& expected) {
    message.set(http::field::host, host_);
    message.body() = json::serialize(request);
    message.prepare_payload();

    const auto when_done = [](auto done) {
      return [done](const boost::system::error_code& problem, std::size_t) { done(problem); };
    };
    http::response_parser<http::string_body> parser;
    parser.body_limit(kAnswerSizeBytesMax);
    boost::system::error_code error =
        within_timeout([&](auto done) { http::async_write(stream_, message, when_done(done)); });
    if (!error) {
      error = within_timeout([&](auto done) { http::async_read(stream_, buffer_, parser, when_done(done)); });
    }
    if (error == beast::error::timeout) {
      return model::Status{model::StatusCode::kUnavailable, "no answer within " + std::to_string(kTimeout.count()) +
                                                                " s: Drover is busy, or something else listens there"};
    }
    if (error) return model::Status{model::StatusCode::kUnavailable, "the connection broke: " + error.message()};

    const unsigned status = parser.get().result_int();
    json::value answer = json::parse(parser.get().body(), error);
    if (error || !answer.is_object()) {
      return model::Status{model::StatusCode::kUnavailable, "what answers at " + host_ + " is not " + expected};
    }
    if (status != 200) return model::invalid(error_text(answer.as_object(), status));
    return std::move(answer.as_object());
  }

  /// Starts an operation and waits for its end; beast::error::timeout if that takes too long.
  template <typename Start>
  boost::system::error_code within_timeout(Start&& start) {
    boost::system::error_code result;
    stream_.expires_after(kTimeout);
    start([&result](const boost::system::error_code& problem) { result = problem; });
    context_.restart();
    context_.run();
    return result;
  }

  asio::io_context context_;
  beast::tcp_stream stream_{context_};
  beast::flat_buffer buffer_;
  std::string host_;
};

model::Result<Client> Client::connect(const std::string& endpoint) {
  auto impl = std::make_unique<Impl>();
  if (model::Status status = impl->connect(endpoint); !status.ok()) return status;
  return Client(std::move(impl));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

model::Result<json::object> Client::call(const std::string& operation, const json::object& request) {
  return impl_->call(operation, request);
}

model::Result<json::object> Client::post(const std::string& path, const json::object& request) {
  return impl_->post(path, request);
}

}  // namespace drover::cli

#include "loadtest/support/dynamodb_client.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace drover::loadtest {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr std::uint64_t kAnswerSizeBytesMax = 64 * 1024 * 1024;

class Client final : public DynamoDbClient {
 public:
  Client(std::string host, std::uint16_t port) : host_(std::move(host)), port_(port) {}

  model::Status open() {
    boost::system::error_code error;
    const auto address = asio::ip::make_address(host_, error);
    if (!error) socket_.connect({address, port_}, error);
    if (!error) socket_.set_option(asio::ip::tcp::no_delay(true), error);
    if (!error) return {};
    return {model::StatusCode::kUnavailable, host_ + ":" + std::to_string(port_) + ": " + error.message()};
  }

  model::Result<std::string> call(std::string_view operation, std::string_view body) override {
    http::request<http::string_body> request(http::verb::post, "/", 11);
    request.set(http::field::host, host_);
    request.set(http::field::content_type, "application/x-amz-json-1.0");
    request.set("X-Amz-Target", "DynamoDB_20120810." + std::string(operation));
    request.body() = body;
    request.prepare_payload();
    boost::system::error_code error;
    http::write(socket_, request, error);
    http::response_parser<http::string_body> parser;
    parser.body_limit(kAnswerSizeBytesMax);
    if (!error) http::read(socket_, buffer_, parser, error);
    if (error) return model::Status(model::StatusCode::kUnavailable, error.message());
    http::response<http::string_body> response = parser.release();
    if (response.result() != http::status::ok) return model::invalid(response.body());
    return std::move(response.body());
  }

 private:
  std::string host_;
  std::uint16_t port_;
  asio::io_context io_;
  asio::ip::tcp::socket socket_{io_};
  boost::beast::flat_buffer buffer_;
};

}  // namespace

model::Result<std::unique_ptr<DynamoDbClient>> DynamoDbClient::connect(const std::string& host, std::uint16_t port) {
  auto client = std::make_unique<Client>(host, port);
  if (model::Status status = client->open(); !status.ok()) return status;
  return std::unique_ptr<DynamoDbClient>(std::move(client));
}

}  // namespace drover::loadtest

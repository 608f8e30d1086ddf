#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "http_server.h"

/// What comes over a connection: a request, parsed as its bytes arrive.
namespace drover::server {

/// What a connection keeps of its body and answer buffers from one request to the next.
inline constexpr std::size_t kKeptBufferSizeBytesMax = 256 * 1024;

/// What is kept of a request. The strings are reused from request to request.
struct ReceivedRequest {
  std::string method;
  std::string target;
  std::string content_type;
  std::string content_encoding;
  std::string amz_target;
  std::string host;
  std::string body;
  bool expects_continue = false;

  void clear();
};

/// Beast's parser, writing into a ReceivedRequest the fields that a handler can see and dropping the others. One per
/// request.
class RequestParser final : public boost::beast::http::basic_parser<true> {
 public:
  /// `request` is empty, and outlives this.
  RequestParser(ReceivedRequest& request, const HttpServer::Options& options);

 private:
  using Text = boost::beast::string_view;
  using Error = boost::system::error_code;

  void on_request_impl(boost::beast::http::verb verb, Text method, Text target, int version, Error& error) override;
  void on_response_impl(int, Text, int, Error&) override {}
  void on_field_impl(boost::beast::http::field field, Text name, Text value, Error& error) override;
  void on_header_impl(Error&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& size_bytes, Error& error) override;
  std::size_t on_body_impl(Text part, Error& error) override;
  void on_chunk_header_impl(std::uint64_t, Text, Error&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, Text part, Error& error) override { return on_body_impl(part, error); }
  void on_finish_impl(Error&) override {}

  ReceivedRequest& request_;
  std::size_t header_size_bytes_left_;
};

enum class Inflated : std::uint8_t { kOk, kBroken, kTooLarge };

/// Replaces a gzip-compressed body by what it inflates to, at most `size_bytes_max`.
Inflated inflate_body(std::string& body, std::size_t size_bytes_max);

}  // namespace drover::server

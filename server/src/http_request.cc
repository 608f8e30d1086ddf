#include "http_request.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <string_view>
#include <utility>

namespace drover::server {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::size_t kFieldOverheadBytes = 4;  // ": " and the line break
constexpr std::size_t kInflatePartSizeBytes = 16 * 1024;

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

void ReceivedRequest::clear() {
  for (std::string* text : {&method, &target, &content_type, &content_encoding, &amz_target, &host, &body})
    text->clear();
  if (body.capacity() > kKeptBufferSizeBytesMax) body.shrink_to_fit();
  expects_continue = false;
}

RequestParser::RequestParser(ReceivedRequest& request, const HttpServer::Options& options)
    : request_(request), header_size_bytes_left_(options.header_size_bytes_max) {
  eager(true);
  header_limit(static_cast<std::uint32_t>(options.header_size_bytes_max));
  body_limit(options.body_size_bytes_max);
}

void RequestParser::on_request_impl(http::verb, Text method, Text target, int, Error&) {
  request_.method = view(method);
  request_.target = view(target);
}

void RequestParser::on_field_impl(http::field field, Text name, Text value, Error& error) {
  // header_limit() bounds what is not yet parsed, so one field; this bounds all of them.
  const std::size_t size_bytes = name.size() + value.size() + kFieldOverheadBytes;
  if (size_bytes > header_size_bytes_left_) {
    error = http::error::header_limit;
    return;
  }
  header_size_bytes_left_ -= size_bytes;
  if (field == http::field::content_type) {
    request_.content_type = view(value);
  } else if (field == http::field::content_encoding) {
    request_.content_encoding = view(value);
  } else if (field == http::field::host) {
    request_.host = view(value);
  } else if (field == http::field::expect) {
    request_.expects_continue = beast::iequals(value, "100-continue");
  } else if (field == http::field::unknown && beast::iequals(name, "X-Amz-Target")) {
    request_.amz_target = view(value);
  }
}

void RequestParser::on_body_init_impl(const boost::optional<std::uint64_t>& size_bytes, Error&) {
  if (size_bytes) request_.body.reserve(std::min<std::size_t>(*size_bytes, kKeptBufferSizeBytesMax));
}

std::size_t RequestParser::on_body_impl(Text part, Error&) {
  request_.body.append(part.data(), part.size());
  return part.size();
}

Inflated inflate_body(std::string& body, std::size_t size_bytes_max) {
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) return Inflated::kBroken;  // 16: gzip's header, not zlib's
  stream.next_in = reinterpret_cast<Bytef*>(body.data());
  stream.avail_in = static_cast<uInt>(body.size());
  std::string out;
  std::array<char, kInflatePartSizeBytes> part;
  int result = Z_OK;
  while (result == Z_OK && out.size() <= size_bytes_max) {
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    result = inflate(&stream, Z_NO_FLUSH);
    out.append(part.data(), part.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (out.size() > size_bytes_max) return Inflated::kTooLarge;
  if (result != Z_STREAM_END) return Inflated::kBroken;
  body = std::move(out);
  return Inflated::kOk;
}

}  // namespace drover::server

#include "http_server.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/status.hpp>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "drover/model/check.h"
#include "drover/model/sync.h"
#include "http_request.h"

namespace drover::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kReadSizeBytes = 16 * 1024;
/// What is read and thrown away behind a refused request, so that closing doesn't reset the answer off the wire.
constexpr std::size_t kLingerSizeBytesMax = 64 * 1024 * 1024;
constexpr std::int64_t kLingerMs = 2'000;

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

/// The open connections of all loops.
class ConnectionCount {
 public:
  bool try_add(std::size_t connections_max) {
    std::lock_guard lock(mutex_);
    if (count_ >= connections_max) return false;
    ++count_;
    return true;
  }
  void remove() {
    std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void wait_for_none(std::int64_t timeout_ms) {
    std::unique_lock lock(mutex_);
    none_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  std::size_t count_ = 0;  // guarded by mutex_
};

class Connection;

/// One thread with its io_context and the connections that live on it.
///
/// Threads: post() from any; everything else on the loop's own thread, or before start() and after join().
/// Lifetime: shared by the server and its connections, since an answer may come after the server is gone.
class Loop : public std::enable_shared_from_this<Loop> {
 public:
  Loop(const HttpServer::Options& options, const HttpHandler& handler, ConnectionCount& connection_count)
      : options_(options), handler_(handler), connection_count_(connection_count) {
    const std::int64_t shortest = std::min(options.idle_timeout_ms, options.request_timeout_ms);
    tick_ms_ = std::clamp<std::int64_t>(shortest / 4, 1, 1'000);
  }

  void start(const std::string& name);
  /// Closes what is idle, and every other connection as soon as its answer is out.
  void begin_stop();
  void join();

  /// Runs `work` on the loop's thread; not at all when the loop has been joined.
  template <typename Work>
  void post(Work&& work) {
    model::LockGuard lock(mutex_);
    if (!joined_) asio::post(context_, std::forward<Work>(work));
  }

  void add(tcp::socket socket);
  void remove(const std::shared_ptr<Connection>& connection);

  asio::io_context& context() { return context_; }
  bool on_own_thread() { return context_.get_executor().running_in_this_thread(); }
  bool stopping() const { return stopping_; }
  const HttpServer::Options& options() const { return options_; }
  const HttpHandler& handler() const { return handler_; }
  /// The present tick, and the first tick by which `ms` have surely passed.
  std::int64_t tick() const { return tick_; }
  std::int64_t tick_after(std::int64_t ms) const { return tick_ + ms / tick_ms_ + 1; }

 private:
  void sweep();

  const HttpServer::Options options_;
  const HttpHandler handler_;
  ConnectionCount& connection_count_;  // the server's; not used behind join()
  std::int64_t tick_ms_ = 0;

  asio::io_context context_{1};
  asio::steady_timer timer_{context_};
  std::thread thread_;

  // Own thread only.
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  std::int64_t tick_ = 0;
  bool stopping_ = false;

  model::Mutex mutex_;
  bool joined_ GUARDED_BY(mutex_) = false;
};

/// One client's connection.
///
/// Threads: everything on the loop's thread, but for answer(), which may come from any.
/// Lifetime: owned by the loop until it is closed, by its pending operations, and by the Respond of a request under
/// way.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, std::shared_ptr<Loop> loop) : socket_(std::move(socket)), loop_(std::move(loop)) {}

  void start() {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    socket_.non_blocking(true, ignored);
    begin_request();
    run();
  }

  /// Whether the client has been waited for too long.
  bool overdue() const { return state_ != State::kHandling && loop_->tick() >= deadline_; }
  /// Closes the connection unless a request is under way.
  void begin_stop() {
    if (state_ == State::kIdle) close();
  }
  void close() {
    if (state_ == State::kClosed) return;
    state_ = State::kClosed;
    error_code ignored;
    socket_.close(ignored);
    loop_->remove(shared_from_this());
  }

 private:
  enum class State {
    kIdle,       // between requests
    kReceiving,  // part of a request is here
    kHandling,   // the handler has the request
    kWriting,    // part of an answer is out
    kLingering,  // refused: what the client still sends is thrown away
    kClosed
  };

  void begin_request() {
    request_.clear();
    parser_.emplace(request_, loop_->options());
    state_ = State::kIdle;
    deadline_ = loop_->tick_after(loop_->options().idle_timeout_ms);
  }

  /// Takes requests from the buffer and answers them until more bytes, an answer or the client have to be waited for.
  void run() {
    while (parse()) {
      if (!handle() || !write()) return;
    }
  }

  /// Whether a whole request has been parsed; if not, the next step is under way.
  bool parse() {
    while (!parser_->is_done()) {
      if (buffer_.size() == 0) {
        read();
        return false;
      }
      if (state_ == State::kIdle) {
        state_ = State::kReceiving;
        deadline_ = loop_->tick_after(loop_->options().request_timeout_ms);
      }
      error_code error;
      const bool had_header = parser_->is_header_done();
      buffer_.consume(parser_->put(buffer_.data(), error));
      if (error == http::error::need_more && buffer_.size() <= loop_->options().header_size_bytes_max) {
        read();
        return false;
      }
      if (error) {
        refuse(error);
        return false;
      }
      if (!had_header && parser_->is_header_done() && request_.expects_continue && !parser_->is_done()) send_continue();
    }
    return true;
  }

  void read() {
    socket_.async_read_some(buffer_.prepare(kReadSizeBytes),
                            [self = shared_from_this()](error_code error, std::size_t size_bytes) {
                              if (self->state_ == State::kClosed) return;
                              if (error) return self->close();
                              self->buffer_.commit(size_bytes);
                              self->run();
                            });
  }

  /// The interim answer is 25 bytes on a connection that has nothing else in flight: it fits the socket's buffer, and a
  /// client whose interim answer got lost sends its body all the same after a while.
  void send_continue() {
    error_code ignored;
    socket_.write_some(asio::buffer(std::string_view("HTTP/1.1 100 Continue\r\n\r\n")), ignored);
  }

  /// Calls the handler. Whether its answer is here already.
  bool handle() {
    if (!request_.content_encoding.empty() && !decompress()) return false;
    const HttpRequest request{.method = request_.method,
                              .target = request_.target,
                              .body = request_.body,
                              .content_type = request_.content_type,
                              .host = request_.host,
                              .amz_target = request_.amz_target,
                              .keep_alive = parser_->keep_alive()};
    state_ = State::kHandling;
    in_handler_ = true;
    loop_->handler()(request,
                     [self = shared_from_this()](HttpResponse&& response) { self->answer(std::move(response)); });
    in_handler_ = false;
    return state_ == State::kWriting;
  }

  /// Whether the body could be decompressed; if not, the request has been refused.
  bool decompress() {
    if (!beast::iequals(request_.content_encoding, "gzip")) {
      refuse_with(415, "only gzip is accepted as Content-Encoding\n");
      return false;
    }
    switch (inflate_body(request_.body, loop_->options().body_size_bytes_max)) {
      case Inflated::kOk:
        return true;
      case Inflated::kBroken:
        refuse_with(400, "the body is not gzip, though Content-Encoding says so\n");
        return false;
      case Inflated::kTooLarge:
        refuse_with(413, "the body inflates to more than is accepted\n");
        return false;
    }
    return false;
  }

  void answer(HttpResponse&& response) {
    if (loop_->on_own_thread()) return take_answer(std::move(response));
    loop_->post([self = shared_from_this(), response = std::move(response)]() mutable {
      self->take_answer(std::move(response));
    });
  }

  void take_answer(HttpResponse&& response) {
    if (state_ == State::kClosed) return;
    DROVER_CHECK(state_ == State::kHandling, "a request was answered twice");
    response_ = std::move(response);
    state_ = State::kWriting;
    if (in_handler_) return;  // run() goes on with it when the handler returns
    if (write()) run();
  }

  /// Writes the answer. Whether it is out and the next request can be taken; if not, the next step is under way.
  bool write() {
    const bool keep_alive = !refused_ && parser_->keep_alive() && !loop_->stopping();
    format_head(keep_alive);
    deadline_ = loop_->tick_after(loop_->options().request_timeout_ms);
    std::array<asio::const_buffer, 2> buffers{asio::buffer(head_), asio::buffer(response_.body)};
    if (request_.method == "HEAD") buffers[1] = {};
    const std::size_t size_bytes = buffers[0].size() + buffers[1].size();

    // An answer nearly always fits the socket's buffer: written here, it costs no way through the event loop.
    error_code error;
    const std::size_t written = socket_.write_some(buffers, error);
    if (error && error != asio::error::would_block) {
      close();
      return false;
    }
    if (written == size_bytes) return finish_answer(keep_alive);

    const std::size_t of_head = std::min(written, buffers[0].size());
    buffers[0] += of_head;
    buffers[1] += written - of_head;
    asio::async_write(socket_, buffers, [self = shared_from_this(), keep_alive](error_code failed, std::size_t) {
      if (self->state_ == State::kClosed) return;
      if (failed) return self->close();
      if (self->finish_answer(keep_alive)) self->run();
    });
    return false;
  }

  bool finish_answer(bool keep_alive) {
    if (response_.body.capacity() > kKeptBufferSizeBytesMax) response_.body = {};
    if (refused_) {
      linger();
      return false;
    }
    if (!keep_alive) {
      close();
      return false;
    }
    begin_request();
    return true;
  }

  void format_head(bool keep_alive) {
    head_.assign("HTTP/1.1 ");
    append_number(response_.status);
    head_.push_back(' ');
    head_.append(view(http::obsolete_reason(static_cast<http::status>(response_.status))));
    head_.append("\r\nContent-Type: ").append(response_.content_type).append("\r\nContent-Length: ");
    append_number(response_.body.size());
    head_.append("\r\n").append(response_.extra_headers);
    // An HTTP/1.0 client keeps the connection only if told so; an HTTP/1.1 client unless told otherwise.
    head_.append(keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n");
  }

  void append_number(std::size_t number) {
    std::array<char, 20> text;
    head_.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr);
  }

  /// Answers a request that can't be understood or is too large; the connection can't be used any further.
  void refuse(error_code error) {
    if (error == http::error::header_limit || error == http::error::need_more) {
      refuse_with(431, "the request's header is too large\n");
    } else if (error == http::error::body_limit) {
      refuse_with(413, "the request's body is too large\n");
    } else {
      refuse_with(400, "the request is not HTTP/1.1: " + error.message() + "\n");
    }
  }

  void refuse_with(unsigned status, std::string text) {
    refused_ = true;
    state_ = State::kWriting;
    response_ = {
        .status = status, .content_type = "text/plain; charset=utf-8", .body = std::move(text), .extra_headers = {}};
    write();
  }

  void linger() {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    state_ = State::kLingering;
    deadline_ = loop_->tick_after(kLingerMs);
    discard(kLingerSizeBytesMax);
  }

  void discard(std::size_t size_bytes_max) {
    buffer_.clear();
    socket_.async_read_some(buffer_.prepare(kReadSizeBytes),
                            [self = shared_from_this(), size_bytes_max](error_code error, std::size_t size_bytes) {
                              if (self->state_ == State::kClosed) return;
                              if (error || size_bytes >= size_bytes_max) return self->close();
                              self->discard(size_bytes_max - size_bytes);
                            });
  }

  tcp::socket socket_;
  const std::shared_ptr<Loop> loop_;
  State state_ = State::kIdle;
  std::int64_t deadline_ = 0;  // a tick of the loop
  bool in_handler_ = false;
  bool refused_ = false;
  beast::flat_buffer buffer_;
  ReceivedRequest request_;
  std::optional<RequestParser> parser_;
  HttpResponse response_;
  std::string head_;
};

void Loop::start(const std::string& name) {
  sweep();
  thread_ = std::thread([this, name] {
    pthread_setname_np(pthread_self(), name.c_str());
    auto work = asio::make_work_guard(context_);
    context_.run();
  });
}

void Loop::begin_stop() {
  stopping_ = true;
  const auto connections = connections_;  // closing one takes it out
  for (const auto& connection : connections) connection->begin_stop();
}

void Loop::join() {
  context_.stop();
  thread_.join();
  {
    model::LockGuard lock(mutex_);
    joined_ = true;
  }
  const auto connections = connections_;
  for (const auto& connection : connections) connection->close();
  timer_.cancel();
  // What is still queued holds connections, and those this loop: run out, it lets go of them.
  context_.restart();
  context_.poll();
}

void Loop::sweep() {
  timer_.expires_after(std::chrono::milliseconds(tick_ms_));
  timer_.async_wait([this](error_code error) {
    if (error) return;
    ++tick_;
    std::vector<std::shared_ptr<Connection>> overdue;
    for (const auto& connection : connections_) {
      if (connection->overdue()) overdue.push_back(connection);
    }
    for (const auto& connection : overdue) connection->close();
    sweep();
  });
}

void Loop::add(tcp::socket socket) {
  if (stopping_) return;
  if (!connection_count_.try_add(options_.connections_max)) {
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(std::string_view("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n"
                                                    "Retry-After: 1\r\nConnection: close\r\n\r\n")),
                      ignored);
    return;
  }
  auto connection = std::make_shared<Connection>(std::move(socket), shared_from_this());
  connections_.insert(connection);
  connection->start();
}

void Loop::remove(const std::shared_ptr<Connection>& connection) {
  connections_.erase(connection);
  connection_count_.remove();
}

class BeastHttpServer final : public HttpServer {
 public:
  BeastHttpServer(Options options, HttpHandler handler) : options_(std::move(options)), handler_(std::move(handler)) {
    for (std::uint32_t i = 0; i < options_.threads; ++i) {
      loops_.push_back(std::make_shared<Loop>(options_, handler_, connection_count_));
    }
    acceptor_.emplace(loops_.front()->context());
    accept_retry_.emplace(loops_.front()->context());
  }
  ~BeastHttpServer() override { stop(0); }

  model::Status start() override {
    if (model::Status status = listen(); !status.ok()) return status;
    running_ = true;
    accept();
    for (std::size_t i = 0; i < loops_.size(); ++i) loops_[i]->start(options_.name + "-" + std::to_string(i));
    return {};
  }

  void stop(std::int64_t timeout_ms) override {
    if (!running_) return;
    running_ = false;
    loops_.front()->post([this] {
      error_code ignored;
      acceptor_->close(ignored);
      accept_retry_->cancel();
    });
    for (const auto& loop : loops_) loop->post([loop] { loop->begin_stop(); });
    connection_count_.wait_for_none(timeout_ms);
    for (const auto& loop : loops_) loop->join();
  }

  Address address() const override { return address_; }

 private:
  model::Status listen() {
    error_code error;
    tcp::resolver resolver(loops_.front()->context());
    const auto found =
        resolver.resolve(options_.address.host, std::to_string(options_.address.port), tcp::resolver::passive, error);
    if (error) return cannot_listen(error);
    const tcp::endpoint endpoint = found.begin()->endpoint();
    if (!error) acceptor_->open(endpoint.protocol(), error);
    if (!error) acceptor_->set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_->bind(endpoint, error);
    if (!error) acceptor_->listen(tcp::acceptor::max_listen_connections, error);
    if (error) {
      error_code ignored;
      acceptor_->close(ignored);
      return cannot_listen(error);
    }
    address_ = {options_.address.host, acceptor_->local_endpoint().port()};
    return {};
  }

  model::Status cannot_listen(error_code error) const {
    const std::string& host = options_.address.host;
    const std::string port = std::to_string(options_.address.port);
    std::string message;
    if (error == asio::error::address_in_use) {
      message =
          "port " + port + " on " + host + " is in use: choose another one with --set " + options_.name + ".port=N";
    } else if (error == asio::error::access_denied) {
      message = "port " + port + " on " + host + " needs privileges: choose one above 1023 with --set " +
                options_.name + ".port=N";
    } else {
      message = "cannot listen on host " + host + " (" + error.message() +
                "): choose an address of this machine with --set " + options_.name + ".host=ADDRESS";
    }
    return {model::StatusCode::kUnavailable, std::move(message)};
  }

  void accept() {
    const auto& loop = loops_[next_loop_++ % loops_.size()];
    acceptor_->async_accept(loop->context(), [this, loop](error_code error, tcp::socket socket) {
      if (!acceptor_->is_open()) return;
      if (error) return accept_later();
      loop->post([loop, moved = std::move(socket)]() mutable { loop->add(std::move(moved)); });
      accept();
    });
  }

  /// Out of file descriptors, most likely: connections that close make room.
  void accept_later() {
    accept_retry_->expires_after(std::chrono::milliseconds(100));
    accept_retry_->async_wait([this](error_code error) {
      if (!error) accept();
    });
  }

  const Options options_;
  const HttpHandler handler_;
  ConnectionCount connection_count_;
  std::vector<std::shared_ptr<Loop>> loops_;  // shared with their connections; the first one accepts
  std::optional<tcp::acceptor> acceptor_;
  std::optional<asio::steady_timer> accept_retry_;
  std::size_t next_loop_ = 0;
  bool running_ = false;
  Address address_;
};

}  // namespace

std::unique_ptr<HttpServer> HttpServer::make(Options options, HttpHandler handler) {
  return std::make_unique<BeastHttpServer>(std::move(options), std::move(handler));
}

}  // namespace drover::server

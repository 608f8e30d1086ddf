#include "http_server.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace drover::server {
namespace {

namespace asio = boost::asio;
using tcp = boost::asio::ip::tcp;

struct Answer {
  unsigned status = 0;  // 0: the connection was closed instead
  std::string head;
  std::string body;
};

/// A client that sends exactly the bytes it is told to.
class Client {
 public:
  explicit Client(const HttpServer& server) {
    socket_.connect({asio::ip::make_address("127.0.0.1"), server.address().port});
  }

  /// May run beside a read. A connection that was closed takes nothing more; whether it took all.
  bool send(std::string_view bytes) {
    boost::system::error_code error;
    asio::write(socket_, asio::buffer(bytes), error);
    return !error;
  }

  /// Reads one answer; `with_body` false for those that have a length, but no body.
  Answer read(bool with_body = true) {
    Answer answer;
    const std::size_t head_end = fill_until("\r\n\r\n");
    if (head_end == std::string::npos) return answer;
    answer.head = take(head_end + 4);
    answer.status = static_cast<unsigned>(std::stoul(answer.head.substr(9, 3)));
    const std::size_t length = answer.head.find("Content-Length: ");
    if (!with_body || length == std::string::npos) return answer;
    const std::size_t size = std::stoul(answer.head.substr(length + 16));
    if (size > buffer_.size()) {
      const std::size_t old_size = buffer_.size();
      buffer_.resize(size);
      asio::read(socket_, asio::buffer(buffer_.data() + old_size, size - old_size), error_);
    }
    answer.body = take(size);
    return answer;
  }

  Answer ask(std::string_view request) {
    send(request);
    return read();
  }

  /// Waits until the server closes; what came until then.
  std::string read_until_closed() {
    char byte = 0;
    while (asio::read(socket_, asio::buffer(&byte, 1), error_) == 1) buffer_ += byte;
    return take(buffer_.size());
  }

  void close() { socket_.close(); }

 private:
  std::size_t fill_until(std::string_view end) {
    while (true) {
      const std::size_t found = buffer_.find(end);
      if (found != std::string::npos) return found;
      char part[4096];
      const std::size_t size = socket_.read_some(asio::buffer(part), error_);
      if (error_) return std::string::npos;
      buffer_.append(part, size);
    }
  }
  std::string take(std::size_t size) {
    std::string taken = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return taken;
  }

  asio::io_context context_;
  tcp::socket socket_{context_};
  boost::system::error_code error_;
  std::string buffer_;
};

std::string post(std::string_view body, std::string_view headers = "") {
  return "POST / HTTP/1.1\r\nHost: x\r\n" + std::string(headers) + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string(body);
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(compressBound(text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// Answers with what it was asked: "method target body".
void echo(const HttpRequest& request, Respond respond) {
  respond({.body = std::string(request.method) + " " + std::string(request.target) + " " + std::string(request.body),
           .extra_headers = {}});
}

HttpServer::Options on_any_port() {
  HttpServer::Options options;
  options.name = "api";
  return options;
}

std::unique_ptr<HttpServer> started(HttpHandler handler = &echo, HttpServer::Options options = on_any_port()) {
  auto server = HttpServer::make(std::move(options), std::move(handler));
  const model::Status status = server->start();
  EXPECT_TRUE(status.ok()) << status.message();
  return server;
}

/// Keeps the answers that a handler is to give until the test gives them.
class HeldAnswers {
 public:
  HttpHandler handler() {
    return [this](const HttpRequest& request, Respond respond) {
      std::lock_guard lock(mutex_);
      held_.emplace_back(std::string(request.body), std::move(respond));
      changed_.notify_all();
    };
  }

  /// Waits for `count` requests and answers the oldest with its own body.
  void answer_one(std::size_t count = 1) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return held_.size() >= count; });
    auto [body, respond] = std::move(held_.front());
    held_.erase(held_.begin());
    lock.unlock();
    respond({.body = body, .extra_headers = {}});
  }
  void wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return held_.size() >= count; });
  }
  std::size_t held() {
    std::lock_guard lock(mutex_);
    return held_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<std::string, Respond>> held_;
};

TEST(HttpServer, AKeptAliveConnectionAnswersOneRequestAfterTheOther) {
  const auto server = started();
  Client client(*server);
  EXPECT_EQ(client.ask(post("one")).body, "POST / one");
  EXPECT_EQ(client.ask("GET /heat?x=1 HTTP/1.1\r\nHost: x\r\n\r\n").body, "GET /heat?x=1 ");
  EXPECT_EQ(client.ask(post("")).body, "POST / ");
}

TEST(HttpServer, TheHandlerSeesContentTypeAndAmzTargetInAnyCase) {
  const auto server = started([](const HttpRequest& request, Respond respond) {
    respond({.body = std::string(request.content_type) + "|" + std::string(request.amz_target), .extra_headers = {}});
  });
  Client client(*server);
  EXPECT_EQ(
      client.ask(post("{}", "content-type: application/x-amz-json-1.0\r\nx-AMZ-target: DynamoDB_20120810.Query\r\n"))
          .body,
      "application/x-amz-json-1.0|DynamoDB_20120810.Query");
  EXPECT_EQ(client.ask(post("{}")).body, "|") << "nothing is left over from the request before";
}

TEST(HttpServer, StatusHeadersAndContentTypeAreTheHandlers) {
  const auto server = started([](const HttpRequest&, Respond respond) {
    respond({.status = 400, .content_type = "text/plain", .body = "no", .extra_headers = "x-amzn-RequestId: ABC\r\n"});
  });
  Client client(*server);
  const Answer answer = client.ask(post("{}"));
  EXPECT_EQ(answer.head,
            "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nx-amzn-RequestId: ABC\r\n"
            "Connection: keep-alive\r\n\r\n");
  EXPECT_EQ(client.ask(post("{}")).status, 400u) << "an error answer keeps the connection";
}

TEST(HttpServer, PipelinedRequestsAreAnsweredInTheirOrder) {
  HeldAnswers held;
  const auto server = started(held.handler());
  Client client(*server);
  client.send(post("first") + post("second") + post("third"));
  held.wait_for(1);
  EXPECT_EQ(held.held(), 1u) << "the second is not handled before the first is answered";
  for (const char* body : {"first", "second", "third"}) {
    held.answer_one();
    EXPECT_EQ(client.read().body, body);
  }
}

TEST(HttpServer, ThousandsOfPipelinedRequestsNeedNoStack) {
  constexpr int kRequests = 20'000;
  const auto server = started();
  Client client(*server);
  std::thread sender([&client] {
    std::string all;
    for (int i = 0; i < kRequests; ++i) all += "GET /" + std::to_string(i) + " HTTP/1.1\r\n\r\n";
    client.send(all);
  });
  for (int i = 0; i < kRequests; ++i) ASSERT_EQ(client.read().body, "GET /" + std::to_string(i) + " ");
  sender.join();
}

TEST(HttpServer, AnAnswerMayComeFromAnotherThreadAfterTheHandlerHasReturned) {
  std::vector<std::thread> threads;
  {
    HttpServer::Options options = on_any_port();
    options.threads = 2;
    std::mutex mutex;
    const auto server = started(
        [&](const HttpRequest& request, Respond respond) {
          std::lock_guard lock(mutex);
          threads.emplace_back(
              [respond, body = std::string(request.body)] { respond({.body = body, .extra_headers = {}}); });
        },
        options);
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 4; ++i) clients.push_back(std::make_unique<Client>(*server));
    for (int round = 0; round < 50; ++round) {
      for (std::size_t i = 0; i < clients.size(); ++i) clients[i]->send(post(std::to_string(i)));
      for (std::size_t i = 0; i < clients.size(); ++i) ASSERT_EQ(clients[i]->read().body, std::to_string(i));
    }
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(HttpServer, AnAnswerLargerThanTheSocketsBufferArrivesWhole) {
  const std::string large(20'000'000, 'x');
  const auto server =
      started([&](const HttpRequest&, Respond respond) { respond({.body = large, .extra_headers = {}}); });
  Client client(*server);
  client.send(post("a") + post("b"));
  EXPECT_EQ(client.read().body, large);
  EXPECT_EQ(client.read().body, large);
}

TEST(HttpServer, ChunkedBodiesAreJoined) {
  const auto server = started();
  Client client(*server);
  EXPECT_EQ(client.ask("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n").body,
            "POST / abcdefg");
}

TEST(HttpServer, ARequestMayComeByteByByte) {
  const auto server = started();
  Client client(*server);
  for (const char byte : post("slow")) client.send({&byte, 1});
  EXPECT_EQ(client.read().body, "POST / slow");
}

TEST(HttpServer, HeadIsAnsweredWithTheLengthButNoBody) {
  const auto server = started();
  Client client(*server);
  client.send("HEAD /x HTTP/1.1\r\n\r\nGET /y HTTP/1.1\r\n\r\n");
  EXPECT_NE(client.read(false).head.find("Content-Length: 8\r\n"), std::string::npos);
  EXPECT_EQ(client.read().body, "GET /y ");
}

TEST(HttpServer, AConnectionIsClosedWhenTheClientSaysSoOrSpeaksHttp10) {
  const auto server = started();
  for (const char* request : {"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"}) {
    Client client(*server);
    client.send(request);
    const std::string all = client.read_until_closed();
    EXPECT_NE(all.find("Connection: close\r\n"), std::string::npos) << request;
    EXPECT_TRUE(all.ends_with("GET / ")) << request;
  }
  Client client(*server);
  const Answer kept = client.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_NE(kept.head.find("Connection: keep-alive\r\n"), std::string::npos);
  EXPECT_EQ(client.ask(post("still here")).status, 200u);
}

TEST(HttpServer, ExpectContinueIsAnsweredBeforeTheBodyIsSent) {
  const auto server = started();
  Client client(*server);
  client.send("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(client.read().status, 100u);
  client.send("body");
  EXPECT_EQ(client.read().body, "POST / body");
}

TEST(HttpServer, ABodyAtTheLimitIsTakenAndOneBeyondItIs413) {
  HttpServer::Options options = on_any_port();
  options.body_size_bytes_max = 1'000;
  const auto server = started(&echo, options);
  Client client(*server);
  EXPECT_EQ(client.ask(post(std::string(1'000, 'x'))).status, 200u);
  EXPECT_EQ(client.ask(post(std::string(1'001, 'x'))).status, 413u);
  EXPECT_EQ(client.read_until_closed(), "");

  Client chunked(*server);
  const std::string chunk = "258\r\n" + std::string(600, 'x') + "\r\n";
  EXPECT_EQ(chunked.ask("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + chunk).status, 413u);
}

TEST(HttpServer, AClientThatIsStillSendingItsHugeBodyReadsThe413) {
  HttpServer::Options options = on_any_port();
  options.body_size_bytes_max = 1'000;
  const auto server = started(&echo, options);
  Client client(*server);
  client.send(post(std::string(5'000'000, 'x')));
  EXPECT_EQ(client.read().status, 413u);
}

TEST(HttpServer, AHeaderBeyondItsBoundIs431) {
  const auto server = started();
  Client client(*server);
  EXPECT_EQ(client.ask("GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x')).status, 431u);
  Client many(*server);
  std::string fields;
  for (int i = 0; i < 2'000; ++i) fields += "X-" + std::to_string(i) + ": y\r\n";
  EXPECT_EQ(many.ask("GET / HTTP/1.1\r\n" + fields + "\r\n").status, 431u);
}

TEST(HttpServer, WhatIsNotHttpIs400AndOthersGoOn) {
  const auto server = started();
  Client other(*server);
  for (const char* request :
       {"\x16\x03\x01\x02garbage\r\n\r\n", "GET\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    Client client(*server);
    EXPECT_EQ(client.ask(request).status, 400u) << request;
  }
  EXPECT_EQ(other.ask(post("fine")).body, "POST / fine");
}

TEST(HttpServer, AClientThatLeavesInTheMiddleHarmsNobody) {
  HeldAnswers held;
  const auto server = started(held.handler());
  Client partial(*server);
  partial.send("POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf");
  partial.close();
  Client impatient(*server);
  impatient.send(post("x"));
  held.wait_for(1);
  impatient.close();
  held.answer_one();
  Client other(*server);
  other.send(post("fine"));
  held.answer_one();
  EXPECT_EQ(other.read().body, "fine");
}

TEST(HttpServer, GzipBodiesAreInflated) {
  const auto server = started();
  Client client(*server);
  const std::string text(100'000, 'a');
  EXPECT_EQ(client.ask(post(gzip(text), "Content-Encoding: gzip\r\n")).body, "POST / " + text);
  EXPECT_EQ(client.ask(post("plain")).body, "POST / plain");
}

TEST(HttpServer, GzipThatIsBrokenCutShortOrABombIsRefused) {
  HttpServer::Options options = on_any_port();
  options.body_size_bytes_max = 1'000'000;
  const auto server = started(&echo, options);
  const std::string good = gzip(std::string(1'000, 'a'));
  const auto status_of = [&](const std::string& body, const char* encoding) {
    return Client(*server).ask(post(body, "Content-Encoding: " + std::string(encoding) + "\r\n")).status;
  };
  EXPECT_EQ(status_of("not gzip", "gzip"), 400u);
  EXPECT_EQ(status_of(good.substr(0, good.size() / 2), "gzip"), 400u);
  EXPECT_EQ(status_of(gzip(std::string(1'000'001, 'a')), "gzip"), 413u);
  EXPECT_EQ(status_of(gzip(std::string(1'000'000, 'a')), "gzip"), 200u);
  EXPECT_EQ(status_of(good, "br"), 415u);
}

TEST(HttpServer, AnIdleConnectionIsClosed) {
  HttpServer::Options options = on_any_port();
  options.idle_timeout_ms = 50;
  const auto server = started(&echo, options);
  Client client(*server);
  EXPECT_EQ(client.ask(post("x")).status, 200u);
  EXPECT_EQ(client.read_until_closed(), "");
}

TEST(HttpServer, ARequestThatDoesNotArriveWholeInTimeIsClosedHoweverBusyItsSender) {
  HttpServer::Options options = on_any_port();
  options.request_timeout_ms = 50;
  const auto server = started(&echo, options);
  Client client(*server);
  std::thread drip([&client] {
    client.send("POST / HTTP/1.1\r\nContent-Length: 16000000\r\n\r\n");
    while (client.send("x")) {
    }
  });
  EXPECT_EQ(client.read_until_closed(), "");
  drip.join();
}

TEST(HttpServer, AHandlerMayTakeLongerThanTheTimeouts) {
  HeldAnswers held;
  HttpServer::Options options = on_any_port();
  options.idle_timeout_ms = 20;
  options.request_timeout_ms = 20;
  const auto server = started(held.handler(), options);
  Client waiting(*server);
  waiting.send(post("long"));
  held.wait_for(1);
  Client idle(*server);
  EXPECT_EQ(idle.read_until_closed(), "");  // the idle timeout has passed
  held.answer_one();
  EXPECT_EQ(waiting.read().body, "long");
}

TEST(HttpServer, ConnectionsBeyondTheBoundAre503AndRoomIsMadeByThoseThatClose) {
  HttpServer::Options options = on_any_port();
  options.connections_max = 2;
  const auto server = started(&echo, options);
  auto first = std::make_unique<Client>(*server);
  Client second(*server);
  EXPECT_EQ(first->ask(post("x")).status, 200u);
  EXPECT_EQ(second.ask(post("x")).status, 200u);
  EXPECT_EQ(Client(*server).read().status, 503u);

  EXPECT_TRUE(first->ask("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").status == 200u);
  EXPECT_EQ(first->read_until_closed(), "");
  EXPECT_EQ(Client(*server).ask(post("x")).status, 200u);
}

TEST(HttpServer, ATakenPortIsNamedWithTheSettingThatChangesIt) {
  const auto server = started();
  HttpServer::Options options = on_any_port();
  options.address.port = server->address().port;
  const model::Status status = HttpServer::make(options, &echo)->start();
  EXPECT_EQ(status.code(), model::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "port " + std::to_string(options.address.port) +
                                  " on 127.0.0.1 is in use: choose another one with --set api.port=N");
}

TEST(HttpServer, AHostThatIsNotThisMachinesIsNamedWithTheSettingThatChangesIt) {
  HttpServer::Options options = on_any_port();
  options.address.host = "192.0.2.1";
  const model::Status status = HttpServer::make(options, &echo)->start();
  EXPECT_EQ(status.code(), model::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("192.0.2.1"), std::string::npos);
  EXPECT_NE(status.message().find("--set api.host="), std::string::npos);
}

TEST(HttpServer, StopLetsAnswersUnderWayOutAndClosesIdleConnections) {
  HeldAnswers held;
  const auto server = started(held.handler());
  Client idle(*server);
  Client waiting(*server);
  waiting.send(post("last words"));
  held.wait_for(1);
  auto stopped = std::async(std::launch::async, [&] { server->stop(60'000); });
  EXPECT_EQ(idle.read_until_closed(), "");
  held.answer_one();
  const Answer answer = waiting.read();
  EXPECT_EQ(answer.body, "last words");
  EXPECT_NE(answer.head.find("Connection: close\r\n"), std::string::npos);
  stopped.get();
}

TEST(HttpServer, AnAnswerThatComesAfterTheServerIsGoneIsDropped) {
  HeldAnswers held;
  {
    const auto server = started(held.handler());
    Client client(*server);
    client.send(post("too late"));
    held.wait_for(1);
    server->stop(0);
    EXPECT_EQ(client.read_until_closed(), "");
  }
  held.answer_one();
}

}  // namespace
}  // namespace drover::server

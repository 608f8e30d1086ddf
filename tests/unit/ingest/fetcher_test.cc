#include "fetcher.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>

#include "fetch_answers.h"

namespace drover::ingest::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Outcome = FetchStream::Outcome;

constexpr std::chrono::seconds kPatience{30};
constexpr std::size_t kRecordsMax = 1'000;

/// A broker that says what the test makes it say, on the test's own thread.
class ScriptedBroker {
 public:
  ScriptedBroker() : listening_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    DROVER_CHECK(bind(listening_, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(listening_, 8) == 0 &&
                     getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &size) == 0,
                 "a free port");
    port_ = ntohs(address.sin_port);
  }
  ScriptedBroker(const ScriptedBroker&) = delete;
  ScriptedBroker& operator=(const ScriptedBroker&) = delete;
  ~ScriptedBroker() {
    hang_up();
    close(listening_);
  }

  BrokerAddress address() const { return {"127.0.0.1", port_}; }

  /// The next request without its size; needs one to be on its way.
  std::string request() {
    if (connection_ < 0) connection_ = accept(listening_, nullptr, nullptr);
    return receive(static_cast<std::size_t>(big_endian<std::int32_t>(receive(sizeof(std::int32_t)).data())));
  }
  void send_bytes(std::string_view bytes) const {
    DROVER_CHECK(send(connection_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()),
                 "the fetcher listens");
  }
  void answer(const std::string& bytes) const {
    send_bytes(big_endian_bytes(static_cast<std::int32_t>(bytes.size())) + bytes);
  }
  void hang_up() {
    if (connection_ >= 0) close(std::exchange(connection_, -1));
  }
  void stop_listening() { close(std::exchange(listening_, -1)); }
  bool has_request() const {
    pollfd descriptor{connection_ < 0 ? listening_ : connection_, POLLIN, 0};
    return poll(&descriptor, 1, 0) == 1;
  }

 private:
  std::string receive(std::size_t size) const {
    std::string bytes(size, '\0');
    DROVER_CHECK(recv(connection_, bytes.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size), "a whole request");
    return bytes;
  }

  int listening_;
  int connection_ = -1;
  std::uint16_t port_ = 0;
};

class FetcherTest : public testing::Test {
 protected:
  /// Serves until it is so; false: it never was.
  bool serve_until(const std::function<bool()>& predicate) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    for (fetcher.serve(); !predicate(); fetcher.serve()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::vector<pollfd> descriptors;
      fetcher.append_descriptors(descriptors);
      poll(descriptors.data(), descriptors.size(), 1);
    }
    return true;
  }
  /// Serves until the stream has something to say.
  Outcome read(FetchStream& stream) {
    Outcome outcome = Outcome::kNothing;
    serve_until([&] { return (outcome = stream.read(kRecordsMax, views)) != Outcome::kNothing; });
    return outcome;
  }
  std::string next_request() {
    DROVER_CHECK(serve_until([&] { return broker.has_request(); }), "a request comes");
    return broker.request();
  }
  std::vector<std::int64_t> offsets() const {
    std::vector<std::int64_t> offsets;
    for (const model::RecordView& view : views) offsets.push_back(view.offset.value);
    return offsets;
  }

  ScriptedBroker broker;
  Fetcher fetcher{"drover"};
  std::vector<model::RecordView> views;
};

TEST_F(FetcherTest, TheRequestIsTheProtocols) {
  const auto stream = fetcher.open(broker.address(), "t", 3, 258);
  const std::string expected = big_endian_bytes<std::int16_t>(1) + big_endian_bytes<std::int16_t>(10) +  // Fetch v10
                               big_endian_bytes<std::int32_t>(1) +                                       // correlation
                               big_endian_bytes<std::int16_t>(6) + "drover" +                            //
                               big_endian_bytes<std::int32_t>(-1) +                                      // a consumer
                               big_endian_bytes<std::int32_t>(100) +                                     // waits, ms
                               big_endian_bytes<std::int32_t>(1) +                                       // bytes, min
                               big_endian_bytes(Fetcher::kAnswerSizeBytesMax) + "\x01" +                 // committed
                               big_endian_bytes<std::int32_t>(0) + big_endian_bytes<std::int32_t>(-1) +  // no session
                               big_endian_bytes<std::int32_t>(1) +                                       // topics
                               big_endian_bytes<std::int16_t>(1) + "t" +                                 //
                               big_endian_bytes<std::int32_t>(1) +                                       // partitions
                               big_endian_bytes<std::int32_t>(3) +                                       //
                               big_endian_bytes<std::int32_t>(-1) +                                      // epoch
                               big_endian_bytes<std::int64_t>(258) +                                     // offset
                               big_endian_bytes<std::int64_t>(-1) +                                      // log start
                               big_endian_bytes(Fetcher::kPartitionSizeBytesMax) +                       //
                               big_endian_bytes<std::int32_t>(0);                                        // forgotten
  EXPECT_EQ(next_request(), expected);
}

TEST_F(FetcherTest, TheNextRequestGoesOutBeforeTheAnswerIsRead) {
  const auto stream = fetcher.open(broker.address(), "telemetry", 0, 0);
  next_request();
  broker.answer(answer_bytes(1, {{.high_watermark = 50, .records = plain_batch(0, 10) + plain_batch(10, 10)}}));
  EXPECT_NE(next_request().find(big_endian_bytes<std::int64_t>(20)), std::string::npos);
  EXPECT_EQ(stream->next_offset(), 0);
  EXPECT_EQ(read(*stream), Outcome::kRecords);
  EXPECT_EQ(views.size(), 20U);
  EXPECT_EQ(stream->next_offset(), 20);
  EXPECT_EQ(stream->end_offset(), 50);
}

// Whose records wait isn't asked for, and the broker then answers soon for the others.
TEST_F(FetcherTest, AStreamThatIsNotReadHoldsTwoAnswersAndStopsNoOther) {
  const auto held_back = fetcher.open(broker.address(), "telemetry", 0, 0);
  const auto other = fetcher.open(broker.address(), "telemetry", 1, 0);
  for (std::int32_t answer = 1; answer <= 5; ++answer) {
    const std::string request = next_request();
    std::vector<AnsweredPartition> partitions{{.partition = 1, .records = plain_batch((answer - 1) * 3, 3)}};
    if (answer <= 2) partitions.push_back({.partition = 0, .records = plain_batch((answer - 1) * 3, 3)});
    const auto asked = big_endian<std::int32_t>(request.data() + request.size() - 4 - (answer <= 2 ? 2 : 1) * 43 - 4);
    EXPECT_EQ(asked, answer <= 2 ? 2 : 1) << answer;
    broker.answer(answer_bytes(answer, partitions));
    EXPECT_EQ(read(*other), Outcome::kRecords);
    EXPECT_EQ(other->next_offset(), answer * 3);
  }
  EXPECT_EQ(held_back->read(kRecordsMax, views), Outcome::kRecords);
  EXPECT_THAT(offsets(), ElementsAre(0, 1, 2));
  EXPECT_EQ(held_back->read(kRecordsMax, views), Outcome::kRecords);
  EXPECT_THAT(offsets(), ElementsAre(3, 4, 5));
}

TEST_F(FetcherTest, AnAnswerThatComesInPiecesIsReadWhole) {
  const auto stream = fetcher.open(broker.address(), "telemetry", 0, 0);
  next_request();
  const std::string answer = answer_bytes(1, {{.records = plain_batch(0, 10, Codec::kLz4)}});
  for (const char byte : big_endian_bytes(static_cast<std::int32_t>(answer.size())) + answer) {
    EXPECT_EQ(stream->read(kRecordsMax, views), Outcome::kNothing);
    broker.send_bytes({&byte, 1});
    fetcher.serve();
  }
  EXPECT_EQ(read(*stream), Outcome::kRecords);
  EXPECT_EQ(views.size(), 10U);
}

TEST_F(FetcherTest, ABatchThatDidNotFitIsAskedForFirst) {
  const auto small = fetcher.open(broker.address(), "telemetry", 0, 0);
  const auto large = fetcher.open(broker.address(), "telemetry", 1, 0);
  next_request();
  broker.answer(answer_bytes(1, {{.partition = 0, .records = plain_batch(0, 3)},
                                 {.partition = 1, .records = plain_batch(0, 100).substr(0, 500)}}));
  const std::string request = next_request();
  const std::string topic = big_endian_bytes<std::int16_t>(9) + "telemetry" + big_endian_bytes<std::int32_t>(1);
  EXPECT_LT(request.find(topic + big_endian_bytes<std::int32_t>(1)), request.find(topic + big_endian_bytes(0)));
  broker.answer(answer_bytes(2, {{.partition = 1, .records = plain_batch(0, 100)}}));
  EXPECT_EQ(read(*large), Outcome::kRecords);
  EXPECT_EQ(views.size(), 100U);
}

TEST_F(FetcherTest, AnErrorOfOnePartitionEndsItsStreamOnly) {
  const auto moved = fetcher.open(broker.address(), "telemetry", 0, 0);
  const auto aborted = fetcher.open(broker.address(), "telemetry", 1, 0);
  const auto good = fetcher.open(broker.address(), "telemetry", 2, 0);
  next_request();
  broker.answer(answer_bytes(1, {{.partition = 0, .error = 6},
                                 {.partition = 1, .aborted_transactions = 1, .records = plain_batch(0, 3)},
                                 {.partition = 2, .records = plain_batch(0, 3)}}));
  EXPECT_EQ(read(*good), Outcome::kRecords);
  EXPECT_EQ(moved->read(kRecordsMax, views), Outcome::kFailed);
  EXPECT_EQ(aborted->read(kRecordsMax, views), Outcome::kUnusual);
  EXPECT_THAT(views, IsEmpty());
  next_request();
  broker.answer(answer_bytes(2, {{.partition = 2, .records = plain_batch(3, 3)}}));
  EXPECT_EQ(read(*good), Outcome::kRecords);
}

TEST_F(FetcherTest, WhatCameBeforeTheConnectionWasLostIsStillRead) {
  const auto stream = fetcher.open(broker.address(), "telemetry", 0, 0);
  next_request();
  broker.answer(answer_bytes(1, {{.records = plain_batch(0, 3)}}));
  next_request();
  broker.send_bytes("\0");
  broker.hang_up();
  EXPECT_TRUE(serve_until([&] {
    std::vector<pollfd> descriptors;
    fetcher.append_descriptors(descriptors);
    return descriptors.empty();
  }));
  EXPECT_EQ(stream->read(kRecordsMax, views), Outcome::kRecords);
  EXPECT_EQ(stream->read(kRecordsMax, views), Outcome::kFailed);
  EXPECT_EQ(stream->next_offset(), 3);
}

TEST_F(FetcherTest, ABrokerThatIsNotThereEndsTheStream) {
  broker.stop_listening();
  EXPECT_EQ(read(*fetcher.open(broker.address(), "telemetry", 0, 0)), Outcome::kFailed);
  EXPECT_EQ(read(*fetcher.open({"no-such-host.invalid", 9092}, "telemetry", 0, 0)), Outcome::kFailed);
}

TEST_F(FetcherTest, AnswersThatAreNoneEndTheStream) {
  const std::string negative = big_endian_bytes<std::int32_t>(-1);
  const std::string huge = big_endian_bytes<std::int32_t>(2'000'000'000);
  const std::string too_short = big_endian_bytes<std::int32_t>(3) + "abc";
  const std::string of_another = answer_bytes(77, {});
  const std::string with_size = big_endian_bytes(static_cast<std::int32_t>(of_another.size())) + of_another;
  for (const std::string& answer : {negative, huge, too_short, with_size}) {
    const auto stream = fetcher.open(broker.address(), "telemetry", 0, 0);
    next_request();
    broker.send_bytes(answer);
    EXPECT_EQ(read(*stream), Outcome::kUnusual);
    broker.hang_up();
  }
  const auto stream = fetcher.open(broker.address(), "telemetry", 0, 0);
  next_request();
  broker.answer(answer_bytes(1, {}, 35));
  EXPECT_EQ(read(*stream), Outcome::kFailed);
}

// A broker that answers the same again would be read for ever.
TEST_F(FetcherTest, AnAnswerThatLeadsNowhereEndsTheStream) {
  const auto stream = fetcher.open(broker.address(), "telemetry", 0, 10);
  next_request();
  broker.answer(answer_bytes(1, {{.records = plain_batch(0, 10)}}));
  EXPECT_EQ(read(*stream), Outcome::kUnusual);
}

TEST_F(FetcherTest, AStreamThatIsGoneIsNotAnswered) {
  auto gone = fetcher.open(broker.address(), "telemetry", 0, 0);
  const auto stays = fetcher.open(broker.address(), "telemetry", 1, 0);
  next_request();
  gone.reset();
  broker.answer(answer_bytes(1, {{.partition = 0, .records = plain_batch(0, 3)},
                                 {.partition = 1, .records = plain_batch(0, 3)},
                                 {.partition = 7, .records = plain_batch(0, 3)}}));
  EXPECT_EQ(read(*stays), Outcome::kRecords);
}

}  // namespace
}  // namespace drover::ingest::test

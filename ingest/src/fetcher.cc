#include "fetcher.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "big_endian.h"
#include "drover/model/clock.h"

namespace drover::ingest {
namespace {

using Outcome = FetchStream::Outcome;

constexpr std::int64_t kNsPerMs = 1'000'000;
/// How long a broker that has nothing holds its answer back.
constexpr std::int32_t kIdleWaitMs = 100;
/// The same while other partitions of that broker may want records sooner.
constexpr std::int32_t kShortWaitMs = 5;
/// Without a byte for so long, the broker is given up.
constexpr std::int64_t kSilenceNsMax = 10'000 * kNsPerMs;
/// Of a broker that asks for a pause.
constexpr std::int64_t kThrottleMsMax = 60'000;
/// An answer and a record batch that passes its bound; as large as librdkafka takes.
constexpr std::int32_t kReceivedSizeBytesMax = 100'000'000;
constexpr std::size_t kAnswerBufferStepBytes = std::size_t{1024} * 1024;

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses look_up(const BrokerAddress& broker) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(broker.host.c_str(), std::to_string(broker.port).c_str(), &hints, &found) != 0) return nullptr;
  return Addresses(found);
}

/// Begins to connect; without a socket if that fails at once.
Socket begin_connect(const addrinfo& address) {
  Socket connecting(socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
  if (connecting.fd() < 0) return {};
  const int on = 1;
  setsockopt(connecting.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(connecting.fd(), address.ai_addr, address.ai_addrlen) != 0 && errno != EINPROGRESS) return {};
  return connecting;
}

bool would_wait(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

class Fetcher::Connection {
 public:
  Connection(Fetcher& fetcher, const BrokerAddress& broker)
      : fetcher_(fetcher), addresses_(look_up(broker)), next_address_(addresses_.get()) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { end_streams(Outcome::kFailed); }

  void add(FetchStream& stream) {
    streams_.push_back(&stream);
    stream.connection_ = this;
  }
  void remove(FetchStream& stream) {
    std::erase(streams_, &stream);
    std::replace(asked_.begin(), asked_.end(), &stream, static_cast<FetchStream*>(nullptr));
  }
  bool has_streams() const { return !streams_.empty(); }

  /// Whether records came or streams ended.
  bool serve(std::int64_t now_ns) {
    const std::size_t answers = answers_;
    if (waiting_ && !go_on(now_ns)) return true;
    if (!waiting_ && now_ns >= quiet_until_ns_) ask(now_ns);
    return answers != answers_ || !has_streams();
  }

  /// None while nothing is awaited: a connection that was closed meanwhile would wake the thread over and over.
  pollfd descriptor() const {
    const bool unsent = sent_ < request_.size();
    return {waiting_ ? socket_.fd() : -1, static_cast<short>(unsent ? POLLOUT : POLLIN), 0};
  }

 private:
  /// One request for all that have room. Those that were served last time come last, since a broker fills its answer in
  /// the request's order, and only the first may get a record batch beyond the bounds.
  void ask(std::int64_t now_ns) {
    std::stable_partition(streams_.begin(), streams_.end(), [](const FetchStream* stream) { return !stream->served_; });
    asked_.clear();
    std::vector<FetchRequest::Partition> partitions;
    for (FetchStream* const stream : streams_) {
      stream->served_ = false;
      if (!stream->has_room()) continue;
      stream->asked_ = true;
      asked_.push_back(stream);
      partitions.push_back({stream->topic_, stream->partition_, stream->fetch_offset_});
    }
    if (asked_.empty()) return;
    FetchRequest request;
    correlation_id_ = correlation_id_ == std::numeric_limits<std::int32_t>::max() ? 0 : correlation_id_ + 1;
    request.correlation_id = correlation_id_;
    request.client_id = fetcher_.client_id_;
    request.wait_ms_max = asked_.size() == streams_.size() ? kIdleWaitMs : kShortWaitMs;
    request.answer_size_bytes_max = kAnswerSizeBytesMax;
    request.partition_size_bytes_max = kPartitionSizeBytesMax;
    request_ = encode(request, partitions);
    sent_ = 0;
    waiting_ = true;
    heard_ns_ = now_ns;
    go_on(now_ns);
  }

  /// Sends what is left of the request and receives what there is of the answer; false: the streams have ended.
  bool go_on(std::int64_t now_ns) {
    const std::size_t received = received_;
    if (!send_rest() || !receive()) {
      end_streams(outcome_);
      return false;
    }
    if (received != received_) heard_ns_ = now_ns;
    if (waiting_ && now_ns - heard_ns_ > kSilenceNsMax) {
      end_streams(Outcome::kFailed);
      return false;
    }
    return true;
  }

  bool send_rest() {
    while (sent_ < request_.size()) {
      if (socket_.fd() < 0 && !connect_to_next()) return false;
      const ssize_t sent = send(socket_.fd(), request_.data() + sent_, request_.size() - sent_, MSG_NOSIGNAL);
      if (sent >= 0) {
        sent_ += static_cast<std::size_t>(sent);
        connected_ = true;
      } else if (would_wait(errno)) {
        return true;
      } else if (connected_) {
        return false;
      } else {
        socket_ = Socket();
      }
    }
    return true;
  }

  bool connect_to_next() {
    while (next_address_ != nullptr && socket_.fd() < 0) {
      socket_ = begin_connect(*std::exchange(next_address_, next_address_->ai_next));
    }
    return socket_.fd() >= 0;
  }

  bool receive() {
    while (waiting_ && sent_ == request_.size()) {
      const bool has_size = received_ >= size_.size();
      char* const to = has_size ? answer_.data() + (received_ - size_.size()) : size_.data() + received_;
      const std::size_t wanted = (has_size ? size_.size() + answer_size_ : size_.size()) - received_;
      const ssize_t got = recv(socket_.fd(), to, wanted, 0);
      if (got == 0) return false;
      if (got < 0) return would_wait(errno);
      received_ += static_cast<std::size_t>(got);
      if (received_ == size_.size() && !begin_answer()) return false;
      if (received_ == size_.size() + answer_size_ && !take_answer()) return false;
    }
    return true;
  }

  bool begin_answer() {
    const auto size = big_endian<std::int32_t>(size_.data());
    if (size <= 0 || size > kReceivedSizeBytesMax) {
      outcome_ = Outcome::kUnusual;
      return false;
    }
    answer_size_ = static_cast<std::size_t>(size);
    answer_ = fetcher_.answers_.take((answer_size_ / kAnswerBufferStepBytes + 1) * kAnswerBufferStepBytes);
    return true;
  }

  /// Gives each stream its part of the answer, which is whole.
  bool take_answer() {
    const auto bytes = std::make_shared<const FetchStream::Answer>(std::move(answer_), fetcher_.answers_);
    const std::optional<FetchAnswer> answer = parse_fetch_answer({bytes->bytes.data(), answer_size_});
    waiting_ = false;
    received_ = answer_size_ = 0;
    ++answers_;
    if (!answer || answer->correlation_id != correlation_id_) {
      outcome_ = Outcome::kUnusual;
      return false;
    }
    if (answer->error != 0) return false;
    if (answer->throttle_ms > 0)
      quiet_until_ns_ =
          model::steady_clock_ns() + std::min<std::int64_t>(answer->throttle_ms, kThrottleMsMax) * kNsPerMs;
    std::size_t next = 0;
    for (const FetchAnswer::Partition& partition : answer->partitions) {
      if (FetchStream* const stream = find_asked(partition, next)) stream->take(partition, bytes);
    }
    for (FetchStream* const stream : asked_) {
      if (stream != nullptr) stream->asked_ = false;
    }
    asked_.clear();
    std::erase_if(streams_, [](const FetchStream* stream) { return stream->connection_ == nullptr; });
    return true;
  }

  /// A broker answers in the request's order, so the next one is looked at first.
  FetchStream* find_asked(const FetchAnswer::Partition& partition, std::size_t& next) {
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      FetchStream* const stream = asked_[(next + i) % asked_.size()];
      if (stream == nullptr || stream->partition_ != partition.partition || stream->topic_ != partition.topic) continue;
      next = (next + i + 1) % asked_.size();
      return stream;
    }
    return nullptr;
  }

  void end_streams(Outcome outcome) {
    for (FetchStream* const stream : std::exchange(streams_, {})) stream->end(outcome);
    asked_.clear();
  }

  Fetcher& fetcher_;
  Addresses addresses_;
  const addrinfo* next_address_;
  Socket socket_;
  bool connected_ = false;
  Outcome outcome_ = Outcome::kFailed;  ///< Of the streams, should the connection end.

  std::vector<FetchStream*> streams_;
  std::vector<FetchStream*> asked_;  ///< In the request's order; nullptr once it is gone.
  bool waiting_ = false;             ///< A request is on its way or its answer is.
  std::int32_t correlation_id_ = 0;
  std::string request_;
  std::size_t sent_ = 0;
  std::array<char, sizeof(std::int32_t)> size_{};
  std::size_t received_ = 0;  ///< Of the answer, its size included.
  std::size_t answer_size_ = 0;
  Buffer answer_;
  std::size_t answers_ = 0;
  std::int64_t heard_ns_ = 0;
  std::int64_t quiet_until_ns_ = 0;
};

Fetcher::Fetcher(std::string client_id) : client_id_(std::move(client_id)) {}
Fetcher::~Fetcher() = default;

std::unique_ptr<FetchStream> Fetcher::open(const BrokerAddress& leader, std::string topic, std::int32_t partition,
                                           std::int64_t offset) {
  auto stream = std::make_unique<FetchStream>(*this, std::move(topic), partition, offset);
  std::unique_ptr<Connection>& connection = connections_[leader];
  if (!connection) connection = std::make_unique<Connection>(*this, leader);
  connection->add(*stream);
  return stream;
}

bool Fetcher::serve() {
  const std::int64_t now_ns = connections_.empty() ? 0 : model::steady_clock_ns();
  bool progress = false;
  for (const auto& [broker, connection] : connections_) progress |= connection->serve(now_ns);
  close_unused();
  return progress;
}

void Fetcher::close_unused() {
  std::erase_if(connections_, [](const auto& entry) { return !entry.second->has_streams(); });
}

void Fetcher::append_descriptors(std::vector<pollfd>& descriptors) const {
  for (const auto& [broker, connection] : connections_) descriptors.push_back(connection->descriptor());
}

FetchStream::FetchStream(Fetcher& fetcher, std::string topic, std::int32_t partition, std::int64_t offset)
    : fetcher_(fetcher),
      topic_(std::move(topic)),
      partition_(partition),
      reader_(fetcher.decompressor_, fetcher.decompressed_, offset),
      fetch_offset_(offset) {}

FetchStream::~FetchStream() {
  if (connection_ == nullptr) return;
  connection_->remove(*this);
  fetcher_.close_unused();
}

Outcome FetchStream::read(std::size_t records_max, std::vector<model::RecordView>& views) {
  for (;;) {
    if (reading_) {
      switch (reader_.read(records_max, views)) {
        case RecordBatchReader::Outcome::kRecords:
          return Outcome::kRecords;
        case RecordBatchReader::Outcome::kMalformed:
        case RecordBatchReader::Outcome::kUnusual:
          return Outcome::kUnusual;
        case RecordBatchReader::Outcome::kDrained:
          parts_.pop_front();
          reading_ = false;
      }
    }
    if (parts_.empty()) {
      views.clear();
      return outcome_;
    }
    reader_.feed(parts_.front().records);
    reading_ = true;
  }
}

void FetchStream::take(const FetchAnswer::Partition& partition, const std::shared_ptr<const Answer>& answer) {
  if (partition.error != 0) return end(Outcome::kFailed);
  if (partition.has_aborted_transactions) return end(Outcome::kUnusual);
  end_offset_ = partition.high_watermark;
  if (partition.records.empty()) return;
  parts_.push_back({answer, partition.records});
  const std::optional<std::int64_t> fetched = end_of_whole_batches(partition.records);
  served_ = fetched.has_value();
  if (fetched && *fetched <= fetch_offset_) return end(Outcome::kUnusual);
  fetch_offset_ = fetched.value_or(fetch_offset_);
}

void FetchStream::end(Outcome outcome) {
  outcome_ = outcome;
  connection_ = nullptr;
}

}  // namespace drover::ingest

#include "tests/support/kafka_broker.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <librdkafka/rdkafka.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>
#include <thread>

namespace drover::test {
namespace {

constexpr std::chrono::seconds kReadyTimeout{90};
constexpr std::chrono::seconds kStopTimeout{30};
constexpr int kRequestTimeoutMs = 30'000;

[[noreturn]] void fail(const std::string& what) {
  std::cerr << "KafkaBroker: " << what << std::endl;
  std::abort();
}

void require(bool condition, const std::string& what) {
  if (!condition) fail(what);
}

/// Two ports that were free a moment ago.
std::array<std::string, 2> free_ports() {
  std::array<int, 2> sockets{};
  std::array<std::string, 2> ports;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    sockets[i] = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    require(::bind(sockets[i], generic, size) == 0 && ::getsockname(sockets[i], generic, &size) == 0, "no free port");
    ports[i] = std::to_string(ntohs(address.sin_port));
  }
  for (int socket : sockets) ::close(socket);
  return ports;
}

/// A librdkafka handle; destroying it waits for what it has under way.
class Handle {
 public:
  Handle(rd_kafka_type_t type, const std::string& bootstrap, const std::map<std::string, std::string>& settings = {}) {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", bootstrap);
    set(conf, "reconnect.backoff.max.ms", "250");
    set(conf, "log_level", "2");
    for (const auto& [name, value] : settings) set(conf, name, value);
    std::array<char, 512> error{};
    handle_ = rd_kafka_new(type, conf, error.data(), error.size());
    require(handle_ != nullptr, error.data());
  }
  ~Handle() { rd_kafka_destroy(handle_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  rd_kafka_t* get() const { return handle_; }

 private:
  static void set(rd_kafka_conf_t* conf, const std::string& name, const std::string& value) {
    std::array<char, 512> error{};
    require(rd_kafka_conf_set(conf, name.c_str(), value.c_str(), error.data(), error.size()) == RD_KAFKA_CONF_OK,
            error.data());
  }

  rd_kafka_t* handle_ = nullptr;
};

/// The partitions of a topic that a leader serves; 0 while it does not exist.
int served_partitions(const Handle& handle, const std::string& topic) {
  rd_kafka_topic_t* of_topic = rd_kafka_topic_new(handle.get(), topic.c_str(), nullptr);
  const struct rd_kafka_metadata* metadata = nullptr;
  int served = 0;
  if (rd_kafka_metadata(handle.get(), 0, of_topic, &metadata, kRequestTimeoutMs) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    const rd_kafka_metadata_topic& found = metadata->topics[0];
    for (int i = 0; i < found.partition_cnt; ++i) served += found.partitions[i].leader >= 0 ? 1 : 0;
    rd_kafka_metadata_destroy(metadata);
  }
  rd_kafka_topic_destroy(of_topic);
  return served;
}

void wait_until(const std::string& what, const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kRequestTimeoutMs);
  while (!condition()) {
    require(std::chrono::steady_clock::now() < deadline, "waited in vain until " + what);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

/// Sends one admin request and returns the error of its only result, empty if there is none.
std::string topic_request_error(const Handle& handle, const std::function<void(rd_kafka_queue_t*)>& send) {
  rd_kafka_queue_t* queue = rd_kafka_queue_new(handle.get());
  send(queue);
  rd_kafka_event_t* event = rd_kafka_queue_poll(queue, kRequestTimeoutMs);
  std::string error = event == nullptr ? "no answer" : "";
  if (event != nullptr && rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    error = rd_kafka_event_error_string(event);
  } else if (event != nullptr) {
    std::size_t count = 0;
    const rd_kafka_topic_result_t** results = nullptr;
    if (const auto* created = rd_kafka_event_CreateTopics_result(event)) {
      results = rd_kafka_CreateTopics_result_topics(created, &count);
    } else if (const auto* deleted = rd_kafka_event_DeleteTopics_result(event)) {
      results = rd_kafka_DeleteTopics_result_topics(deleted, &count);
    }
    if (count == 1 && rd_kafka_topic_result_error(results[0]) != RD_KAFKA_RESP_ERR_NO_ERROR) {
      error = rd_kafka_err2str(rd_kafka_topic_result_error(results[0]));
    }
  }
  rd_kafka_event_destroy(event);
  rd_kafka_queue_destroy(queue);
  return error;
}

}  // namespace

std::unique_ptr<KafkaBroker> KafkaBroker::start(const std::map<std::string, std::string>& properties) {
  std::unique_ptr<KafkaBroker> broker(new KafkaBroker);
  std::string folder = (std::filesystem::temp_directory_path() / "drover-kafka-XXXXXX").string();
  require(::mkdtemp(folder.data()) != nullptr, "no temporary folder at " + folder);
  broker->folder_ = folder;
  const auto [port, controller_port] = free_ports();
  broker->port_ = port;
  broker->controller_port_ = controller_port;
  broker->bootstrap_ = "127.0.0.1:" + port;
  for (const auto& [name, value] : properties) broker->properties_.append(name).append("=").append(value).append(" ");
  broker->launch();
  broker->wait_until_ready();
  return broker;
}

KafkaBroker::~KafkaBroker() {
  end(SIGKILL);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void KafkaBroker::launch() {
  const std::string folder = folder_.string();
  const std::string script_log = (folder_ / "script.log").string();
  const pid_t parent = ::getpid();
  process_ = ::fork();
  require(process_ >= 0, "fork failed");
  if (process_ != 0) return;
  // The script replaces itself by the broker, so this process is, and dies as, the broker.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::setenv("KAFKA_PROPERTIES", properties_.c_str(), 1);
  const int log = ::open(script_log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execl(DROVER_KAFKA_BROKER_SCRIPT, "kafka-broker", "run", folder.c_str(), port_.c_str(), controller_port_.c_str(),
          nullptr);
  ::_exit(127);
}

void KafkaBroker::wait_until_ready() {
  const Handle handle(RD_KAFKA_PRODUCER, bootstrap_);
  const auto deadline = std::chrono::steady_clock::now() + kReadyTimeout;
  while (true) {
    const struct rd_kafka_metadata* metadata = nullptr;
    if (rd_kafka_metadata(handle.get(), 0, nullptr, &metadata, 250) == RD_KAFKA_RESP_ERR_NO_ERROR) {
      const bool serves = metadata->broker_cnt > 0;
      rd_kafka_metadata_destroy(metadata);
      if (serves) return;
    }
    if (::waitpid(process_, nullptr, WNOHANG) == process_) {
      process_ = -1;
      fail("the node ended while starting:\n" + log_tail());
    }
    require(std::chrono::steady_clock::now() < deadline, "the node does not serve:\n" + log_tail());
  }
}

void KafkaBroker::end(int signal) {
  if (process_ < 0) return;
  ::kill(process_, signal);
  const auto deadline = std::chrono::steady_clock::now() + kStopTimeout;
  while (::waitpid(process_, nullptr, WNOHANG) != process_) {
    if (std::chrono::steady_clock::now() > deadline) ::kill(process_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  process_ = -1;
}

void KafkaBroker::stop() {
  end(SIGTERM);
}

void KafkaBroker::kill() {
  end(SIGKILL);
}

void KafkaBroker::restart() {
  require(process_ < 0, "restart() of a node that runs");
  launch();
  wait_until_ready();
}

std::string KafkaBroker::log_tail() const {
  std::string tail;
  for (const char* name : {"script.log", "broker.log"}) {
    std::stringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    constexpr std::size_t kTailBytes = 4000;
    const std::string all = text.str();
    tail += all.size() > kTailBytes ? all.substr(all.size() - kTailBytes) : all;
  }
  return tail;
}

void KafkaBroker::create_topic(const std::string& topic, std::int32_t partitions,
                               const std::map<std::string, std::string>& config) {
  const Handle handle(RD_KAFKA_PRODUCER, bootstrap_);
  std::array<char, 512> error{};
  rd_kafka_NewTopic_t* wanted = rd_kafka_NewTopic_new(topic.c_str(), partitions, 1, error.data(), error.size());
  require(wanted != nullptr, error.data());
  for (const auto& [name, value] : config) rd_kafka_NewTopic_set_config(wanted, name.c_str(), value.c_str());
  const std::string failed = topic_request_error(
      handle, [&](rd_kafka_queue_t* queue) { rd_kafka_CreateTopics(handle.get(), &wanted, 1, nullptr, queue); });
  rd_kafka_NewTopic_destroy(wanted);
  require(failed.empty(), "creating topic " + topic + ": " + failed);
  wait_until("topic " + topic + " is served", [&] { return served_partitions(handle, topic) == partitions; });
}

void KafkaBroker::delete_topic(const std::string& topic) {
  const Handle handle(RD_KAFKA_PRODUCER, bootstrap_);
  rd_kafka_DeleteTopic_t* unwanted = rd_kafka_DeleteTopic_new(topic.c_str());
  const std::string failed = topic_request_error(
      handle, [&](rd_kafka_queue_t* queue) { rd_kafka_DeleteTopics(handle.get(), &unwanted, 1, nullptr, queue); });
  rd_kafka_DeleteTopic_destroy(unwanted);
  require(failed.empty(), "deleting topic " + topic + ": " + failed);
  wait_until("topic " + topic + " is gone", [&] { return served_partitions(handle, topic) == 0; });
}

void KafkaBroker::delete_records(const std::string& topic, std::int32_t partition, std::int64_t before) {
  const Handle handle(RD_KAFKA_PRODUCER, bootstrap_);
  rd_kafka_topic_partition_list_t* const offsets = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(offsets, topic.c_str(), partition)->offset = before;
  rd_kafka_DeleteRecords_t* unwanted = rd_kafka_DeleteRecords_new(offsets);
  rd_kafka_topic_partition_list_destroy(offsets);
  rd_kafka_queue_t* const queue = rd_kafka_queue_new(handle.get());
  rd_kafka_DeleteRecords(handle.get(), &unwanted, 1, nullptr, queue);
  rd_kafka_event_t* const answer = rd_kafka_queue_poll(queue, kRequestTimeoutMs);
  require(answer != nullptr && rd_kafka_event_error(answer) == RD_KAFKA_RESP_ERR_NO_ERROR,
          "deleting records of " + topic);
  rd_kafka_event_destroy(answer);
  rd_kafka_queue_destroy(queue);
  rd_kafka_DeleteRecords_destroy(unwanted);
}

void KafkaBroker::produce(const std::string& topic, std::int32_t partition,
                          const std::vector<ProducedRecord>& records) {
  const Handle handle(RD_KAFKA_PRODUCER, bootstrap_,
                      {{"enable.idempotence", "true"}, {"linger.ms", "5"}, {"message.max.bytes", "100000000"}});
  const std::int64_t before = end_offset(topic, partition);
  for (const ProducedRecord& record : records) {
    while (true) {
      const rd_kafka_resp_err_t error = rd_kafka_producev(
          handle.get(), RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(partition),
          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_TIMESTAMP(record.timestamp_ms),
          RD_KAFKA_V_KEY(record.key.empty() ? nullptr : record.key.data(), record.key.size()),
          RD_KAFKA_V_VALUE(const_cast<char*>(record.value.data()), record.value.size()), RD_KAFKA_V_END);
      if (error == RD_KAFKA_RESP_ERR_NO_ERROR) break;
      require(error == RD_KAFKA_RESP_ERR__QUEUE_FULL, std::string("producing: ") + rd_kafka_err2str(error));
      rd_kafka_poll(handle.get(), 100);
    }
  }
  require(rd_kafka_flush(handle.get(), kRequestTimeoutMs) == RD_KAFKA_RESP_ERR_NO_ERROR,
          "the broker acknowledges nothing");
  require(end_offset(topic, partition) == before + static_cast<std::int64_t>(records.size()), "records were refused");
}

std::int64_t KafkaBroker::end_offset(const std::string& topic, std::int32_t partition) {
  const Handle handle(RD_KAFKA_PRODUCER, bootstrap_);
  std::int64_t low = 0;
  std::int64_t high = 0;
  // A node that has just come back says for a while that it leads nothing.
  wait_until("the broker tells the end of " + topic, [&] {
    return rd_kafka_query_watermark_offsets(handle.get(), topic.c_str(), partition, &low, &high, kRequestTimeoutMs) ==
           RD_KAFKA_RESP_ERR_NO_ERROR;
  });
  return high;
}

std::int64_t KafkaBroker::committed_offset(const std::string& group, const std::string& topic, std::int32_t partition) {
  const Handle handle(RD_KAFKA_CONSUMER, bootstrap_, {{"group.id", group}});
  rd_kafka_topic_partition_list_t* offsets = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(offsets, topic.c_str(), partition);
  const rd_kafka_resp_err_t error = rd_kafka_committed(handle.get(), offsets, kRequestTimeoutMs);
  const std::int64_t offset = offsets->elems[0].offset;
  rd_kafka_topic_partition_list_destroy(offsets);
  require(error == RD_KAFKA_RESP_ERR_NO_ERROR, std::string("asking for commits: ") + rd_kafka_err2str(error));
  return offset < 0 ? -1 : offset;
}

}  // namespace drover::test

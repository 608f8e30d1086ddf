#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace drover::test {

/// A record to produce. Everything is optional, as in Kafka.
struct ProducedRecord {
  std::string key;  ///< Empty: no key.
  std::string value;
  std::int64_t timestamp_ms = 0;  ///< Since 1970; 0: now.
};

/// A real Apache Kafka node of one's own on 127.0.0.1, for tests and measurements: KRaft, one process, a temporary
/// folder.
///
/// Whatever goes wrong here is the test's environment, not its subject: it prints the reason and aborts.
/// Threads: one at a time. The node dies with the thread that started it, however that thread ends, so that a crashed
/// test leaves none behind: start it from a thread that lives as long as the test.
class KafkaBroker {
 public:
  /// Starts a node on free ports and waits until it serves; takes a few seconds, and the first time ever a Maven
  /// download into build/kafka. `properties` are added to its server.properties.
  static std::unique_ptr<KafkaBroker> start(const std::map<std::string, std::string>& properties = {});
  ~KafkaBroker();
  KafkaBroker(const KafkaBroker&) = delete;
  KafkaBroker& operator=(const KafkaBroker&) = delete;

  /// HOST:PORT; the same before and after a restart.
  const std::string& bootstrap() const { return bootstrap_; }

  /// Ends the node as an operator would.
  void stop();
  /// Ends the node as a power cut of its process would.
  void kill();
  /// Starts a node that was ended on what it had stored, and waits until it serves.
  void restart();

  /// Returns when the topic can be produced to.
  void create_topic(const std::string& topic, std::int32_t partitions,
                    const std::map<std::string, std::string>& config = {});
  /// Returns when the topic is gone.
  void delete_topic(const std::string& topic);

  /// Lets go of a Kafka partition's records in front of `before`, as retention does.
  void delete_records(const std::string& topic, std::int32_t partition, std::int64_t before);

  /// Appends records to a Kafka partition in their order. Returns when the broker has acknowledged all of them.
  void produce(const std::string& topic, std::int32_t partition, const std::vector<ProducedRecord>& records);

  /// One behind the newest record of a Kafka partition.
  std::int64_t end_offset(const std::string& topic, std::int32_t partition);
  /// What a consumer group has committed for a Kafka partition; -1: nothing.
  std::int64_t committed_offset(const std::string& group, const std::string& topic, std::int32_t partition);

 private:
  KafkaBroker() = default;
  void launch();
  void end(int signal);
  void wait_until_ready();
  std::string log_tail() const;

  std::filesystem::path folder_;
  std::string bootstrap_;
  std::string port_;
  std::string controller_port_;
  std::string properties_;
  pid_t process_ = -1;  ///< -1: not running.
};

}  // namespace drover::test

#include <pthread.h>
#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/time.h>
#include <unistd.h>

#include <ctime>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "commands.h"
#include "config_option.h"
#include "drover/server/pipeline.h"

namespace drover::cli {
namespace {

/// Takes SIGTERM and SIGINT out of all threads' way, for wait() to receive. To be made before any thread is.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }

  /// Waits for one for at most a second; 0 if none came.
  int wait_a_second() const {
    const timespec second{.tv_sec = 1, .tv_nsec = 0};
    const int signal = sigtimedwait(&signals_, nullptr, &second);
    return signal > 0 ? signal : 0;
  }

  /// Ends the process when `timeout_ms` are over, whatever is under way.
  static void end_in(std::int64_t timeout_ms) {
    struct sigaction action {};
    action.sa_handler = [](int) {
      constexpr std::string_view kWords = "stop_timeout is over: ended with work in hand\n";
      [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kWords.data(), kWords.size());
      _exit(0);
    };
    sigaction(SIGALRM, &action, nullptr);
    itimerval timer{};
    timer.it_value = {.tv_sec = timeout_ms / 1'000, .tv_usec = timeout_ms % 1'000 * 1'000};
    setitimer(ITIMER_REAL, &timer, nullptr);
  }
  /// From here on a further signal ends the process at once.
  void let_the_next_one_end_the_process() const {
    struct sigaction action {};
    action.sa_handler = [](int signal) { _exit(128 + signal); };
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
  }

 private:
  sigset_t signals_;
};

/// Tells when Kafka is reached, and of each trouble with it once until then.
class KafkaReporter {
 public:
  void look(const ingest::IngestStats& ingest) {
    if (ingest.connected && !connected_) {
      spdlog::info("reading {} Kafka partitions as group {}", ingest.partitions.size(), ingest.group);
      told_.clear();
    }
    connected_ = ingest.connected;
    // librdkafka's texts carry counters and times in brackets; what differs in those alone is the same trouble.
    const std::string trouble = ingest.last_error.substr(0, ingest.last_error.find('('));
    if (trouble.empty() || !told_.insert(trouble).second) return;
    spdlog::warn("Kafka: {}{}", ingest.last_error,
                 connected_ ? "" : "; the API goes on, and reading begins as soon as this is right");
  }

 private:
  bool connected_ = false;
  std::set<std::string> told_;
};

/// Tells of trouble with the store's directory, and when it is over.
class StoreReporter {
 public:
  void look(const store::CheckpointStats& checkpoints) {
    if (checkpoints.error != error_) {
      if (checkpoints.error.empty()) {
        spdlog::info("store.directory can be written again: reading Kafka goes on");
      } else {
        spdlog::error("{}", checkpoints.error);
      }
      error_ = checkpoints.error;
    }
    if (checkpoints.room_is_low && !room_is_low_) {
      spdlog::warn("store.directory: {} MiB are free, less than a tenth of the device: make room before it is full",
                   checkpoints.free_bytes >> 20);
    }
    room_is_low_ = checkpoints.room_is_low;
  }

 private:
  std::string error_;
  bool room_is_low_ = false;
};

void tell_of(const store::Recovery& recovery, const std::string& directory) {
  if (directory.empty()) {
    spdlog::warn(
        "in memory only: every start reads Kafka from the beginning, and API writes are lost with the process;"
        " set store.directory to keep them");
    return;
  }
  spdlog::info("{}: {} rows as of cut {}, {} API writes behind it, in {} ms", directory, recovery.items, recovery.cut,
               recovery.writes, recovery.took_ms);
  for (const std::string& damage : recovery.damaged) spdlog::error("{}: damaged, left out: {}", directory, damage);
}

int serve(const ConfigOption& option) {
  const server::LoadedConfig loaded = option.load();
  if (!loaded.errors.empty()) return server::kExitConfig;

  spdlog::set_default_logger(spdlog::stderr_color_mt("drover"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc);
  spdlog::set_level(spdlog::level::from_str(loaded.config.log_level));

  const StopSignals signals;
  auto made = server::Pipeline::make(loaded.config, [](std::string_view doing, std::uint64_t rows) {
    spdlog::info("{}: {} million rows", doing, rows / 1'000'000);
  });
  const auto exit_code = [](const model::Status& status) {
    spdlog::critical("{}", status.message());
    return status.code() == model::StatusCode::kInvalid ? server::kExitConfig : server::kExitUnavailable;
  };
  if (!made.ok()) return exit_code(made.status());
  auto pipeline = std::move(made).value();

  if (const model::Status status = pipeline->start(); !status.ok()) {
    return exit_code(status);
  }
  const server::Address api = pipeline->api_address();
  const server::Address admin = pipeline->admin_address();
  spdlog::info("drover {} answers at http://{}:{} (DynamoDB) and http://{}:{} (metrics, heat, health)",
               server::version(), api.host, api.port, admin.host, admin.port);
  if (loaded.config.topics.empty()) spdlog::info("no topics: the API alone");
  tell_of(pipeline->store().recovery(), loaded.config.store_directory);

  KafkaReporter reporter;
  StoreReporter store_reporter;
  int signal = 0;
  while ((signal = signals.wait_a_second()) == 0) {
    reporter.look(pipeline->ingest_stats());
    store_reporter.look(pipeline->checkpoint_stats());
  }

  spdlog::info("{}: stopping", signal == SIGTERM ? "SIGTERM" : "SIGINT");
  signals.let_the_next_one_end_the_process();
  StopSignals::end_in(loaded.config.stop_timeout_ms);
  if (const model::Status status = pipeline->stop(); !status.ok()) spdlog::warn("{}", status.message());
  pipeline.reset();  // waits for what is under way
  spdlog::info("stopped");
  return 0;
}

}  // namespace

void add_serve(CLI::App& app, Command& command) {
  CLI::App* serve_command = app.add_subcommand("serve", "Reads Kafka and answers queries until SIGTERM or SIGINT");
  auto option = std::make_shared<ConfigOption>();  // owned by the callback
  option->add_to(*serve_command);
  serve_command->footer(
      "SIGTERM or SIGINT stops in order: what is in hand is applied, the consumer group is left (within stop_timeout,\n"
      "10 s by default). A second signal ends the process at once.\n"
      "Exits 0 after a stop, 78 if the config is wrong, 69 if an address can't be had.\n"
      "\n"
      "Examples:\n"
      "  drover serve --config deploy/drover.yaml\n"
      "  drover serve --config deploy/drover.yaml --set kafka.brokers=kafka-1:9092 --set log.level=debug");
  serve_command->callback([option, &command] { command = [option] { return serve(*option); }; });
}

}  // namespace drover::cli

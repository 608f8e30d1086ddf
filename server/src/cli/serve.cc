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

int serve(const ConfigOption& option) {
  const server::LoadedConfig loaded = option.load();
  if (!loaded.errors.empty()) return server::kExitConfig;

  spdlog::set_default_logger(spdlog::stderr_color_mt("drover"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc);
  spdlog::set_level(spdlog::level::from_str(loaded.config.log_level));

  const StopSignals signals;
  auto pipeline = server::Pipeline::make(loaded.config);
  if (const model::Status status = pipeline->start(); !status.ok()) {
    spdlog::critical("{}", status.message());
    return status.code() == model::StatusCode::kInvalid ? server::kExitConfig : server::kExitUnavailable;
  }
  const server::Address api = pipeline->api_address();
  const server::Address admin = pipeline->admin_address();
  spdlog::info("drover {} answers at http://{}:{} (DynamoDB) and http://{}:{} (metrics, heat, health)",
               server::version(), api.host, api.port, admin.host, admin.port);
  if (loaded.config.topics.empty()) spdlog::info("no topics: the API alone");

  KafkaReporter reporter;
  int signal = 0;
  while ((signal = signals.wait_a_second()) == 0) reporter.look(pipeline->ingest_stats());

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

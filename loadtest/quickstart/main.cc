// Drover in one terminal: an embedded Kafka, a fleet that feeds it, the whole pipeline, and what it is good for.

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "drover/server/pipeline.h"
#include "loadtest/fleet/fleet.h"
#include "loadtest/quickstart/answers.h"
#include "loadtest/quickstart/feeder.h"
#include "loadtest/quickstart/live_line.h"
#include "loadtest/support/fleet_config.h"
#include "loadtest/support/kafka_feed.h"

namespace drover::loadtest {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int32_t kPartitions = 4;
constexpr std::uint32_t kFleetVehicles = FleetOptions{}.vehicles;
constexpr auto kCatchUpMax = std::chrono::seconds(60);

struct Options {
  std::string brokers;  ///< Empty: an embedded Kafka.
  std::string topic = "vehicle-telemetry";
  bool feed = false;  ///< Into the real broker; the embedded one is always fed.
  std::uint16_t port = 8'000;
  std::uint16_t admin_port = 9'464;
  double seconds = 0;  ///< 0: until Ctrl-C.
  std::string vehicle = "V-7741";
  std::string depot = "DEP-LON-3";
  Feeder::Options feeder;
};

/// Ctrl-C and SIGTERM as something to wait for; blocked in every thread that is started after this was made.
class StopSignal {
 public:
  explicit StopSignal(std::optional<Clock::time_point> deadline) : deadline_(deadline) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }

  /// Waits so long at most. Whether it is time to stop.
  bool wait(std::chrono::milliseconds at_most) {
    if (deadline_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now());
      at_most = std::max(std::chrono::milliseconds(0), std::min(at_most, left));
    }
    const timespec timeout{at_most.count() / 1'000, at_most.count() % 1'000 * 1'000'000};
    if (sigtimedwait(&signals_, nullptr, &timeout) > 0) stopped_ = true;
    return stopped_ || (deadline_ && Clock::now() >= *deadline_);
  }

 private:
  sigset_t signals_{};
  std::optional<Clock::time_point> deadline_;
  bool stopped_ = false;
};

bool is_free(std::uint16_t port) {
  namespace asio = boost::asio;
  asio::io_context io;
  asio::ip::tcp::acceptor acceptor(io);
  boost::system::error_code error;
  acceptor.open(asio::ip::tcp::v4());
  acceptor.set_option(asio::ip::tcp::acceptor::reuse_address(true));
  acceptor.bind({asio::ip::address_v4::loopback(), port}, error);
  if (!error) acceptor.listen(1, error);
  return !error;
}

/// Half an hour, or what as many readings are of a fleet that is larger than usual: the answers come as soon.
std::int64_t history_ms(const FleetOptions& fleet) {
  constexpr std::int64_t kHalfAnHourMs = 30 * 60 * 1'000;
  return kHalfAnHourMs * kFleetVehicles / std::max(kFleetVehicles, fleet.vehicles);
}

int fail(const std::string& why, int exit_code = 1) {
  std::fprintf(stderr, "drover-quickstart: %s\n", why.c_str());
  return exit_code;
}

bool is_terminal() {
  return isatty(STDOUT_FILENO) != 0;
}

void say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

/// Waits until everything that is in Kafka now can be queried. kUnavailable: nothing can be read, and why; kStopping:
/// it is time to stop.
model::Status catch_up(server::Pipeline& pipeline, KafkaFeed* feed, const Feeder* feeder, StopSignal& stop) {
  const auto give_up = Clock::now() + kCatchUpMax;
  bool told = false;
  for (;;) {
    const bool time_to_stop = stop.wait(std::chrono::milliseconds(50));
    const ingest::IngestStats stats = pipeline.ingest_stats();
    const bool all_read =
        std::all_of(stats.partitions.begin(), stats.partitions.end(), [](const ingest::PartitionStats& partition) {
          return partition.end_offset >= 0 && partition.lag_records == 0;  // an unknown end has no lag
        });
    const bool fed = feeder == nullptr || (feeder->history_sent() && records_ahead(*feed, pipeline) == 0);
    if (stats.connected && fed && all_read && pipeline.store().idle()) return {};

    const bool unavailable = !stats.connected && !stats.last_error.empty();
    if (time_to_stop || Clock::now() > give_up) {
      if (unavailable) return {model::StatusCode::kUnavailable, stats.last_error};
      if (time_to_stop) return {model::StatusCode::kStopping, "stopped before everything was read"};
      say("Not everything was read within a minute; the answers show what is there.\n");
      return {};
    }
    if (unavailable && !std::exchange(told, true)) say("Waiting        " + stats.last_error + '\n');
  }
}

model::Status show_answers(const Options& options, const server::Address& api) {
  auto client = DynamoDbClient::connect(api.host, api.port);
  if (!client) return client.status();
  auto questions = fleet_questions(**client, options.vehicle, options.depot);
  if (!questions) return questions.status();
  std::size_t number = 0;
  for (Question& question : *questions) {
    auto answer = ask(**client, std::move(question));
    if (!answer) return answer.status();
    auto items = count_items(**client);
    if (!items) return items.status();
    say(render(*answer, ++number, *items) + '\n');
  }
  return {};
}

void show_addresses(const server::Pipeline& pipeline, const Options& options) {
  const std::string api = "http://127.0.0.1:" + std::to_string(pipeline.api_address().port);
  const std::string admin = "http://127.0.0.1:" + std::to_string(pipeline.admin_address().port);
  say("DynamoDB API   " + api + "   aws dynamodb query --endpoint-url " + api + " --table-name telemetry \\\n" +
      "                 --key-condition-expression 'vehicleId = :v' --no-scan-index-forward --max-items 3 \\\n" +
      "                 --expression-attribute-values '{\":v\":{\"S\":\"VEH#" + options.vehicle + "\"}}'\n" +
      "Metrics        " + admin + "/metrics\n" +  //
      "Heat           " + admin + "/heat\n\n");
}

void show_live(server::Pipeline& pipeline, StopSignal& stop) {
  LiveLine line(pipeline);
  line.next();
  while (!stop.wait(std::chrono::milliseconds(is_terminal() ? 1'000 : 5'000))) {
    say(is_terminal() ? "\r\033[K" + line.next() : line.next() + '\n');
  }
  if (is_terminal()) say("\n");
}

int run(Options options) {
  const auto begin = Clock::now();
  std::optional<Clock::time_point> deadline;
  if (options.seconds > 0)
    deadline = begin + std::chrono::milliseconds(static_cast<std::int64_t>(options.seconds * 1'000));
  StopSignal stop(deadline);

  if (options.port != 0 && !is_free(options.port)) {
    return fail("port " + std::to_string(options.port) + " is in use: choose another one with --port N",
                server::kExitUnavailable);
  }
  if (options.admin_port != 0 && !is_free(options.admin_port)) {
    say("Port " + std::to_string(options.admin_port) + " is in use: metrics are on another one, see below.\n");
    options.admin_port = 0;
  }

  std::optional<EmbeddedKafka> embedded;
  if (options.brokers.empty()) {
    embedded.emplace(options.topic, kPartitions);
    options.brokers = embedded->brokers();
    options.feed = true;
  } else if (options.feed) {
    if (model::Status status = create_topic(options.brokers, options.topic, kPartitions); !status.ok()) {
      return fail(status.message(), server::kExitUnavailable);
    }
  }
  say("Kafka          " + options.brokers + (embedded ? " (embedded), topic " : ", topic ") + options.topic + '\n');

  server::Config config = fleet_config(options.brokers, options.topic, model::TimePrecision::kSeconds, true);
  config.kafka.group = "drover-quickstart";
  // A second member that joins late, as on a busy machine, can leave the mock cluster's group waiting for ever.
  if (embedded) config.kafka.handles = 1;
  config.kafka.librdkafka["fetch.wait.max.ms"] = "50";
  config.api.port = options.port;
  config.admin.port = options.admin_port;
  const std::unique_ptr<server::Pipeline> pipeline = server::Pipeline::make(std::move(config)).value();
  if (model::Status status = pipeline->start(); !status.ok()) return fail(status.message(), server::kExitUnavailable);

  std::unique_ptr<KafkaFeed> feed;
  std::unique_ptr<Feeder> feeder;
  if (options.feed) {
    auto opened = KafkaFeed::open({options.brokers, options.topic});
    if (!opened) return fail(opened.status().message());
    feed = std::move(*opened);
    feeder = std::make_unique<Feeder>(options.feeder, *feed, *pipeline);
    say("Fleet          " + with_thousands(options.feeder.fleet.vehicles) + " vehicles in " +
        std::to_string(options.feeder.fleet.depots) + " depots; their META and " +
        with_thousands(static_cast<std::uint64_t>(options.feeder.history_ms / 60'000)) +
        " minutes of readings are on their way…\n\n");
  }

  model::Status status = catch_up(*pipeline, feed.get(), feeder.get(), stop);
  if (status.ok()) status = show_answers(options, pipeline->api_address());
  if (status.ok()) {
    char took[80];
    std::snprintf(took, sizeof took, "From the start to here: %.1f s.\n\n",
                  std::chrono::duration<double>(Clock::now() - begin).count());
    say(took);
    show_addresses(*pipeline, options);
    if (feeder) feeder->go_live();
    show_live(*pipeline, stop);
  }

  feeder.reset();
  const model::Status stopped = pipeline->stop();
  if (status.code() == model::StatusCode::kUnavailable) return fail(status.message(), server::kExitUnavailable);
  if (!status.ok() && status.code() != model::StatusCode::kStopping) return fail(status.message());
  if (!stopped.ok()) return fail(stopped.message());
  say("Stopped.\n");
  return 0;
}

}  // namespace
}  // namespace drover::loadtest

int main(int argc, char** argv) {
  drover::loadtest::Options options;
  CLI::App app(
      "Starts Drover on an embedded Kafka that a fleet of vehicles feeds, shows the four queries that matter with "
      "their\n"
      "answers, then a line of what goes on. Ends with Ctrl-C.",
      "quickstart");
  app.add_option("--kafka", options.brokers, "Read a real Kafka instead (HOST:PORT)");
  app.add_option("--topic", options.topic, "Its topic, of records as the fleet sends them")->capture_default_str();
  app.add_flag("--feed", options.feed, "Also feed the fleet into that real topic")->needs("--kafka");
  app.add_option("--port", options.port, "Of the DynamoDB API; 0: any free one")->capture_default_str();
  app.add_option("--admin-port", options.admin_port, "Of /metrics and /heat; another one if it is taken")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "End by itself after so long");
  app.add_option("--vehicles", options.feeder.fleet.vehicles, "Of the fleet")
      ->capture_default_str()
      ->check(CLI::Range(2, 1'000'000));
  app.add_option("--speedup", options.feeder.speedup, "How much faster than real time the fleet lives")
      ->capture_default_str();
  app.add_option("--vehicle", options.vehicle, "Whom the answers are about")->capture_default_str();
  app.add_option("--depot", options.depot, "Which depot the answers are about")->capture_default_str();
  app.add_option("--record", options.feeder.record_file, "Write every record that is fed to this file, one a line");
  CLI11_PARSE(app, argc, argv);
  options.feeder.history_ms = drover::loadtest::history_ms(options.feeder.fleet);
  return drover::loadtest::run(std::move(options));
}

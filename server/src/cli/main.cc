#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "commands.h"
#include "drover/server/pipeline.h"

namespace {

constexpr int kExitUsage = 64;  // EX_USAGE

/// CLI11's help without the list of what excludes what.
class HelpFormatter final : public CLI::Formatter {
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_name();
    return (type.empty() ? "" : " " + type) + (option->get_required() ? " (required)" : "");
  }
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Drover reads vehicle telemetry from Kafka and answers queries on it over the DynamoDB protocol.",
               "drover"};
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", "drover " + std::string(drover::server::version()));
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    // The unknown word is what went wrong, not that no command was given.
    const std::vector<std::string> rest = failed->remaining();
    const std::string what = failed->get_subcommands().empty() && !rest.empty() && !rest.front().starts_with('-')
                                 ? "there is no command \"" + rest.front() + '"'
                                 : std::string(error.what());
    return what + "\nRun with --help for more information.\n";
  });
  app.footer(
      "Examples:\n"
      "  drover check --config deploy/drover.yaml\n"
      "  drover serve --config deploy/drover.yaml --set kafka.brokers=kafka-1:9092\n"
      "  drover query 'VEH#V-7741' --newest 10\n"
      "\n"
      "`drover COMMAND --help` tells more about a command.");

  drover::cli::Command command;
  drover::cli::add_serve(app, command);
  drover::cli::add_check(app, command);
  drover::cli::add_query(app, command);
  drover::cli::add_erase(app, command);
  drover::cli::add_store(app, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  return command();
}

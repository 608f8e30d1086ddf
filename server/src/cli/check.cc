#include <iostream>
#include <memory>

#include "commands.h"
#include "config_option.h"

namespace drover::cli {
namespace {

std::string count(std::size_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

int check(const ConfigOption& option) {
  const server::LoadedConfig loaded = option.load();
  if (!loaded.errors.empty()) return server::kExitConfig;
  std::cout << option.file << " is good: " << count(loaded.config.topics.size(), "topic") << ", "
            << count(loaded.config.tables.size(), "table") << ", " << count(loaded.warnings.size(), "warning") << '\n';
  return 0;
}

}  // namespace

void add_check(CLI::App& app, Command& command) {
  CLI::App* check_command = app.add_subcommand("check", "Checks a config and starts nothing");
  auto option = std::make_shared<ConfigOption>();  // owned by the callback
  option->add_to(*check_command);
  check_command->footer(
      "Prints every problem with its file, line and setting, what was found and what is accepted,\n"
      "and warns where a design will hurt. Exits 0 if the config is good, 78 if not.\n"
      "\n"
      "Example:\n"
      "  drover check --config deploy/drover.yaml");
  check_command->callback([option, &command] { command = [option] { return check(*option); }; });
}

}  // namespace drover::cli

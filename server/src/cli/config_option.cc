#include "config_option.h"

#include <iostream>

namespace drover::cli {

void ConfigOption::add_to(CLI::App& command) {
  command.add_option("-c,--config", file, "The YAML file; deploy/drover.yaml is an annotated example")
      ->required()
      ->type_name("FILE");
  command
      .add_option("-s,--set", overrides,
                  "Overrides a setting of the file: api.port=8001, tables[0].name=fleet. May be repeated")
      ->type_name("SETTING=VALUE")
      ->allow_extra_args(false);
}

server::LoadedConfig ConfigOption::load() const {
  server::LoadedConfig loaded = server::load_config(file, overrides);
  for (const server::ConfigProblem& problem : loaded.errors) std::cerr << problem.text() << '\n';
  for (const server::ConfigProblem& problem : loaded.warnings) std::cerr << "warning: " << problem.text() << '\n';
  return loaded;
}

}  // namespace drover::cli

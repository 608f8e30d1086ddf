#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "drover/server/config.h"

namespace drover::cli {

/// The options that name a config: --config FILE and any number of --set SETTING=VALUE.
struct ConfigOption {
  std::string file;
  std::vector<std::string> overrides;

  void add_to(CLI::App& command);

  /// Loads the config and prints its problems and warnings to standard error, one line each.
  server::LoadedConfig load() const;
};

}  // namespace drover::cli

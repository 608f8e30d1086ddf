#pragma once

#include <optional>
#include <vector>

#include "drover/server/config.h"
#include "settings.h"

namespace drover::server {

/// Where the parts of a config stand in its file.
struct ConfigPlaces {
  const std::vector<Setting>& tables;
  const std::vector<Setting>& topics;
  const std::optional<Setting>& api;
  const std::optional<Setting>& admin;
};

/// What works, but will hurt. Requires: the config has no errors.
std::vector<ConfigProblem> advise(const Config& config, const ConfigPlaces& places);

}  // namespace drover::server

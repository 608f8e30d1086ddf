#pragma once

#include <string>

#include "drover/model/time.h"
#include "drover/server/config.h"

namespace drover::loadtest {

inline constexpr const char* kTable = "telemetry";
inline constexpr const char* kDepotIndex = "depot";

/// What Drover is told about the fleet's topic: VEH#V-7741 with META and TS#… items, and with the depot's index if
/// asked.
server::Config fleet_config(const std::string& brokers, const std::string& topic, model::TimePrecision precision,
                            bool depot_index);

}  // namespace drover::loadtest

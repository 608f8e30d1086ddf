#pragma once

/// Places where a test ends the process at once, as a power cut would: `DROVER_CRASH_AT=cut.write:3` does so the third
/// time that it comes to `cut.write`. Without the variable a crash point does nothing; none is on the way of a record.
namespace drover::model {

void crash_point(const char* name);

}  // namespace drover::model

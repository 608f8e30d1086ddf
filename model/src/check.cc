#include "drover/model/check.h"

#include <cstdio>
#include <cstdlib>

namespace drover::model {

void check_failed(const char* file, int line, const char* condition, const char* message) {
  std::fprintf(stderr, "%s:%d: check failed: %s (%s)\n", file, line, condition, message);
  std::abort();
}

}  // namespace drover::model

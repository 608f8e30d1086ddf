#pragma once

#include <memory>

#include "disk.h"
#include "drover/model/status.h"
#include "drover/store/store.h"

namespace drover::store {

/// Store::open() on a disk that is open: tests bring one whose file system fails.
model::Result<std::unique_ptr<Store>> open_on(std::unique_ptr<Disk> disk, StoreOptions options,
                                              const RecoveryProgress& progress = {});

}  // namespace drover::store

#pragma once

#include <cstddef>

#include "drover/model/names.h"
#include "drover/model/value_view.h"

namespace drover::server {

/// model::value_size_bytes() of an encoded value.
std::size_t value_size_bytes(model::ValueView value, const model::AttributeNames& names);

}  // namespace drover::server

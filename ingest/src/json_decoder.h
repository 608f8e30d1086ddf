#pragma once

#include <memory>

#include "drover/ingest/decoder.h"

namespace drover::ingest {

/// Which ways a JSON decoder may take; the rows are the same.
enum class JsonWays { kAll, kSimdjsonOnly };

/// make_json_decoder(), for tests and measurements that tell the ways apart.
std::unique_ptr<Decoder> make_json_decoder(const Mapping& mapping, const model::TableSchema& table,
                                           model::AttributeNames& names, JsonWays ways);

}  // namespace drover::ingest

#pragma once

#include <cstdint>
#include <string_view>

namespace drover::ingest {

/// CRC-32C (Castagnoli), Kafka's checksum of a record batch; by the processor's instruction where it has one.
std::uint32_t crc32c(std::string_view bytes);

/// The same by table, for processors without it.
std::uint32_t crc32c_by_table(std::string_view bytes);

}  // namespace drover::ingest

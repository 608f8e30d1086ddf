#pragma once

#include <string>
#include <string_view>

#include "drover/model/bytes.h"
#include "drover/model/status.h"

namespace drover::server {

/// RFC 4648 base64, padded.
void append_base64(std::string& out, std::string_view bytes);

/// Strict: the alphabet and nothing else, padded, no bits left over. kInvalid, with DynamoDB's words.
model::Result<model::Bytes> decode_base64(std::string_view text);

}  // namespace drover::server

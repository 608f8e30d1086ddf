#pragma once

#include <string_view>

namespace drover::server::expression {

/// Whether DynamoDB refuses the word, in any case, as an attribute name that stands in an expression as itself.
bool is_reserved_word(std::string_view word);

}  // namespace drover::server::expression

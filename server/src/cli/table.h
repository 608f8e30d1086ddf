#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace drover::cli {

/// A table for a terminal: a line of titles, a rule, and the rows, in aligned columns. Cells are UTF-8. Columns that
/// don't fit `width` (0: unlimited) are cut, the widest first, and end in "…".
std::string format_table(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows,
                         std::size_t width);

}  // namespace drover::cli

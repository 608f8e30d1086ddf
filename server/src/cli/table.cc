#include "table.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace drover::cli {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::size_t kCutWidthMin = 8;  // no column is cut below this

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

std::size_t width_of(std::string_view cell) {
  return static_cast<std::size_t>(std::count_if(cell.begin(), cell.end(), begins_character));
}

void append_cell(std::string& line, std::string_view cell, std::size_t width) {
  const std::size_t cell_width = width_of(cell);
  if (cell_width <= width) {
    line.append(cell).append(width - cell_width, ' ');
    return;
  }
  std::size_t characters = 0;
  for (const char byte : cell) {
    if (begins_character(byte) && ++characters == width) break;
    line += byte;
  }
  line += "…";
}

std::vector<std::size_t> column_widths(const std::vector<std::string>& titles,
                                       const std::vector<std::vector<std::string>>& rows, std::size_t width) {
  std::vector<std::size_t> widths;
  widths.reserve(titles.size());
  for (const std::string& title : titles) widths.push_back(width_of(title));
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  if (width == 0 || widths.empty()) return widths;
  std::size_t total = std::accumulate(widths.begin(), widths.end(), (widths.size() - 1) * kGap.size());
  while (total > width) {
    const auto widest = std::max_element(widths.begin(), widths.end());
    if (*widest <= kCutWidthMin) break;
    --*widest;
    --total;
  }
  return widths;
}

void append_line(std::string& out, const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (i > 0) line += kGap;
    append_cell(line, i < cells.size() ? std::string_view(cells[i]) : std::string_view(), widths[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out.append(line).append("\n");
}

}  // namespace

std::string format_table(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows,
                         std::size_t width) {
  const std::vector<std::size_t> widths = column_widths(titles, rows, width);
  std::vector<std::string> rule;
  rule.reserve(widths.size());
  for (const std::size_t column : widths) rule.emplace_back(column, '-');
  std::string out;
  append_line(out, titles, widths);
  append_line(out, rule, widths);
  for (const auto& row : rows) append_line(out, row, widths);
  return out;
}

}  // namespace drover::cli

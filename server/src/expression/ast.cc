#include "expression/ast.h"

namespace drover::server::expression {

std::string Path::text() const {
  std::string out;
  for (const PathStep& step : steps) {
    out += out.empty() ? "[" : ", ";
    if (const auto* index = std::get_if<std::size_t>(&step)) {
      out += '[' + std::to_string(*index) + ']';
    } else {
      out += std::get<std::string>(step);
    }
  }
  return out + ']';
}

std::string_view text(Comparator comparator) {
  switch (comparator) {
    case Comparator::kEqual:
      return "=";
    case Comparator::kNotEqual:
      return "<>";
    case Comparator::kLess:
      return "<";
    case Comparator::kLessEqual:
      return "<=";
    case Comparator::kGreater:
      return ">";
    case Comparator::kGreaterEqual:
      return ">=";
  }
  return {};
}

}  // namespace drover::server::expression

#include "expression/projection.h"

#include <utility>

namespace drover::server::expression {

using model::AttributeType;
using model::AttributeValue;

Projection::Projection(const std::vector<Path>& paths) {
  for (const Path& path : paths) {
    flat_ = flat_ && !path.nested();
    Node* node = &root_;
    for (const PathStep& step : path.steps) {
      const auto* index = std::get_if<std::size_t>(&step);
      node = index != nullptr ? &node->indexes[*index] : &node->names[std::get<std::string>(step)];
    }
  }
}

bool Projection::wants_whole(std::string_view attribute) const {
  const auto found = root_.names.find(attribute);
  return found != root_.names.end() && found->second.whole();
}

std::vector<std::string> Projection::attributes() const {
  std::vector<std::string> names;
  for (const auto& [name, node] : root_.names) names.push_back(name);
  return names;
}

bool Projection::cut(const Node& node, const AttributeValue& from, AttributeValue& to) {
  if (node.whole()) {
    to = from;
    return true;
  }
  to.type = from.type;
  if (from.type == AttributeType::kMap) {
    for (const auto& [name, child] : node.names) {
      const auto found = from.map.find(name);
      AttributeValue part;
      if (found != from.map.end() && cut(child, found->second, part)) to.map.emplace(name, std::move(part));
    }
    return !to.map.empty();
  }
  if (from.type == AttributeType::kList) {
    for (const auto& [index, child] : node.indexes) {
      AttributeValue part;
      if (index < from.list.size() && cut(child, from.list[index], part)) to.list.push_back(std::move(part));
    }
    return !to.list.empty();
  }
  return false;
}

model::Item Projection::project(const model::Item& item) const {
  model::Item out;
  for (const auto& [name, node] : root_.names) {
    const auto found = item.find(name);
    AttributeValue part;
    if (found != item.end() && cut(node, found->second, part)) out.emplace(name, std::move(part));
  }
  return out;
}

}  // namespace drover::server::expression

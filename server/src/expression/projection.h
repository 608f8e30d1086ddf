#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "drover/model/attribute.h"
#include "expression/ast.h"

namespace drover::server::expression {

/// Which parts of an item are wanted: a set of paths, made for cutting many items.
class Projection {
 public:
  /// Requires: the paths do not overlap.
  explicit Projection(const std::vector<Path>& paths);

  /// Whether anything of the top-level attribute is wanted.
  bool wants(std::string_view attribute) const { return root_.names.find(attribute) != root_.names.end(); }
  /// Whether all of the top-level attribute is wanted.
  bool wants_whole(std::string_view attribute) const;
  /// Whether every path is a top-level attribute, so that wants() is all there is to it.
  bool flat() const { return flat_; }
  /// The top-level attributes of which anything is wanted, sorted.
  std::vector<std::string> attributes() const;

  /// The wanted parts that are there. Elements of a list close up; what would be empty is left out.
  model::Item project(const model::Item& item) const;

 private:
  struct Node {
    std::map<std::string, Node, std::less<>> names;
    std::map<std::size_t, Node> indexes;
    bool whole() const { return names.empty() && indexes.empty(); }
  };
  static bool cut(const Node& node, const model::AttributeValue& from, model::AttributeValue& to);

  Node root_;
  bool flat_ = true;
};

}  // namespace drover::server::expression

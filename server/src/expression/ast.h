#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "drover/model/attribute.h"

/// What the expressions of a request mean, as trees. The parser makes them of text, the legacy parameters of JSON; the
/// evaluators know no other form.
///
/// Constants are pointers into the request's ExpressionAttributeValues (placeholders.h), which must outlive the tree.
namespace drover::server::expression {

/// A step of a document path: a name in a map, or an index in a list.
using PathStep = std::variant<std::string, std::size_t>;

/// `address.lines[0]`; never empty, and the first step is a name.
struct Path {
  std::vector<PathStep> steps;

  const std::string& head() const { return std::get<std::string>(steps.front()); }
  bool nested() const { return steps.size() > 1; }
  /// As DynamoDB's errors print a path: `[address, lines, [0]]`.
  std::string text() const;

  friend auto operator<=>(const Path&, const Path&) = default;
};

/// What a condition compares: an attribute, a constant, or the size() of either.
struct Operand {
  Path path;                                     ///< Empty if this is a constant.
  const model::AttributeValue* value = nullptr;  ///< The constant, or null.
  bool size = false;
};

enum class Comparator { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };

/// The operator as it is written: "<=".
std::string_view text(Comparator comparator);

struct Condition {
  enum class Kind {
    kAnd,                 // children
    kOr,                  // children
    kNot,                 // one child
    kCompare,             // operands[0] comparator operands[1]
    kBetween,             // operands[0] BETWEEN operands[1] AND operands[2]
    kIn,                  // operands[0] IN (the others)
    kAttributeExists,     // operands[0] is a path
    kAttributeNotExists,  // operands[0] is a path
    kAttributeType,       // operands[1] is a constant string, one of the types' letters
    kBeginsWith,
    kContains,
  };
  Kind kind = Kind::kAnd;
  Comparator comparator = Comparator::kEqual;
  std::vector<Condition> children;
  std::vector<Operand> operands;
};

/// The right-hand side of SET.
struct UpdateValue {
  enum class Kind { kPath, kConstant, kAdd, kSubtract, kIfNotExists, kListAppend };
  Kind kind = Kind::kConstant;
  Path path;                                     ///< kPath and kIfNotExists.
  const model::AttributeValue* value = nullptr;  ///< kConstant.
  std::vector<UpdateValue> operands;             ///< Two; for kIfNotExists one, the value if the path is missing.
};

struct UpdateAction {
  enum class Kind { kSet, kRemove, kAdd, kDelete };
  Kind kind = Kind::kSet;
  Path path;
  UpdateValue value;  ///< kSet; a constant for kAdd and kDelete.
};

/// All actions of one UpdateItem; their paths do not overlap.
struct Update {
  std::vector<UpdateAction> actions;
};

}  // namespace drover::server::expression

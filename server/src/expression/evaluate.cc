#include "expression/evaluate.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace drover::server::expression {
namespace {

using model::AttributeType;
using model::AttributeValue;

std::optional<std::size_t> size_of(const AttributeValue& value) {
  switch (value.type) {
    case AttributeType::kString:
    case AttributeType::kBinary:
      return value.bytes.size();
    case AttributeType::kStringSet:
    case AttributeType::kBinarySet:
      return value.bytes_set.size();
    case AttributeType::kNumberSet:
      return value.number_set.size();
    case AttributeType::kList:
      return value.list.size();
    case AttributeType::kMap:
      return value.map.size();
    default:
      return std::nullopt;
  }
}

// An operand's value on one item; keeps the number that size() makes.
class Resolved {
 public:
  Resolved(const Operand& operand, const model::Item& item)
      : value_(operand.value != nullptr ? operand.value : find(item, operand.path)) {
    if (!operand.size || value_ == nullptr) return;
    const std::optional<std::size_t> size = size_of(*value_);
    if (size) size_ = AttributeValue::of_number(model::Decimal(static_cast<std::int64_t>(*size)));
    value_ = size_ ? &*size_ : nullptr;
  }
  Resolved(const Resolved&) = delete;
  Resolved& operator=(const Resolved&) = delete;

  const AttributeValue* get() const { return value_; }

 private:
  const AttributeValue* value_;
  std::optional<AttributeValue> size_;
};

// The sign of a's place against b's, if both are there, of one type, and ordered.
std::optional<int> order(const AttributeValue* a, const AttributeValue* b) {
  if (a == nullptr || b == nullptr || a->type != b->type || !is_ordered(a->type)) return std::nullopt;
  return compare_ordered(*a, *b);
}

bool equal(const AttributeValue* a, const AttributeValue* b) {
  return a != nullptr && b != nullptr && *a == *b;
}

bool compare(Comparator comparator, const AttributeValue* a, const AttributeValue* b) {
  if (comparator == Comparator::kEqual) return equal(a, b);
  if (comparator == Comparator::kNotEqual) return !equal(a, b);
  const std::optional<int> sign = order(a, b);
  if (!sign) return false;
  switch (comparator) {
    case Comparator::kLess:
      return *sign < 0;
    case Comparator::kLessEqual:
      return *sign <= 0;
    case Comparator::kGreater:
      return *sign > 0;
    default:
      return *sign >= 0;
  }
}

bool begins_with(const AttributeValue* whole, const AttributeValue* prefix) {
  return whole != nullptr && prefix != nullptr && whole->type == prefix->type &&
         (whole->type == AttributeType::kString || whole->type == AttributeType::kBinary) &&
         whole->bytes.starts_with(prefix->bytes);
}

/// In time that grows with the sum of both sizes, not with their product as std::string::find() may.
bool has_text(const std::string& whole, const std::string& part) {
  return memmem(whole.data(), whole.size(), part.data(), part.size()) != nullptr;
}

bool contains(const AttributeValue* whole, const AttributeValue* part) {
  if (whole == nullptr || part == nullptr) return false;
  const auto has_bytes = [&] {
    return std::binary_search(whole->bytes_set.begin(), whole->bytes_set.end(), part->bytes);
  };
  switch (whole->type) {
    case AttributeType::kString:
    case AttributeType::kBinary:
      return part->type == whole->type && has_text(whole->bytes, part->bytes);
    case AttributeType::kStringSet:
      return part->type == AttributeType::kString && has_bytes();
    case AttributeType::kBinarySet:
      return part->type == AttributeType::kBinary && has_bytes();
    case AttributeType::kNumberSet:
      return part->type == AttributeType::kNumber &&
             std::binary_search(whole->number_set.begin(), whole->number_set.end(), part->number);
    case AttributeType::kList:
      return std::find(whole->list.begin(), whole->list.end(), *part) != whole->list.end();
    default:
      return false;
  }
}

bool is_between(const Condition& condition, const model::Item& item) {
  const Resolved value(condition.operands[0], item);
  const Resolved lower(condition.operands[1], item);
  const Resolved upper(condition.operands[2], item);
  return compare(Comparator::kGreaterEqual, value.get(), lower.get()) &&
         compare(Comparator::kLessEqual, value.get(), upper.get());
}

bool is_in(const Condition& condition, const model::Item& item) {
  const Resolved value(condition.operands[0], item);
  return std::any_of(condition.operands.begin() + 1, condition.operands.end(),
                     [&](const Operand& candidate) { return equal(value.get(), Resolved(candidate, item).get()); });
}

void collect_attributes(const Condition& condition, std::vector<std::string>& names) {
  for (const Condition& child : condition.children) collect_attributes(child, names);
  for (const Operand& operand : condition.operands) {
    if (!operand.path.steps.empty()) names.push_back(operand.path.head());
  }
}

}  // namespace

bool is_ordered(AttributeType type) {
  return type == AttributeType::kString || type == AttributeType::kNumber || type == AttributeType::kBinary;
}

int compare_ordered(const AttributeValue& a, const AttributeValue& b) {
  if (a.type != AttributeType::kNumber) return a.bytes.compare(b.bytes);  // char_traits compare unsigned bytes
  if (a.number < b.number) return -1;
  return a.number == b.number ? 0 : 1;
}

const AttributeValue* find(const model::Item& item, const Path& path) {
  const auto head = item.find(path.head());
  if (head == item.end()) return nullptr;
  const AttributeValue* at = &head->second;
  for (auto step = path.steps.begin() + 1; step != path.steps.end(); ++step) {
    if (const auto* index = std::get_if<std::size_t>(&*step)) {
      if (at->type != AttributeType::kList || *index >= at->list.size()) return nullptr;
      at = &at->list[*index];
    } else {
      if (at->type != AttributeType::kMap) return nullptr;
      const auto entry = at->map.find(std::get<std::string>(*step));
      if (entry == at->map.end()) return nullptr;
      at = &entry->second;
    }
  }
  return at;
}

bool matches(const Condition& condition, const model::Item& item) {
  const auto match = [&](const Condition& child) { return matches(child, item); };
  const auto& children = condition.children;
  switch (condition.kind) {
    case Condition::Kind::kAnd:
      return std::all_of(children.begin(), children.end(), match);
    case Condition::Kind::kOr:
      return std::any_of(children.begin(), children.end(), match);
    case Condition::Kind::kNot:
      return !match(children[0]);
    case Condition::Kind::kBetween:
      return is_between(condition, item);
    case Condition::Kind::kIn:
      return is_in(condition, item);
    default:
      break;
  }
  const Resolved first(condition.operands[0], item);
  if (condition.kind == Condition::Kind::kAttributeExists) return first.get() != nullptr;
  if (condition.kind == Condition::Kind::kAttributeNotExists) return first.get() == nullptr;

  const Resolved second(condition.operands[1], item);
  switch (condition.kind) {
    case Condition::Kind::kCompare:
      return compare(condition.comparator, first.get(), second.get());
    case Condition::Kind::kAttributeType:
      return first.get() != nullptr && model::wire_name(first.get()->type) == second.get()->bytes;
    case Condition::Kind::kBeginsWith:
      return begins_with(first.get(), second.get());
    default:
      return contains(first.get(), second.get());
  }
}

std::vector<std::string> attributes_of(const Condition& condition) {
  std::vector<std::string> names;
  collect_attributes(condition, names);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace drover::server::expression

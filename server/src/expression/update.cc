#include "expression/update.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "drover/model/limits.h"
#include "expression/evaluate.h"

namespace drover::server::expression {
namespace {

using model::AttributeType;
using model::AttributeValue;
using model::Result;
using model::Status;

Status invalid_path() {
  return model::invalid("The document path provided in the update expression is invalid for update");
}
Status wrong_type() {
  return model::invalid("An operand in the update expression has an incorrect data type");
}

Status too_large() {
  return model::invalid("Item size to update has exceeded the maximum allowed size");
}

// Works out right-hand sides on the item as it was.
//
// All that is copied ends up in the updated item, so what is too much for an item is refused while copying: nested
// list_append() could otherwise make gigabytes of one short expression.
class Evaluator {
 public:
  explicit Evaluator(const model::Item& item) : item_(item) {}

  Result<AttributeValue> evaluate(const UpdateValue& value) {
    switch (value.kind) {
      case UpdateValue::Kind::kConstant:
        return copy(*value.value);
      case UpdateValue::Kind::kPath: {
        const AttributeValue* found = find(item_, value.path);
        if (found != nullptr) return copy(*found);
        return model::invalid("The provided expression refers to an attribute that does not exist in the item");
      }
      case UpdateValue::Kind::kIfNotExists: {
        const AttributeValue* found = find(item_, value.path);
        return found != nullptr ? copy(*found) : evaluate(value.operands[0]);
      }
      default:
        return combine(value);
    }
  }

 private:
  Result<AttributeValue> copy(const AttributeValue& value) {
    if (value.type != AttributeType::kNumber) copied_bytes_ += model::value_size_bytes(value);
    if (copied_bytes_ > model::kItemSizeBytesMax) return too_large();
    return value;
  }

  Result<AttributeValue> combine(const UpdateValue& value) {
    Result<AttributeValue> left = evaluate(value.operands[0]);
    if (!left.ok()) return left;
    Result<AttributeValue> right = evaluate(value.operands[1]);
    if (!right.ok()) return right;

    const bool append = value.kind == UpdateValue::Kind::kListAppend;
    const AttributeType wanted = append ? AttributeType::kList : AttributeType::kNumber;
    if (left->type != wanted || right->type != wanted) return wrong_type();
    if (append) {
      std::move(right->list.begin(), right->list.end(), std::back_inserter(left->list));
      return left;
    }
    const Result<model::Decimal> number = value.kind == UpdateValue::Kind::kAdd
                                              ? model::Decimal::add(left->number, right->number)
                                              : model::Decimal::subtract(left->number, right->number);
    if (!number.ok()) return number.status();
    return AttributeValue::of_number(*number);
  }

  const model::Item& item_;
  std::size_t copied_bytes_ = 0;
};

// Where the last step of a path points: a place in a map or a list that is there; the place itself may be empty.
class Place {
 public:
  // No place (found() is false) if the way to it does not exist.
  Place(model::Item& item, const Path& path) : last_(&path.steps.back()) {
    if (!path.nested()) {
      map_ = &item;
      return;
    }
    Path parent;
    parent.steps.assign(path.steps.begin(), path.steps.end() - 1);
    auto* container = const_cast<AttributeValue*>(expression::find(item, parent));
    if (container == nullptr) return;
    const bool index = std::holds_alternative<std::size_t>(*last_);
    if (index && container->type == AttributeType::kList) list_ = &container->list;
    if (!index && container->type == AttributeType::kMap) map_ = &container->map;
  }

  bool found() const { return map_ != nullptr || list_ != nullptr; }

  // What is there, or null.
  AttributeValue* value() {
    if (map_ != nullptr) {
      const auto entry = map_->find(std::get<std::string>(*last_));
      return entry == map_->end() ? nullptr : &entry->second;
    }
    const std::size_t index = std::get<std::size_t>(*last_);
    return index < list_->size() ? &(*list_)[index] : nullptr;
  }

  // An index past the end of a list appends.
  void set(AttributeValue&& value) {
    if (AttributeValue* present = this->value()) {
      *present = std::move(value);
    } else if (map_ != nullptr) {
      map_->emplace(std::get<std::string>(*last_), std::move(value));
    } else {
      list_->push_back(std::move(value));
    }
  }

  void remove() {
    if (map_ != nullptr) {
      map_->erase(std::get<std::string>(*last_));
    } else if (const std::size_t index = std::get<std::size_t>(*last_); index < list_->size()) {
      list_->erase(list_->begin() + static_cast<std::ptrdiff_t>(index));
    }
  }

 private:
  const PathStep* last_;
  model::Item* map_ = nullptr;
  AttributeValue::List* list_ = nullptr;
};

template <typename T>
std::vector<T> unite(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> out;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}
template <typename T>
std::vector<T> subtract(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> out;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

Status add(Place& place, const AttributeValue& operand) {
  AttributeValue* present = place.value();
  if (present == nullptr) {
    place.set(AttributeValue(operand));
    return {};
  }
  if (present->type != operand.type) return wrong_type();
  switch (operand.type) {
    case AttributeType::kNumber: {
      const Result<model::Decimal> sum = model::Decimal::add(present->number, operand.number);
      if (!sum.ok()) return sum.status();
      present->number = *sum;
      break;
    }
    case AttributeType::kList:  // AttributeUpdates only
      present->list.insert(present->list.end(), operand.list.begin(), operand.list.end());
      break;
    default:
      present->bytes_set = unite(present->bytes_set, operand.bytes_set);
      present->number_set = unite(present->number_set, operand.number_set);
  }
  return {};
}

// Takes elements out of a set; `emptied` tells that none are left, since there are no empty sets.
Status take_from_set(Place& place, const AttributeValue& operand, bool& emptied) {
  AttributeValue* present = place.value();
  if (present == nullptr) return {};
  if (present->type != operand.type) return wrong_type();
  present->bytes_set = subtract(present->bytes_set, operand.bytes_set);
  present->number_set = subtract(present->number_set, operand.number_set);
  emptied = present->bytes_set.empty() && present->number_set.empty();
  return {};
}

}  // namespace

Status apply(const Update& update, model::Item& item) {
  std::vector<std::pair<const UpdateAction*, AttributeValue>> writes;
  Evaluator evaluator(item);
  for (const UpdateAction& action : update.actions) {
    if (action.kind == UpdateAction::Kind::kRemove) continue;
    Result<AttributeValue> value = evaluator.evaluate(action.value);
    if (!value.ok()) return value.status();
    writes.emplace_back(&action, std::move(*value));
  }
  // In the order of paths, so that what is appended to one list stands in the order of the given indexes.
  std::stable_sort(writes.begin(), writes.end(),
                   [](const auto& a, const auto& b) { return a.first->path < b.first->path; });

  std::vector<const Path*> removed;
  for (const UpdateAction& action : update.actions) {
    if (!Place(item, action.path).found()) return invalid_path();
    if (action.kind == UpdateAction::Kind::kRemove) removed.push_back(&action.path);
  }
  for (auto& [action, value] : writes) {
    Place place(item, action->path);
    bool emptied = false;
    Status status;
    if (action->kind == UpdateAction::Kind::kSet) {
      place.set(std::move(value));
    } else if (action->kind == UpdateAction::Kind::kAdd) {
      status = add(place, value);
    } else {
      status = take_from_set(place, value, emptied);
    }
    if (!status.ok()) return status;
    if (emptied) removed.push_back(&action->path);
  }
  // From behind, so that no removal moves the index of a later one.
  std::sort(removed.begin(), removed.end(), [](const Path* a, const Path* b) { return *b < *a; });
  for (const Path* path : removed) Place(item, *path).remove();
  return {};
}

bool only_removes(const Update& update) {
  return std::all_of(update.actions.begin(), update.actions.end(), [](const UpdateAction& action) {
    return action.kind == UpdateAction::Kind::kRemove || action.kind == UpdateAction::Kind::kDelete;
  });
}

}  // namespace drover::server::expression

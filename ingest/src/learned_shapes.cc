#include "learned_shapes.h"

#include <optional>
#include <utility>

#include "drover/model/value_view.h"
#include "swar.h"

namespace drover::ingest {
namespace {

using model::ValueTag;

/// Room that one stored value takes beside its text.
constexpr std::size_t kValueRoomBytes = 24;

bool is_digit_or_minus(char c) {
  return (c >= '0' && c <= '9') || c == '-';
}

}  // namespace

// The values of one good JSON record and the bytes between them.
class LearnedShapes::Outline {
 public:
  Outline(std::string_view json, const ItemPlan& plan, const CompiledMapping& mapping)
      : at_(json.data()), end_(at_ + json.size()), literal_begin_(at_), plan_(plan), mapping_(mapping) {}

  struct Value {
    std::uint32_t literal_begin = 0;
    std::uint32_t literal_size = 0;
    const PathNode* node = nullptr;
    std::optional<std::string_view> own_name;  ///< That it is stored under.
    bool tells_meta = false;
  };

  /// False: the record is of a kind that is not learned.
  bool draw() {
    skip_spaces();
    if (!take_object(&plan_.root, 0, 0)) return false;
    at_ = end_;
    last_literal_begin = static_cast<std::uint32_t>(literals.size());
    end_literal();
    return values.size() <= kShapeSlotsMax;
  }

  std::string literals;
  std::vector<Value> values;
  std::uint32_t last_literal_begin = 0;

 private:
  /// `depth`: of nesting. `meta_depth`: how many names of the path that tells META lead here; beside it, npos.
  bool take_object(const PathNode* node, std::size_t depth, std::size_t meta_depth) {
    ++at_;
    skip_spaces();
    while (*at_ != '}') {
      if (*at_ == ',') {
        ++at_;
        skip_spaces();
      }
      if (!take_field(node, depth, meta_depth)) return false;
      skip_spaces();
    }
    ++at_;
    return true;
  }

  bool take_field(const PathNode* node, std::size_t depth, std::size_t meta_depth) {
    const char* const name_begin = at_ + 1;
    take_string();
    const std::string_view name(name_begin, static_cast<std::size_t>(at_ - 1 - name_begin));
    if (name.find('\\') != std::string_view::npos) return false;
    skip_spaces();
    ++at_;  // the colon
    skip_spaces();
    const PathNode* child = node != nullptr ? node->find(name) : nullptr;
    const auto& meta_names = mapping_.meta_path.names;
    const bool on_meta_path = meta_depth < meta_names.size() && meta_names[meta_depth] == name;
    const bool own_name = plan_.every_field && depth == 0 && (child == nullptr || !child->left_out);
    const bool stored = own_name || (child != nullptr && child->stored);
    if (*at_ == '[' || (*at_ == '{' && stored)) return false;
    if (*at_ == '{') return take_object(child, depth + 1, on_meta_path ? meta_depth + 1 : std::string::npos);

    Value value;
    value.literal_begin = static_cast<std::uint32_t>(literals.size());
    value.node = child;
    if (own_name) value.own_name = name;
    value.tells_meta = on_meta_path && meta_depth + 1 == meta_names.size() && !mapping_.meta_equals.empty();
    value.literal_size = end_literal();
    values.push_back(value);
    take_scalar();
    literal_begin_ = at_;
    return true;
  }

  std::uint32_t end_literal() {
    literals.append(literal_begin_, at_).push_back('\0');
    return static_cast<std::uint32_t>(at_ - literal_begin_);
  }

  void take_scalar() {
    if (*at_ == '"') return take_string();
    at_ += std::string_view(at_, static_cast<std::size_t>(end_ - at_)).find_first_of(",} \t\r\n");
  }

  void take_string() {
    for (++at_; *at_ != '"'; ++at_) {
      if (*at_ == '\\') ++at_;
    }
    ++at_;
  }

  void skip_spaces() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
  }

  const char* at_;
  const char* const end_;
  const char* literal_begin_;
  const ItemPlan& plan_;
  const CompiledMapping& mapping_;
};

bool LearnedShapes::read(std::string_view json, ItemParts& parts) {
  if (json.size() > kShapeRecordSizeBytesMax || json.size() < sizeof(std::uint64_t)) return false;
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const std::size_t tried = last_used_ + i < shapes_.size() ? last_used_ + i : last_used_ + i - shapes_.size();
    if (read(shapes_[tried], json, parts)) {
      last_used_ = tried;
      return true;
    }
  }
  return false;
}

inline bool LearnedShapes::take_text(const Slot& slot, Cursor& cursor) {
  const char* const begin = cursor.at + 1;
  const char* close = nullptr;
  if (slot.use == Use::kTime) {
    close = time_.take(begin, cursor.end);
    if (close == cursor.end || (close != nullptr && *close != '"')) return false;
  } else {
    close = find_closing_quote(begin, cursor.end);
  }
  if (close == nullptr) return false;
  cursor.token = {begin, static_cast<std::size_t>(close - begin)};
  cursor.at = close + 1;
  if (slot.name_size > 0) {
    *cursor.out++ = static_cast<char>(ValueTag::kString);
    cursor.out = put_bytes(put_small_varint(cursor.out, cursor.token.size()), cursor.token);
  }
  return true;
}

inline bool LearnedShapes::take_number(const Slot& slot, Cursor& cursor) {
  SmallDecimal number;
  const char* const behind = take_small_decimal(cursor.at, cursor.end, number);
  if (behind == nullptr) return false;
  cursor.token = {cursor.at, static_cast<std::size_t>(behind - cursor.at)};
  cursor.at = behind;
  if (slot.use == Use::kId && (number.negative || number.fraction_digits > 0)) return false;
  if (slot.use == Use::kTime) {
    const auto time = model::time_of_number(number.coefficient(), number.exponent(), mapping_.time_unit);
    if (!time) return false;
    time_.set(*time);
  }
  if (slot.name_size > 0) cursor.out = put_decimal(cursor.out, number);
  return true;
}

/// true, false or null.
inline bool LearnedShapes::take_word(const Slot& slot, Cursor& cursor) {
  const std::string_view left(cursor.at, static_cast<std::size_t>(cursor.end - cursor.at));
  ValueTag tag = ValueTag::kNull;
  if (left.starts_with("true")) {
    tag = ValueTag::kTrue;
  } else if (left.starts_with("false")) {
    tag = ValueTag::kFalse;
  } else if (!left.starts_with("null")) {
    return false;
  }
  cursor.token = left.substr(0, tag == ValueTag::kFalse ? 5 : 4);
  cursor.at += cursor.token.size();
  if (slot.name_size > 0) *cursor.out++ = static_cast<char>(tag);
  return slot.use == Use::kNone;
}

inline bool LearnedShapes::take_value(const Slot& slot, Cursor& cursor) {
  if (*cursor.at == '"') return take_text(slot, cursor);
  return is_digit_or_minus(*cursor.at) ? take_number(slot, cursor) : take_word(slot, cursor);
}

bool LearnedShapes::read(Shape& shape, std::string_view json, ItemParts& parts) {
  Cursor cursor{json.data(), json.data() + json.size(), shape.attributes.data(), {}};
  const auto left = [&cursor] { return static_cast<std::size_t>(cursor.end - cursor.at); };
  const char* const literals = shape.literals.data();
  parts.id = {};
  for (const Slot& slot : shape.slots) {
    // One byte more than the literal: the first of the value.
    if (left() <= slot.literal_size) return false;
    if (!equal_bytes(cursor.at, literals + slot.literal_begin, slot.literal_size)) return false;
    cursor.at += slot.literal_size;
    cursor.out = put_bytes(cursor.out, shape.names.data() + slot.name_begin, slot.name_size);
    if (!take_value(slot, cursor)) return false;
    if (slot.use == Use::kId) parts.id = cursor.token;
    if (slot.tells_meta && (cursor.token == mapping_.meta_equals) != (shape.plan != &mapping_.reading)) return false;
  }
  const std::size_t last_size = shape.literals.size() - 1 - shape.last_literal_begin;
  if (left() != last_size || !equal_bytes(cursor.at, literals + shape.last_literal_begin, last_size)) return false;
  parts.plan = shape.plan;
  parts.time = time_.canonical();
  parts.names = shape.name_mask;
  parts.attributes = {shape.attributes.data(), static_cast<std::size_t>(cursor.out - shape.attributes.data())};
  return !parts.id.empty() && keys_fit(parts);
}

void LearnedShapes::learn(std::string_view json, const ItemPlan& plan) {
  if (++looks_ > kEagerLooks && looks_ % kLookInterval != 0) return;
  if (json.size() > kShapeRecordSizeBytesMax || may_be_too_large(plan, kShapeRecordSizeBytesMax)) return;
  Outline outline(json, plan, mapping_);
  if (!outline.draw() || !sighted_often(outline, plan)) return;
  Shape shape = make_shape(std::move(outline), plan);
  looks_ = 0;
  if (shapes_.size() < kShapesMax) {
    shapes_.push_back(std::move(shape));
  } else {
    shapes_[next_replaced_] = std::move(shape);
    next_replaced_ = (next_replaced_ + 1) % kShapesMax;
  }
}

bool LearnedShapes::sighted_often(const Outline& outline, const ItemPlan& plan) {
  for (Candidate& candidate : candidates_) {
    if (candidate.plan == &plan && candidate.literals == outline.literals) {
      // Counted to the end once: a record of a known shape comes here only for something odd in its values.
      return candidate.sightings < kShapeSightings && ++candidate.sightings == kShapeSightings;
    }
  }
  Candidate candidate{&plan, outline.literals, 1};
  if (candidates_.size() < kCandidatesMax) {
    candidates_.push_back(std::move(candidate));
  } else {
    candidates_[next_candidate_replaced_] = std::move(candidate);
    next_candidate_replaced_ = (next_candidate_replaced_ + 1) % kCandidatesMax;
  }
  return false;
}

LearnedShapes::Shape LearnedShapes::make_shape(Outline&& outline, const ItemPlan& plan) {
  Shape shape;
  shape.plan = &plan;
  for (const Outline::Value& value : outline.values) {
    Slot slot;
    slot.literal_begin = value.literal_begin;
    slot.literal_size = value.literal_size;
    slot.name_begin = static_cast<std::uint32_t>(shape.names.size());
    slot.tells_meta = value.tells_meta;
    if (value.node != nullptr && value.node->stored) shape.names += *value.node->stored;
    if (value.own_name) model::append_name(shape.names, *value.own_name, names_);
    slot.name_size = static_cast<std::uint32_t>(shape.names.size()) - slot.name_begin;
    if (slot.name_size > 0) {
      const char* name = shape.names.data() + slot.name_begin;
      shape.name_mask.add(model::take_raw_name(name).id);
    }
    if (value.node != nullptr && value.node->is_id) slot.use = Use::kId;
    if (value.node != nullptr && value.node->is_time) slot.use = Use::kTime;
    shape.slots.push_back(slot);
  }
  shape.literals = std::move(outline.literals);
  shape.last_literal_begin = outline.last_literal_begin;
  shape.attributes.resize(shape.names.size() + shape.slots.size() * kValueRoomBytes + kShapeRecordSizeBytesMax);
  return shape;
}

}  // namespace drover::ingest

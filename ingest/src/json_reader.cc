#include "json_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "drover/model/attribute.h"
#include "drover/model/decimal.h"
#include "drover/model/time.h"
#include "drover/model/value_view.h"

namespace drover::ingest {
namespace {

using model::Bytes;
using model::Decimal;
using simdjson::ondemand::json_type;

constexpr std::size_t kEncodedNamesMax = 4096;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Takes a run of digits off the front; how many there were.
std::size_t take_digits(std::string_view& text) {
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  text.remove_prefix(count);
  return count;
}

/// By RFC 8259, section 6.
bool is_json_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const bool leading_zero = text.starts_with('0');
  const std::size_t digits = take_digits(text);
  if (digits == 0 || (leading_zero && digits > 1)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (take_digits(text) == 0) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (take_digits(text) == 0) return false;
  }
  return text.empty();
}

bool is_json_token(json_type type, std::string_view text) {
  switch (type) {
    case json_type::number:
      return is_json_number(text);
    case json_type::boolean:
      return text == "true" || text == "false";
    case json_type::null:
      return text == "null";
    default:
      return false;
  }
}

bool at_end(simdjson::ondemand::document& document) {
  return document.current_location().error() == simdjson::OUT_OF_BOUNDS;
}

std::size_t varint_size(std::uint64_t value) {
  char buffer[model::kVarintSizeBytesMax];
  return static_cast<std::size_t>(model::put_varint(buffer, value) - buffer);
}

void append_container_head(Bytes& out, model::ValueTag tag, std::size_t count, std::size_t elements_size) {
  out.push_back(static_cast<char>(tag));
  model::append_varint(out, varint_size(count) + elements_size);
  model::append_varint(out, count);
}

std::optional<model::TimeNs> time_of_token(std::string_view token, model::TimeUnit unit) {
  const model::Result<Decimal> number = Decimal::parse(token);
  if (!number.ok() || number->coefficient() > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  const auto magnitude = static_cast<std::int64_t>(number->coefficient());
  return model::time_of_number(number->negative() ? -magnitude : magnitude, number->exponent(), unit);
}

}  // namespace

bool JsonReader::read(std::string_view json, ItemParts& parts) {
  reject_reason_ = RejectReason::kCount;
  id_.clear();
  time_.clear();
  attributes_.clear();
  Document document;
  Object object;
  if (!open(json, document) || !find_plan(document)) return false;
  visited_.assign(plan_->nodes, false);
  if (document.get_object().get(object) != simdjson::SUCCESS) return fail(RejectReason::kNotJson);
  if (!walk_object(object, &plan_->root, plan_->every_field, 0)) return false;
  if (!at_end(document)) return fail(RejectReason::kNotJson);
  check_whole(json, parts);
  return reject_reason_ == RejectReason::kCount;
}

bool JsonReader::open(std::string_view json, Document& document) {
  if (padded_.size() < json.size() + simdjson::SIMDJSON_PADDING)
    padded_.resize(2 * json.size() + simdjson::SIMDJSON_PADDING);
  std::memcpy(padded_.data(), json.data(), json.size());
  std::memset(padded_.data() + json.size(), 0, simdjson::SIMDJSON_PADDING);
  json_type type = json_type::null;
  if (parser_.iterate(padded_.data(), json.size(), padded_.size()).get(document) != simdjson::SUCCESS ||
      document.type().get(type) != simdjson::SUCCESS) {
    return fail(RejectReason::kNotJson);
  }
  return type == json_type::object || refuse_other_than_object(document, type, json);
}

/// Tells other JSON from no JSON; always false.
bool JsonReader::refuse_other_than_object(Document& document, json_type type, std::string_view json) {
  if (type == json_type::array) {
    Array array;
    if (document.get_array().get(array) != simdjson::SUCCESS) return fail(RejectReason::kNotJson);
    if (!walk_array(array, nullptr, 0)) return false;
    return fail(at_end(document) ? RejectReason::kNotAnObject : RejectReason::kNotJson);
  }
  if (type == json_type::string) {
    const bool good = document.get_string().error() == simdjson::SUCCESS && at_end(document);
    return fail(good ? RejectReason::kNotAnObject : RejectReason::kNotJson);
  }
  return fail(is_json_token(type, trim(json)) ? RejectReason::kNotAnObject : RejectReason::kNotJson);
}

bool JsonReader::find_plan(Document& document) {
  plan_ = &mapping_.reading;
  if (!mapping_.meta) return true;
  Object object;
  bool meta = false;
  if (document.get_object().get(object) != simdjson::SUCCESS) return fail(RejectReason::kNotJson);
  if (!tells_meta(object, 0, meta)) return false;
  if (meta) plan_ = &*mapping_.meta;
  document.rewind();
  return true;
}

bool JsonReader::tells_meta(Object object, std::size_t depth, bool& meta) {
  for (auto field : object) {
    std::string_view name;
    Value value;
    if (field.unescaped_key().get(name) != simdjson::SUCCESS) return fail(RejectReason::kNotJson);
    if (name != mapping_.meta_path.names[depth]) continue;
    if (field.value().get(value) != simdjson::SUCCESS) return fail(RejectReason::kNotJson);
    const bool last = depth + 1 == mapping_.meta_path.names.size();
    meta = last && mapping_.meta_equals.empty();
    json_type type = json_type::null;
    if (value.type().get(type) != simdjson::SUCCESS) return fail(RejectReason::kNotJson);
    Object inner;
    Scalar scalar;
    if (type == json_type::object) {
      if (last) return true;
      if (value.get_object().get(inner) != simdjson::SUCCESS) return fail(RejectReason::kNotJson);
      return tells_meta(inner, depth + 1, meta);
    }
    if (meta || !last || type == json_type::array) return true;
    if (!read_scalar(value, scalar)) return false;
    meta = scalar.text == mapping_.meta_equals;
    return true;
  }
  return true;
}

/// `out`: where the value is stored, if it is. `depth`: of nesting, the record's own object being 0.
bool JsonReader::walk(Value value, const PathNode* node, Bytes* out, std::size_t depth) {
  json_type type = json_type::null;
  if (value.type().get(type) != simdjson::SUCCESS) return fail(RejectReason::kNotJson);
  if (type != json_type::object && type != json_type::array) {
    Scalar scalar;
    if (!read_scalar(value, scalar)) return false;
    if (node != nullptr) take_key_field(*node, scalar);
    if (out != nullptr) append_scalar(*out, scalar);
    return true;
  }
  if (depth > model::kItemDepthMax) return fail(RejectReason::kTooDeep);
  if (node != nullptr && node->is_time) refuse(RejectReason::kBadTime);
  if (type == json_type::array) {
    Array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) return fail(RejectReason::kNotJson);
    return walk_array(array, out, depth);
  }
  Object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) return fail(RejectReason::kNotJson);
  return out != nullptr ? walk_map(object, node, *out, depth) : walk_object(object, node, false, depth);
}

/// An object that isn't stored as a whole: the record's own, or one that mapped paths lead through or past.
bool JsonReader::walk_object(Object object, const PathNode* node, bool every_field, std::size_t depth) {
  if (every_field) own_names_.clear();
  for (auto field : object) {
    std::string_view name;
    Value value;
    if (field.unescaped_key().get(name) != simdjson::SUCCESS || field.value().get(value) != simdjson::SUCCESS) {
      return fail(RejectReason::kNotJson);
    }
    const PathNode* child = node != nullptr ? node->find(name) : nullptr;
    visit(child);
    Bytes* out = nullptr;
    if (child != nullptr && child->stored) {
      attributes_ += *child->stored;
      out = &attributes_;
    } else if (every_field && (child == nullptr || !child->left_out)) {
      own_names_.push_back(name);
      append_name(attributes_, name);
      out = &attributes_;
    }
    if (!walk(value, child, out, depth + 1)) return false;
  }
  if (!every_field) return true;
  std::sort(own_names_.begin(), own_names_.end());
  if (std::adjacent_find(own_names_.begin(), own_names_.end()) != own_names_.end())
    refuse(RejectReason::kDuplicateName);
  return true;
}

bool JsonReader::walk_map(Object object, const PathNode* node, Bytes& out, std::size_t depth) {
  struct Entry {
    std::string_view name;
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  std::vector<Entry> entries;
  Bytes& elements = levels_[depth];
  elements.clear();
  for (auto field : object) {
    Entry entry;
    Value value;
    if (field.unescaped_key().get(entry.name) != simdjson::SUCCESS || field.value().get(value) != simdjson::SUCCESS) {
      return fail(RejectReason::kNotJson);
    }
    const PathNode* child = node != nullptr ? node->find(entry.name) : nullptr;
    visit(child);
    const bool left_out = child != nullptr && child->left_out;
    entry.begin = elements.size();
    if (!left_out) append_name(elements, entry.name);
    if (!walk(value, child, left_out ? nullptr : &elements, depth + 1)) return false;
    entry.end = elements.size();
    if (!left_out) entries.push_back(entry);
  }
  const auto by_name = [](const Entry& a, const Entry& b) { return a.name < b.name; };
  std::sort(entries.begin(), entries.end(), by_name);
  const auto same_name = [](const Entry& a, const Entry& b) { return a.name == b.name; };
  if (std::adjacent_find(entries.begin(), entries.end(), same_name) != entries.end()) {
    refuse(RejectReason::kDuplicateName);
  }
  append_container_head(out, model::ValueTag::kMap, entries.size(), elements.size());
  for (const Entry& entry : entries) out.append(elements, entry.begin, entry.end - entry.begin);
  return true;
}

bool JsonReader::walk_array(Array array, Bytes* out, std::size_t depth) {
  Bytes* const elements = out != nullptr ? &levels_[depth] : nullptr;
  if (elements != nullptr) elements->clear();
  std::size_t count = 0;
  for (auto element : array) {
    Value value;
    if (element.get(value) != simdjson::SUCCESS) return fail(RejectReason::kNotJson);
    if (!walk(value, nullptr, elements, depth + 1)) return false;
    ++count;
  }
  if (out == nullptr) return true;
  append_container_head(*out, model::ValueTag::kList, count, elements->size());
  *out += *elements;
  return true;
}

bool JsonReader::read_scalar(Value& value, Scalar& scalar) {
  if (value.type().get(scalar.type) != simdjson::SUCCESS) return fail(RejectReason::kNotJson);
  if (scalar.type == json_type::string) {
    return value.get_string().get(scalar.text) == simdjson::SUCCESS || fail(RejectReason::kNotJson);
  }
  scalar.text = trim(value.raw_json_token());
  return is_json_token(scalar.type, scalar.text) || fail(RejectReason::kNotJson);
}

void JsonReader::take_key_field(const PathNode& node, const Scalar& scalar) {
  if (node.is_id) {
    std::string_view digits = scalar.text;
    const bool whole_number = scalar.type == json_type::number && take_digits(digits) > 0 && digits.empty();
    if (whole_number || scalar.type == json_type::string) id_ = scalar.text;
  }
  if (node.is_time) take_time(scalar);
}

void JsonReader::take_time(const Scalar& scalar) {
  if (scalar.type == json_type::null) return;
  std::optional<model::TimeNs> time;
  if (scalar.type == json_type::string) time = model::parse_time(scalar.text);
  if (scalar.type == json_type::number) time = time_of_token(scalar.text, mapping_.time_unit);
  if (!time) return refuse(RejectReason::kBadTime);
  char text[model::kCanonicalTimeSizeBytesMax];
  time_.assign(text, model::format_time(text, *time, mapping_.precision));
}

void JsonReader::append_scalar(Bytes& out, const Scalar& scalar) {
  using model::ValueTag;
  if (scalar.type == json_type::string) return model::append_string_value(out, scalar.text);
  if (scalar.type == json_type::null) return out.push_back(static_cast<char>(ValueTag::kNull));
  if (scalar.type == json_type::boolean) {
    return out.push_back(static_cast<char>(scalar.text == "true" ? ValueTag::kTrue : ValueTag::kFalse));
  }
  const model::Result<Decimal> number = Decimal::parse(scalar.text);
  if (!number.ok()) return refuse(RejectReason::kBadNumber);
  model::append_number_value(out, *number);
}

void JsonReader::append_name(Bytes& out, std::string_view name) {
  if (name.size() > model::kAttributeNameSizeBytesMax) return refuse(RejectReason::kTooLarge);
  if (const auto known = encoded_names_.find(name); known != encoded_names_.end()) {
    out += known->second;
    return;
  }
  const std::size_t begin = out.size();
  model::append_name(out, name, names_);
  if (encoded_names_.size() < kEncodedNamesMax && name.size() <= model::AttributeNames::kInternedNameSizeBytesMax) {
    encoded_names_.emplace(name, out.substr(begin));
  }
}

/// Each mapped field stands in a record once.
void JsonReader::visit(const PathNode* node) {
  if (node == nullptr) return;
  if (visited_[node->index]) refuse(RejectReason::kDuplicateName);
  visited_[node->index] = true;
}

void JsonReader::check_whole(std::string_view json, ItemParts& parts) {
  parts = {plan_, id_, time_, attributes_};
  if (id_.empty()) return refuse(RejectReason::kNoId);
  if (plan_->needs_time && time_.empty()) return refuse(RejectReason::kNoTime);
  if (!keys_fit(parts)) return refuse(RejectReason::kBadKey);
  if (may_be_too_large(*plan_, json.size()) && too_large(parts)) refuse(RejectReason::kTooLarge);
}

bool JsonReader::too_large(const ItemParts& parts) const {
  model::Item item;
  for (model::AttributeReader reader(parts.attributes, names_); reader.next();) {
    item.emplace(reader.attribute().name, reader.attribute().value.to_value(names_));
  }
  const auto key_text = [&parts](const KeyPattern& pattern) {
    return model::AttributeValue::string(pattern.prefix + std::string(parts.field(pattern)) + pattern.suffix);
  };
  item[mapping_.key.partition_key.name] = key_text(parts.plan->partition_key);
  if (mapping_.key.sort_key) item[mapping_.key.sort_key->name] = key_text(parts.plan->sort_key);
  return model::item_size_bytes(item) > model::kItemSizeBytesMax;
}

bool JsonReader::fail(RejectReason reason) {
  reject_reason_ = reason;
  return false;
}

void JsonReader::refuse(RejectReason reason) {
  if (reject_reason_ == RejectReason::kCount) reject_reason_ = reason;
}

}  // namespace drover::ingest

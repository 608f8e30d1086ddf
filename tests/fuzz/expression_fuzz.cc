// Goal: no expression, however broken or nested, crashes, hangs or is read two ways.
// Method: the input is parsed as each kind of expression, with a few constants of different types in reach; what parses
// is
//         evaluated on, projected from and applied to one item of many types. Evaluating twice must agree, and a
//         negation must turn a condition's answer around.
// Run:     clang++ -fsanitize=fuzzer,address with the server, store and model libraries; tests/unit/server runs it on
//          random mutations of real expressions.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "drover/model/attribute.h"
#include "drover/model/check.h"
#include "expression/evaluate.h"
#include "expression/key_condition.h"
#include "expression/parser.h"
#include "expression/projection.h"
#include "expression/update.h"

namespace drover::server::expression {
namespace {

using model::AttributeValue;

AttributeValue list(AttributeValue::List elements) {
  AttributeValue value;
  value.type = model::AttributeType::kList;
  value.list = std::move(elements);
  return value;
}

AttributeValue set(std::vector<std::string> elements) {
  AttributeValue value;
  value.type = model::AttributeType::kStringSet;
  value.bytes_set = std::move(elements);
  return value;
}

AttributeValue map(AttributeValue::Map entries) {
  AttributeValue value;
  value.type = model::AttributeType::kMap;
  value.map = std::move(entries);
  return value;
}

Placeholders make_placeholders() {
  Placeholders placeholders;
  placeholders.values[":s"].value = AttributeValue::string("text");
  placeholders.values[":n"].value = AttributeValue::of_number(model::Decimal(7));
  placeholders.values[":t"].value = AttributeValue::string("S");
  placeholders.values[":l"].value = list({AttributeValue::of_number(model::Decimal(1))});
  placeholders.values[":set"].value = set({"a", "b"});
  placeholders.names["#n"].name = "name";
  return placeholders;
}

model::Item make_item() {
  return {{"a", AttributeValue::string("text and more")},
          {"b", AttributeValue::of_number(model::Decimal(7))},
          {"c", list({AttributeValue::string("x"), map({{"d", AttributeValue::null()}})})},
          {"m", map({{"k", AttributeValue::of_bool(true)}, {"s", set({"a"})}})},
          {"name", AttributeValue::binary("\x01\x02")}};
}

void check_condition(std::string_view text) {
  Placeholders placeholders = make_placeholders();
  const model::Item item = make_item();
  const auto condition = parse_condition(text, "FilterExpression", placeholders);
  if (!condition.ok()) return;
  const bool first = matches(*condition, item);
  DROVER_CHECK(matches(*condition, item) == first, "evaluating has no effects");
  DROVER_CHECK(attributes_of(*condition).size() <= text.size(), "attributes stand in the text");
  Condition negated;
  negated.kind = Condition::Kind::kNot;
  negated.children.push_back(*condition);
  DROVER_CHECK(matches(negated, item) != first, "a negation turns the answer around");

  static const model::KeySchema kKey{{"a", model::KeyType::kString}, model::KeyAttribute{"b", model::KeyType::kNumber}};
  const auto keys = key_conditions(*condition);
  if (keys.ok() && match_key(*keys, kKey).ok()) {
    DROVER_CHECK(keys->size() <= 2, "a key has two parts");
  }
}

void check_projection(std::string_view text) {
  Placeholders placeholders = make_placeholders();
  const auto paths = parse_projection(text, placeholders);
  if (!paths.ok()) return;
  const model::Item item = make_item();
  for (const auto& [name, value] : Projection(*paths).project(item)) {
    DROVER_CHECK(item.find(name) != item.end(), "a projection invents nothing");
  }
}

void check_update(std::string_view text) {
  Placeholders placeholders = make_placeholders();
  const auto update = parse_update(text, placeholders);
  if (!update.ok()) return;
  model::Item once = make_item();
  model::Item again = make_item();
  const bool applied = apply(*update, once).ok();
  DROVER_CHECK(apply(*update, again).ok() == applied, "an update gives the same outcome each time");
  DROVER_CHECK(!applied || once == again, "an update gives the same item each time");
}

}  // namespace
}  // namespace drover::server::expression

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  drover::server::expression::check_condition(text);
  drover::server::expression::check_projection(text);
  drover::server::expression::check_update(text);
  return 0;
}

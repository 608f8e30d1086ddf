#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drover/model/attribute.h"
#include "expression/evaluate.h"
#include "expression/key_condition.h"
#include "expression/parser.h"
#include "expression/projection.h"
#include "expression/reserved_words.h"
#include "expression/update.h"

namespace drover::server::expression {
namespace {

using model::AttributeValue;
using model::Item;

AttributeValue number(std::string_view text) {
  return AttributeValue::of_number(model::Decimal::parse(text).value());
}
AttributeValue string(std::string text) {
  return AttributeValue::string(std::move(text));
}
AttributeValue list(std::vector<AttributeValue> elements) {
  AttributeValue value;
  value.type = model::AttributeType::kList;
  value.list = std::move(elements);
  return value;
}
AttributeValue map(Item entries) {
  AttributeValue value;
  value.type = model::AttributeType::kMap;
  value.map = std::move(entries);
  return value;
}
AttributeValue string_set(std::vector<std::string> elements) {
  AttributeValue value;
  value.type = model::AttributeType::kStringSet;
  value.bytes_set = std::move(elements);
  return value;
}
AttributeValue number_set(std::vector<std::string_view> elements) {
  AttributeValue value;
  value.type = model::AttributeType::kNumberSet;
  for (const std::string_view element : elements) value.number_set.push_back(model::Decimal::parse(element).value());
  return value;
}

// Placeholders that the tests' expressions use: a few constants, and names that are reserved words.
class Given {
 public:
  Given& value(std::string name, AttributeValue value) {
    placeholders.values[std::move(name)].value = std::move(value);
    return *this;
  }
  Given& name(std::string name, std::string attribute) {
    placeholders.names[std::move(name)].name = std::move(attribute);
    return *this;
  }
  Placeholders placeholders;
};

std::string condition_error(std::string_view text, Given given = {}) {
  const auto parsed = parse_condition(text, "ConditionExpression", given.placeholders);
  return parsed.ok() ? "" : parsed.status().message();
}
std::string projection_error(std::string_view text, Given given = {}) {
  const auto parsed = parse_projection(text, given.placeholders);
  return parsed.ok() ? "" : parsed.status().message();
}
std::string update_error(std::string_view text, Given given = {}) {
  const auto parsed = parse_update(text, given.placeholders);
  return parsed.ok() ? "" : parsed.status().message();
}

bool holds(std::string_view text, const Item& item, Given given = {}) {
  const auto parsed = parse_condition(text, "ConditionExpression", given.placeholders);
  EXPECT_TRUE(parsed.ok()) << text << ": " << parsed.status().message();
  return parsed.ok() && matches(*parsed, item);
}

Item updated(std::string_view text, Item item, Given given = {}) {
  const auto parsed = parse_update(text, given.placeholders);
  EXPECT_TRUE(parsed.ok()) << text << ": " << parsed.status().message();
  const model::Status status = apply(*parsed, item);
  EXPECT_TRUE(status.ok()) << text << ": " << status.message();
  return item;
}
std::string apply_error(std::string_view text, Item item, Given given = {}) {
  const auto parsed = parse_update(text, given.placeholders);
  EXPECT_TRUE(parsed.ok()) << text << ": " << parsed.status().message();
  return apply(*parsed, item).message();
}

Given constants() {
  return Given()
      .value(":one", number("1"))
      .value(":two", number("2"))
      .value(":a", string("a"))
      .value(":b", string("b"))
      .value(":list", list({number("1")}))
      .value(":bool", AttributeValue::of_bool(true));
}

// --- conditions

TEST(Condition, AndBindsCloserThanOrAndNotClosest) {
  const Item item{{"x", number("1")}};
  EXPECT_TRUE(holds("x = :one OR x = :two AND x = :two", item, constants()));
  EXPECT_FALSE(holds("(x = :one OR x = :two) AND x = :two", item, constants()));
  EXPECT_TRUE(holds("NOT x = :two AND x = :one", item, constants()));
  EXPECT_FALSE(holds("NOT (x = :two OR x = :one)", item, constants()));
}

TEST(Condition, KeywordsAreCaseInsensitiveAndFunctionsAreNot) {
  const Item item{{"x", number("1")}};
  EXPECT_TRUE(holds("noT x = :two aNd x bEtween :one And :two oR x iN (:two)", item, constants()));
  EXPECT_EQ(condition_error("Attribute_exists(x)"),
            "Invalid ConditionExpression: Invalid function name; function: Attribute_exists");
}

TEST(Condition, TwoMissingAttributesAreNeverEqualAndAlwaysUnequal) {
  EXPECT_FALSE(holds("x = y", {}));
  EXPECT_TRUE(holds("x <> y", {}));
  EXPECT_FALSE(holds("x < y", {}));
  EXPECT_FALSE(holds("x >= y", {}));
  EXPECT_FALSE(holds("x BETWEEN y AND z", {}));
  EXPECT_FALSE(holds("x IN (y)", {}));
}

TEST(Condition, ComparingDifferentTypesIsFalse) {
  const Item item{{"x", string("1")}};
  EXPECT_FALSE(holds("x = :one", item, constants()));
  EXPECT_TRUE(holds("x <> :one", item, constants()));
  EXPECT_FALSE(holds("x < :two", item, constants()));
}

TEST(Condition, EqualityIsDeepAndByValue) {
  const Item item{{"m", map({{"l", list({number("1.0"), string_set({"a", "b"})})}})}, {"n", AttributeValue::null()}};
  Given same;
  same.value(":m", map({{"l", list({number("1"), string_set({"a", "b"})})}})).value(":n", AttributeValue::null());
  EXPECT_TRUE(holds("m = :m AND n = :n", item, std::move(same)));
  EXPECT_FALSE(holds("m = :m", item, Given().value(":m", map({{"l", list({number("1")})}}))));
}

TEST(Condition, StringsAreComparedByUnsignedBytes) {
  EXPECT_TRUE(holds("x < :z", {{"x", string("\x7f")}}, Given().value(":z", string("\xc3\xa9"))));
}

TEST(Condition, FunctionsLookAtTheTypesTheyAreFor) {
  const Item item{
      {"s", string("abc")},           {"b", AttributeValue::binary("abc")},    {"ss", string_set({"a", "bc"})},
      {"ns", number_set({"1", "2"})}, {"l", list({number("1"), string("a")})}, {"n", number("12")}};
  EXPECT_TRUE(holds("contains(s, :x)", item, Given().value(":x", string("bc"))));
  EXPECT_TRUE(holds("contains(ss, :x)", item, Given().value(":x", string("bc"))));
  EXPECT_FALSE(holds("contains(ss, :x)", item, Given().value(":x", string("b"))));
  EXPECT_TRUE(holds("contains(ns, :x)", item, Given().value(":x", number("1.0"))));
  EXPECT_TRUE(holds("contains(l, :x)", item, Given().value(":x", string("a"))));
  EXPECT_FALSE(holds("contains(n, :x)", item, Given().value(":x", string("1"))));
  EXPECT_FALSE(holds("contains(b, :x)", item, Given().value(":x", string("a"))));
  EXPECT_TRUE(holds("contains(s, :x)", item, Given().value(":x", string(""))));
  EXPECT_TRUE(holds("begins_with(b, :x)", item, Given().value(":x", AttributeValue::binary("ab"))));
  EXPECT_FALSE(holds("begins_with(s, :x)", item, Given().value(":x", AttributeValue::binary("ab"))));
  EXPECT_TRUE(holds("attribute_type(ss, :x)", item, Given().value(":x", string("SS"))));
  EXPECT_FALSE(holds("attribute_type(absent, :x)", item, Given().value(":x", string("SS"))));
  EXPECT_TRUE(holds("attribute_exists(l[1]) AND attribute_not_exists(l[2]) AND attribute_not_exists(l.a)", item));
}

TEST(Condition, ContainsTakesTimeThatGrowsWithTheTextAlone) {
  Item item;
  item["s"] = string(std::string(400'000, 'a'));
  std::string text = "contains(s, :x)";
  for (int i = 1; i < 100; ++i) text += " OR contains(s, :x)";
  // Where each place of the text is compared with all of the part, this takes a minute.
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(holds(text, item, Given().value(":x", string(std::string(200'000, 'a') + "b"))));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(Condition, SizeOfEverySizedType) {
  const Item item{{"s", string("ab")}, {"l", list({})}, {"m", map({{"a", number("1")}})}, {"n", number("1")}};
  EXPECT_TRUE(holds("size(s) = :two AND size(l) < :one AND size(m) >= :one", item, constants()));
  EXPECT_FALSE(holds("size(n) >= :one", item, constants()));
  EXPECT_FALSE(holds("size(absent) >= :one", item, constants()));
  EXPECT_TRUE(holds("size(absent) <> :one", item, constants()));
}

TEST(Condition, NestedPathsReadMapsAndLists) {
  const Item item{{"a", map({{"b", list({number("0"), map({{"c", number("1")}})})}})}};
  EXPECT_TRUE(holds("a.b[1].c = :one", item, constants()));
  EXPECT_TRUE(holds("a . #b [ 1 ] . c = :one", item, constants().name("#b", "b")));
  EXPECT_FALSE(holds("a.b[1].d = :one", item, constants()));
  EXPECT_FALSE(holds("a[0] = :one", item, constants()));
}

TEST(Condition, OrderingAgainstAConstantThatHasNoneIsAnError) {
  EXPECT_EQ(
      condition_error("x < :list", constants()),
      "Invalid ConditionExpression: Incorrect operand type for operator or function; operator: <, operand type: L");
  EXPECT_NE(condition_error("x BETWEEN :bool AND :one", constants()), "");
  EXPECT_NE(condition_error(":list >= x", constants()), "");
  EXPECT_EQ(condition_error("x = :list", constants()), "");
  EXPECT_EQ(condition_error("size(:list) < :one", constants()), "");
}

TEST(Condition, BetweenWithReversedOrMixedBoundsIsAnError) {
  EXPECT_EQ(
      condition_error("x BETWEEN :two AND :one", constants()),
      "Invalid ConditionExpression: The BETWEEN operator requires upper bound to be greater than or equal to lower "
      "bound; lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}");
  EXPECT_EQ(
      condition_error("x BETWEEN :a AND :one", constants()),
      "Invalid ConditionExpression: The BETWEEN operator requires same data type for lower and upper bounds; lower "
      "bound operand: AttributeValue: {S:a}, upper bound operand: AttributeValue: {N:1}");
  EXPECT_EQ(condition_error("x BETWEEN :one AND :one", constants()), "");
}

TEST(Condition, UndefinedNamesAndValuesAreNamed) {
  EXPECT_EQ(condition_error("x = :nope"),
            "Invalid ConditionExpression: An expression attribute value used in expression is not defined; attribute "
            "value: :nope");
  EXPECT_EQ(condition_error("#nope = :a", constants()),
            "Invalid ConditionExpression: An expression attribute name used in the document path is not defined; "
            "attribute name: #nope");
}

TEST(Condition, ReservedWordsNeedAPlaceholder) {
  EXPECT_EQ(condition_error("Status = :a", constants()),
            "Invalid ConditionExpression: Attribute name is a reserved keyword; reserved keyword: Status");
  EXPECT_EQ(condition_error("a.date = :a", constants()),
            "Invalid ConditionExpression: Attribute name is a reserved keyword; reserved keyword: date");
  EXPECT_EQ(condition_error("#s = :a", constants().name("#s", "Status")), "");
  EXPECT_TRUE(is_reserved_word("aBort"));
  EXPECT_TRUE(is_reserved_word("ZONE"));
  EXPECT_FALSE(is_reserved_word("speedKph"));
  EXPECT_FALSE(is_reserved_word(""));
  EXPECT_FALSE(is_reserved_word(std::string(10'000, 'A')));
}

TEST(Condition, SyntaxErrorsShowTokenAndNeighbours) {
  EXPECT_EQ(condition_error("x != :a", constants()),
            "Invalid ConditionExpression: Syntax error; token: \"!\", near: \"x !=\"");
  EXPECT_EQ(condition_error("x =", constants()),
            "Invalid ConditionExpression: Syntax error; token: \"<EOF>\", near: \"=\"");
  for (const char* text :
       {"x",          "= :a",    "x = :a AND", "x = :a :b",           "x IN ()",    "x IN :a", "x BETWEEN :a",
        "(x = :a",    "x = :a)", "x.[0] = :a", "x[a] = :a",           "x[-1] = :a", "_x = :a", "1x = :a",
        "# = :a",     ": = x",   "x = = :a",   "x = :a OR OR x = :a", "NOT",        "size(x)", "x, y",
        "\"x\" = :a", "x = :a;"}) {
    EXPECT_NE(condition_error(text, constants()), "") << text;
  }
}

TEST(Condition, FunctionsInTheWrongPlaceAreErrors) {
  EXPECT_EQ(
      condition_error("size(x)"),
      "Invalid ConditionExpression: The function is not allowed to be used this way in an expression; function: size");
  EXPECT_EQ(condition_error("attribute_exists(x) = :a", constants()),
            "Invalid ConditionExpression: The function is not allowed to be used this way in an expression; function: "
            "attribute_exists");
  EXPECT_EQ(condition_error("contains(x)"),
            "Invalid ConditionExpression: Incorrect number of operands for operator or function; operator or function: "
            "contains, number of operands: 1");
  EXPECT_EQ(condition_error("attribute_exists(:a)", constants()),
            "Invalid ConditionExpression: Operator or function requires a document path; operator or function: "
            "attribute_exists");
  EXPECT_EQ(condition_error("begins_with(x, :one)", constants()),
            "Invalid ConditionExpression: Incorrect operand type for operator or function; operator or function: "
            "begins_with, operand type: N");
  EXPECT_EQ(condition_error("attribute_type(x, :a)", constants()),
            "Invalid ConditionExpression: Invalid attribute type name found; type: a, valid types: "
            "{B,NULL,SS,BOOL,L,BS,N,NS,S,M}");
  EXPECT_EQ(
      condition_error("x = x"),
      "Invalid ConditionExpression: The first operand must be distinct from the remaining operands for this operator "
      "or function; operator: =, first operand: [x]");
}

TEST(Condition, OneLevelOfParenthesesIsFineAndTwoAreRedundant) {
  EXPECT_EQ(condition_error("(x = :a)", constants()), "");
  EXPECT_EQ(condition_error("((x = :a) AND (y = :b))", constants()), "");
  EXPECT_EQ(condition_error("(x) = (:a)", constants()), "");
  EXPECT_EQ(condition_error("((x = :a))", constants()),
            "Invalid ConditionExpression: The expression has redundant parentheses;");
  EXPECT_EQ(condition_error("x = :a AND ((y = :b))", constants()),
            "Invalid ConditionExpression: The expression has redundant parentheses;");
}

TEST(Condition, EmptyAndOversizedExpressionsAreErrors) {
  EXPECT_EQ(condition_error(""), "Invalid ConditionExpression: The expression can not be empty;");
  EXPECT_EQ(condition_error(" \n"), "Invalid ConditionExpression: The expression can not be empty;");
  EXPECT_EQ(condition_error("x" + std::string(4090, ' ') + "= :a", constants()), "");
  EXPECT_EQ(condition_error("x" + std::string(4091, ' ') + "= :a", constants()), "");
  EXPECT_EQ(
      condition_error("x" + std::string(4092, ' ') + "= :a", constants()),
      "Invalid ConditionExpression: Expression size has exceeded the maximum allowed size; expression size: 4097");
  EXPECT_EQ(projection_error(std::string(4097, 'x')),
            "Invalid ProjectionExpression: Expression size has exceeded the maximum allowed size;");
}

// `count` operators in each of the ways that they can be piled up.
std::vector<std::string> piles(std::size_t count) {
  std::string flat = "a<b";
  std::string nested = "a<b";
  std::string closing;
  for (std::size_t i = 1; i + 1 < count; i += 2) {
    flat += " or a<b";
    nested += " or (a<b";
    closing += ')';
  }
  std::string negated = "a<b";
  for (std::size_t i = 1; i < count; ++i) negated = "not " + negated;
  std::string in_parentheses = "a<b";
  for (std::size_t i = 1; i < count; ++i) in_parentheses = "not (" + in_parentheses + ")";
  return {flat, nested + closing, negated, in_parentheses};
}

TEST(Condition, ThreeHundredOperatorsWorkAndOneMoreDoesNot) {
  for (const std::string& text : piles(299)) EXPECT_EQ(condition_error(text), "") << text;
  std::string three_hundred = "not a<b";
  for (int i = 0; i < 149; ++i) three_hundred += " or a<b";
  EXPECT_EQ(condition_error(three_hundred), "");
  EXPECT_EQ(condition_error("not " + three_hundred),
            "Invalid ConditionExpression: The expression contains too many operators; operator count: 301");
  for (const std::string& text : piles(350)) {
    EXPECT_EQ(condition_error(text),
              "Invalid ConditionExpression: The expression contains too many operators; operator count: 301");
  }
}

TEST(Condition, AnyNestingGivesAnErrorInsteadOfAStackOverflow) {
  const auto repeated = [](std::string_view part, std::size_t size) {
    std::string out;
    while (out.size() + part.size() <= size) out += part;
    return out;
  };
  for (const char* part :
       {"(", "not ", "not(", "size(", "f(", "a<size(", "a=(", "a in(", "a[", "a.", ")", "#", "(a or ", "a and("}) {
    EXPECT_NE(condition_error(repeated(part, 4096)), "") << part;
    EXPECT_NE(update_error("SET a = " + repeated(part, 4000)), "") << part;
    EXPECT_NE(projection_error(repeated(part, 4096)), "") << part;
  }
  EXPECT_NE(condition_error(std::string(2000, '(') + "a<b" + std::string(2000, ')')), "");
  EXPECT_NE(update_error("SET a = " + repeated("list_append(a,", 4000)), "");
}

TEST(Condition, ManyInOperandsAreBounded) {
  Given given = constants();
  std::string operands = ":one";
  for (int i = 1; i < 100; ++i) operands += ",:one";
  EXPECT_TRUE(holds("x IN (" + operands + ")", {{"x", number("1")}}, constants()));
  EXPECT_NE(condition_error("x IN (" + operands + ",:one)", constants()), "");
}

TEST(Condition, AttributesAreListedOnce) {
  Given given = constants();
  const auto parsed =
      parse_condition("b.x = :a AND (contains(a, c) OR NOT size(b) = :one)", "FilterExpression", given.placeholders);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(attributes_of(*parsed), (std::vector<std::string>{"a", "b", "c"}));
}

// --- placeholders

TEST(Placeholders, UnusedOnesAreNamed) {
  Given given = constants();
  given.name("#unused", "x");
  ASSERT_TRUE(parse_condition("x = :one", "ConditionExpression", given.placeholders).ok());
  EXPECT_EQ(given.placeholders.all_used().message(),
            "Value provided in ExpressionAttributeNames unused in expressions: keys: {#unused}");
  given.placeholders.names.clear();
  EXPECT_EQ(given.placeholders.all_used().message(),
            "Value provided in ExpressionAttributeValues unused in expressions: keys: {:a, :b, :bool, :list, :two}");
}

// --- key conditions

struct KeyOutcome {
  std::string error;
  std::vector<KeyCondition> conditions;
};
KeyOutcome key_outcome(std::string_view text, Given& given) {
  static const model::KeySchema kKey{{"pk", model::KeyType::kString},
                                     model::KeyAttribute{"sk", model::KeyType::kString}};
  const auto parsed = parse_condition(text, "KeyConditionExpression", given.placeholders);
  if (!parsed.ok()) return {parsed.status().message(), {}};
  auto conditions = key_conditions(*parsed);
  if (!conditions.ok()) return {conditions.status().message(), {}};
  const auto matched = match_key(*conditions, kKey);
  if (!matched.ok()) return {matched.status().message(), {}};
  return {"", *conditions};
}

TEST(KeyCondition, PartitionKeyByEqualityAndOneConditionOnTheSortKey) {
  for (const char* text :
       {"pk = :a", ":a = pk", "pk = :a AND sk = :b", "sk > :b and pk = :a", "((pk = :a) AND (sk <= :b))",
        "pk = :a AND sk BETWEEN :a AND :b", "pk = :a AND begins_with(sk, :b)"}) {
    Given given = constants();
    EXPECT_EQ(key_outcome(text, given).error, "") << text;
  }
}

TEST(KeyCondition, AConstantOnTheLeftMirrorsTheOperator) {
  Given given = constants();
  const KeyOutcome outcome = key_outcome(":b < sk AND pk = :a", given);
  ASSERT_EQ(outcome.conditions.size(), 2u);
  EXPECT_EQ(outcome.conditions[0].op, KeyCondition::Operator::kGreater);
  EXPECT_EQ(outcome.conditions[0].value->bytes, "b");
}

TEST(KeyCondition, WhatAConditionMayAndAKeyConditionMayNot) {
  const std::pair<const char*, const char*> cases[] = {
      {"pk = :a OR sk = :b", "Invalid operator used in KeyConditionExpression: OR"},
      {"NOT pk = :a", "Invalid operator used in KeyConditionExpression: NOT"},
      {"pk = :a AND sk IN (:b)", "Invalid operator used in KeyConditionExpression: IN"},
      {"pk = :a AND sk <> :b", "Invalid operator used in KeyConditionExpression: <>"},
      {"pk = :a AND contains(sk, :b)", "Invalid operator used in KeyConditionExpression: contains"},
      {"pk = :a AND attribute_exists(sk)", "Invalid operator used in KeyConditionExpression: attribute_exists"},
      {"pk = :a AND size(sk) = :one", "KeyConditionExpressions cannot contain nested operations"},
      {"pk = :a AND sk.x = :b", "KeyConditionExpressions cannot have conditions on nested attributes"},
      {"pk = :a AND pk = :a", "KeyConditionExpressions must only contain one condition per key"},
      {"pk = :a AND sk = pk",
       "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition"},
      {":a = :b", "Invalid condition in KeyConditionExpression: No key attribute specified"},
      {"pk = :a AND begins_with(:b, sk)",
       "Invalid condition in KeyConditionExpression: begins_with operator must have the key attribute as its first "
       "operand"},
      {"pk < :a", "Query key condition not supported"},
      {"sk = :a", "Query condition missed key schema element: pk"},
      {"pk = :a AND third = :b", "Query condition missed key schema element: sk"},
      {"pk = :a AND sk = :b AND third = :a", "Conditions can be of length 1 or 2 only"},
      {"pk = :one", "One or more parameter values were invalid: Condition parameter type does not match schema type"},
  };
  for (const auto& [text, error] : cases) {
    Given given = constants();
    EXPECT_EQ(key_outcome(text, given).error, error) << text;
  }
}

TEST(KeyCondition, ReversedBoundsAreAnError) {
  Given given = constants();
  EXPECT_EQ(key_outcome("pk = :a AND sk BETWEEN :b AND :a", given).error,
            "Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be greater than or equal to "
            "lower bound; lower bound operand: AttributeValue: {S:b}, upper bound operand: AttributeValue: {S:a}");
}

// --- projections

Item projected(std::string_view text, const Item& item) {
  Placeholders placeholders;
  const auto parsed = parse_projection(text, placeholders);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return Projection(*parsed).project(item);
}

TEST(Projection, NestedPathsKeepTheirSurroundings) {
  const Item item{{"a", map({{"b", list({number("0"), number("1"), number("2")})}, {"c", string("x")}})},
                  {"d", string("y")}};
  EXPECT_EQ(projected("a.b[2], a.b[0], d", item),
            (Item{{"a", map({{"b", list({number("0"), number("2")})}})}, {"d", string("y")}}));
  EXPECT_EQ(projected("a", item), (Item{{"a", item.at("a")}}));
}

TEST(Projection, AMissingPathLeavesNothing) {
  const Item item{{"a", map({{"b", number("1")}})}};
  EXPECT_EQ(projected("a.c, x, a.b.c, a.d[0]", item), Item());
}

TEST(Projection, OverlapAndConflictAreErrors) {
  EXPECT_EQ(
      projection_error("a, b, a"),
      "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these "
      "paths; path one: [a], path two: [a]");
  EXPECT_EQ(
      projection_error("a.b[0], x, a.b"),
      "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of these "
      "paths; path one: [a, b, [0]], path two: [a, b]");
  EXPECT_EQ(
      projection_error("a.b.c, a[0]"),
      "Invalid ProjectionExpression: Two document paths conflict with each other; must remove or rewrite one of these "
      "paths; path one: [a, b, c], path two: [a, [0]]");
  EXPECT_EQ(projection_error("a.b, a.c, a.bb, b"), "");
}

TEST(Projection, PathsAreAtMost32StepsLong) {
  std::string path = "a";
  for (int i = 1; i < 32; ++i) path += ".a";
  EXPECT_EQ(projection_error(path), "");
  EXPECT_NE(projection_error(path + ".a"), "");
  EXPECT_NE(projection_error("a[99999999999999999999]"), "");
}

// --- updates

TEST(Update, RightHandSidesReadTheOldItem) {
  EXPECT_EQ(updated("SET a = b, b = a", {{"a", number("1")}, {"b", number("2")}}),
            (Item{{"a", number("2")}, {"b", number("1")}}));
}

TEST(Update, ArithmeticIsExactAndBounded) {
  EXPECT_EQ(updated("SET x = x + :v, y = :v - x", {{"x", number("0.1")}}, Given().value(":v", number("0.2"))),
            (Item{{"x", number("0.3")}, {"y", number("0.1")}}));
  EXPECT_NE(apply_error("SET x = x + :v", {{"x", number("1e50")}}, Given().value(":v", number("1"))), "");
  EXPECT_EQ(apply_error("SET x = x + :v", {{"x", string("1")}}, Given().value(":v", number("1"))),
            "An operand in the update expression has an incorrect data type");
  EXPECT_EQ(apply_error("SET x = y", {}),
            "The provided expression refers to an attribute that does not exist in the item");
}

TEST(Update, IfNotExistsAndListAppend) {
  EXPECT_EQ(updated("SET x = if_not_exists(x, :one) + :one", {}, constants()), (Item{{"x", number("2")}}));
  EXPECT_EQ(updated("SET x = list_append(if_not_exists(x, :list), :list)", {}, constants()),
            (Item{{"x", list({number("1"), number("1")})}}));
  EXPECT_EQ(apply_error("SET x = list_append(x, :list)", {{"x", number("1")}}, constants()),
            "An operand in the update expression has an incorrect data type");
}

TEST(Update, ListIndexesAreTheOriginalOnes) {
  const Item item{{"l", list({number("0"), number("1"), number("2"), number("3")})}};
  EXPECT_EQ(updated("REMOVE l[1], l[0], l[3], l[9]", item), (Item{{"l", list({number("2")})}}));
  EXPECT_EQ(updated("SET l[1] = :a REMOVE l[0]", item, constants()),
            (Item{{"l", list({string("a"), number("2"), number("3")})}}));
  EXPECT_EQ(updated("SET l[9] = :b, l[7] = :a", {{"l", list({})}}, constants()),
            (Item{{"l", list({string("a"), string("b")})}}));
}

TEST(Update, PathsThatLeadNowhereAreErrors) {
  for (const char* text : {"SET m.x.y = :a", "SET x[0] = :a", "SET m[0] = :a", "REMOVE x.y", "REMOVE x[0]"}) {
    Given given = text[0] == 'S' ? constants() : Given();
    EXPECT_EQ(apply_error(text, {{"m", map({})}}, std::move(given)),
              "The document path provided in the update expression is invalid for update")
        << text;
  }
  EXPECT_EQ(updated("SET m.x = :a", {{"m", map({})}}, constants()), (Item{{"m", map({{"x", string("a")}})}}));
}

TEST(Update, AddAndDeleteWorkOnNumbersAndSets) {
  EXPECT_EQ(updated("ADD n :one", {}, constants()), (Item{{"n", number("1")}}));
  EXPECT_EQ(updated("ADD n :one", {{"n", number("1.5")}}, constants()), (Item{{"n", number("2.5")}}));
  EXPECT_EQ(updated("ADD s :s", {{"s", string_set({"b"})}}, Given().value(":s", string_set({"a", "b"}))),
            (Item{{"s", string_set({"a", "b"})}}));
  EXPECT_EQ(updated("DELETE s :s", {{"s", string_set({"a", "b"})}}, Given().value(":s", string_set({"a", "c"}))),
            (Item{{"s", string_set({"b"})}}));
  EXPECT_EQ(updated("DELETE s :s", {{"s", number_set({"1"})}}, Given().value(":s", number_set({"1.0"}))), Item());
  EXPECT_EQ(apply_error("ADD n :one", {{"n", string("1")}}, constants()),
            "An operand in the update expression has an incorrect data type");
  EXPECT_EQ(
      update_error("ADD n :a", constants()),
      "Invalid UpdateExpression: Incorrect operand type for operator or function; operator: ADD, operand type: STRING");
  EXPECT_EQ(
      update_error("DELETE n :one", constants()),
      "Invalid UpdateExpression: Incorrect operand type for operator or function; operator: DELETE, operand type: "
      "NUMBER");
}

TEST(Update, EachSectionOnceAndNoOverlap) {
  EXPECT_EQ(update_error("SET a = :a SET b = :b", constants()),
            "Invalid UpdateExpression: The \"SET\" section can only be used once in an update expression;");
  EXPECT_EQ(update_error("SET a = :a REMOVE a", constants()),
            "Invalid UpdateExpression: Two document paths overlap with each other; must remove or rewrite one of these "
            "paths; path one: [a], path two: [a]");
  EXPECT_EQ(update_error("remove x set a = :a, b = a + :one ADD c :one", constants()), "");
}

TEST(Update, GrammarErrors) {
  for (const char* text : {"",
                           "SET",
                           "SET a",
                           "SET a = ",
                           "SET a = b c",
                           "SET a = :a,",
                           "REMOVE",
                           "REMOVE a b",
                           "ADD a",
                           "ADD a b",
                           "DELETE a = :a",
                           "a = :a",
                           "SET a = :one + :one + :one",
                           "SET :a = b",
                           "SET a = foo(b)",
                           "SET a = if_not_exists(:a, :b)",
                           "SET a = if_not_exists(b)",
                           "SET a = list_append(:one, :list)",
                           "SET a = :a + :one",
                           "UPSERT a = :a"}) {
    EXPECT_NE(update_error(text, constants()), "") << text;
  }
}

TEST(Update, OnlyRemovingDoesNotCreate) {
  Given given = constants();
  given.value(":s", string_set({"a"}));
  EXPECT_TRUE(only_removes(*parse_update("REMOVE a DELETE b :s", given.placeholders)));
  EXPECT_FALSE(only_removes(*parse_update("REMOVE a SET b = :a", given.placeholders)));
}

// Goal: a short expression cannot make an item of gigabytes on its way to being refused.
TEST(Update, NestedAppendsAreRefusedBeforeTheyGrow) {
  const Item item{{"l", list(std::vector<AttributeValue>(100'000))}};
  std::string text = "l";
  for (int i = 0; i < 250; ++i) text = "list_append(l," + text + ")";
  EXPECT_EQ(apply_error("SET x = " + text, item), "Item size to update has exceeded the maximum allowed size");
}

}  // namespace
}  // namespace drover::server::expression

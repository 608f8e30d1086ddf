#include "expression/parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "drover/model/limits.h"
#include "expression/evaluate.h"
#include "expression/lexer.h"
#include "expression/reserved_words.h"

namespace drover::server::expression {
namespace {

using model::AttributeType;
using model::AttributeValue;

// Parentheses may nest as deep as each pair can hold an operator of its own; deeper ones are redundant by necessity.
constexpr std::size_t kNestingMax = kExpressionOperatorsMax + 20;

// Of all that is wrong with an expression DynamoDB names one thing; this is its order of preference.
enum class Rank {
  kSyntax,
  kOperators,
  kParentheses,
  kUnknownFunction,
  kMisusedFunction,
  kReservedWord,
  kSection,
  kUndefined,
  kPathOverlap,
  kOperandCount,
  kNotDistinct,
  kOperandType,
  kNone,
};

std::string_view update_type_name(AttributeType type) {
  switch (type) {
    case AttributeType::kString:
      return "STRING";
    case AttributeType::kNumber:
      return "NUMBER";
    case AttributeType::kBinary:
      return "BINARY";
    case AttributeType::kNull:
      return "NULL";
    case AttributeType::kBool:
      return "BOOLEAN";
    case AttributeType::kList:
      return "LIST";
    case AttributeType::kMap:
      return "MAP";
    default:
      return model::wire_name(type);
  }
}

bool is_set(AttributeType type) {
  return type == AttributeType::kStringSet || type == AttributeType::kNumberSet || type == AttributeType::kBinarySet;
}

std::string operand_type_error(std::string_view function, std::string_view type) {
  return "Incorrect operand type for operator or function; operator or function: " + std::string(function) +
         ", operand type: " + std::string(type);
}

std::string operand_count_error(std::string_view function, std::size_t count) {
  return "Incorrect number of operands for operator or function; operator or function: " + std::string(function) +
         ", number of operands: " + std::to_string(count);
}

std::string misused_function(std::string_view function) {
  return "The function is not allowed to be used this way in an expression; function: " + std::string(function);
}

// A bound of BETWEEN as DynamoDB prints it: {S:abc}.
std::string bound_text(const AttributeValue& value) {
  const std::string text = value.type == AttributeType::kNumber ? value.number.text() : value.bytes;
  return "AttributeValue: {" + std::string(model::wire_name(value.type)) + ':' + text + '}';
}

// Recursive descent over one expression. The first syntax error stops the lexer, so that every loop and every recursion
// runs out at once; any other problem is noted and the parse goes on, since DynamoDB's preference is not the order of
// the text.
class Parser {
 public:
  Parser(std::string_view text, std::string_view parameter, Placeholders& placeholders)
      : lexer_(text), text_(text), parameter_(parameter), placeholders_(placeholders) {}

  model::Result<Condition> condition() {
    return finish([this] {
      Term term = parse_or();
      if (lexer_.current().kind != TokenKind::kEnd) syntax_error();
      return to_condition(std::move(term));
    });
  }

  model::Result<std::vector<Path>> projection() {
    return finish([this] {
      std::vector<Path> paths;
      do {
        paths.push_back(parse_path());
      } while (accept_symbol(","));
      if (lexer_.current().kind != TokenKind::kEnd) syntax_error();
      check_overlap(paths);
      return paths;
    });
  }

  model::Result<Update> update() {
    return finish([this] {
      Update update;
      do {
        parse_section(update);
      } while (lexer_.current().kind != TokenKind::kEnd);
      std::vector<Path> paths;
      for (const UpdateAction& action : update.actions) paths.push_back(action.path);
      check_overlap(paths);
      return update;
    });
  }

 private:
  // What stands between operators of a condition: an operand, a whole condition, or a function, of which only its place
  // shows which of both it is.
  struct Term {
    std::optional<Operand> operand;
    Condition condition;
    std::string_view function;   // the function's name, if the term is a call and nothing else
    bool parenthesized = false;  // (term)
  };

  // --- problems

  template <typename Parse>
  auto finish(Parse parse) -> model::Result<decltype(parse())> {
    if (text_.find_first_not_of(" \t\r\n") == std::string_view::npos)
      return invalid("The expression can not be empty;");
    if (text_.size() > kExpressionSizeBytesMax) {
      const bool names_size = parameter_ == "FilterExpression" || parameter_ == "ConditionExpression";
      return invalid("Expression size has exceeded the maximum allowed size;" +
                     (names_size ? " expression size: " + std::to_string(text_.size()) : ""));
    }
    auto result = parse();
    if (rank_ != Rank::kNone) return invalid(message_);
    return result;
  }

  model::Status invalid(std::string_view problem) const {
    return model::invalid("Invalid " + std::string(parameter_) + ": " + std::string(problem));
  }

  void complain(Rank rank, std::string message) {
    if (abandoned_ || rank >= rank_) return;
    rank_ = rank;
    message_ = std::move(message);
  }

  void abandon(Rank rank, std::string message) {
    complain(rank, std::move(message));
    abandoned_ = true;
    lexer_.stop();
  }

  void syntax_error() { abandon(Rank::kSyntax, lexer_.syntax_error()); }

  void count_operator() {
    if (++operators_ <= kExpressionOperatorsMax) return;
    abandon(Rank::kOperators,
            "The expression contains too many operators; operator count: " + std::to_string(operators_));
  }

  // Goes one level deeper; false, and the parse abandoned, if that is too deep. `function` is empty for parentheses.
  bool nest(std::string_view function) {
    if (++nesting_ <= kNestingMax) return true;
    if (function.empty()) {
      abandon(Rank::kParentheses, "The expression has redundant parentheses;");
    } else {
      abandon(Rank::kMisusedFunction, misused_function(function));
    }
    return false;
  }

  bool accept_symbol(std::string_view symbol) {
    if (!lexer_.is_symbol(symbol)) return false;
    lexer_.advance();
    return true;
  }
  void expect_symbol(std::string_view symbol) {
    if (!accept_symbol(symbol)) syntax_error();
  }
  bool accept_keyword(std::string_view keyword) {
    if (!lexer_.is_keyword(keyword)) return false;
    lexer_.advance();
    return true;
  }

  // --- paths and constants

  Path parse_path() {
    Path path;
    path.steps.emplace_back(parse_name());
    for (;;) {
      if (accept_symbol(".")) {
        path.steps.emplace_back(parse_name());
      } else if (accept_symbol("[")) {
        path.steps.emplace_back(parse_index());
        expect_symbol("]");
      } else {
        break;
      }
    }
    if (path.steps.size() > model::kItemDepthMax) {
      complain(Rank::kOperandType,
               "The document path has too many nesting levels; nesting levels: " + std::to_string(path.steps.size()));
    }
    return path;
  }

  std::string parse_name() {
    const Token token = lexer_.current();
    if (token.kind == TokenKind::kIdentifier) {
      lexer_.advance();
      if (is_reserved_word(token.text)) {
        complain(Rank::kReservedWord,
                 "Attribute name is a reserved keyword; reserved keyword: " + std::string(token.text));
      }
      return std::string(token.text);
    }
    if (token.kind == TokenKind::kName) {
      lexer_.advance();
      const auto found = placeholders_.names.find(token.text);
      if (found != placeholders_.names.end()) {
        found->second.used = true;
        return found->second.name;
      }
      complain(Rank::kUndefined,
               "An expression attribute name used in the document path is not defined; attribute name: " +
                   std::string(token.text));
      return std::string(token.text);
    }
    syntax_error();
    return {};
  }

  std::size_t parse_index() {
    const Token token = lexer_.current();
    if (token.kind != TokenKind::kInteger) {
      syntax_error();
      return 0;
    }
    lexer_.advance();
    std::uint32_t index = 0;
    if (std::from_chars(token.text.data(), token.text.data() + token.text.size(), index).ec != std::errc()) {
      complain(Rank::kOperandType,
               "List index is not within the allowable range; index: [" + std::string(token.text) + "]");
    }
    return index;
  }

  // An undefined constant stays null, and an error is noted.
  const AttributeValue* parse_value() {
    const Token token = lexer_.current();
    if (token.kind != TokenKind::kValue) {
      syntax_error();
      return nullptr;
    }
    lexer_.advance();
    const auto found = placeholders_.values.find(token.text);
    if (found == placeholders_.values.end()) {
      complain(Rank::kUndefined, "An expression attribute value used in expression is not defined; attribute value: " +
                                     std::string(token.text));
      return nullptr;
    }
    found->second.used = true;
    return &found->second.value;
  }

  void check_overlap(const std::vector<Path>& paths) {
    // In their order a path stands directly in front of what it contains, and names in a map in front of indexes at the
    // same place; so it is enough to look at neighbours.
    std::vector<const Path*> sorted;
    sorted.reserve(paths.size());
    for (const Path& path : paths) sorted.push_back(&path);
    std::sort(sorted.begin(), sorted.end(),
              [](const Path* a, const Path* b) { return std::tie(*a, a) < std::tie(*b, b); });
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      const auto [first, second] = std::minmax(sorted[i - 1], sorted[i]);
      const auto& a = first->steps;
      const auto& b = second->steps;
      const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
      const bool overlap = differ.first == a.end() || differ.second == b.end();
      if (!overlap && differ.first->index() == differ.second->index()) continue;
      complain(Rank::kPathOverlap, std::string("Two document paths ") + (overlap ? "overlap" : "conflict") +
                                       " with each other; must remove or rewrite one of these paths; path one: " +
                                       first->text() + ", path two: " + second->text());
      return;
    }
  }

  // --- conditions

  Term parse_or() {
    Term first = parse_and();
    if (!lexer_.is_keyword("OR")) return first;
    Term all;
    all.condition.kind = Condition::Kind::kOr;
    all.condition.children.push_back(to_condition(std::move(first)));
    while (accept_keyword("OR")) {
      count_operator();
      all.condition.children.push_back(to_condition(parse_and()));
    }
    return all;
  }

  Term parse_and() {
    Term first = parse_not();
    if (!lexer_.is_keyword("AND")) return first;
    Term all;
    all.condition.kind = Condition::Kind::kAnd;
    all.condition.children.push_back(to_condition(std::move(first)));
    while (accept_keyword("AND")) {
      count_operator();
      all.condition.children.push_back(to_condition(parse_not()));
    }
    return all;
  }

  Term parse_not() {
    if (!accept_keyword("NOT")) return parse_comparison();
    count_operator();
    Term term;
    term.condition.kind = Condition::Kind::kNot;
    term.condition.children.push_back(to_condition(parse_not()));
    return term;
  }

  Term parse_comparison() {
    Term left = parse_term();
    static constexpr std::pair<std::string_view, Comparator> kComparators[] = {
        {"=", Comparator::kEqual},      {"<>", Comparator::kNotEqual}, {"<", Comparator::kLess},
        {"<=", Comparator::kLessEqual}, {">", Comparator::kGreater},   {">=", Comparator::kGreaterEqual}};
    for (const auto& [symbol, comparator] : kComparators) {
      if (!lexer_.is_symbol(symbol)) continue;
      Term term = begin_condition(Condition::Kind::kCompare, left);
      term.condition.comparator = comparator;
      term.condition.operands.push_back(to_operand(parse_term()));
      check_comparison(term.condition);
      return term;
    }
    if (lexer_.is_keyword("BETWEEN")) {
      Term term = begin_condition(Condition::Kind::kBetween, left);
      term.condition.operands.push_back(to_operand(parse_term()));
      if (!accept_keyword("AND")) syntax_error();
      term.condition.operands.push_back(to_operand(parse_term()));
      check_between(term.condition);
      return term;
    }
    if (lexer_.is_keyword("IN")) {
      Term term = begin_condition(Condition::Kind::kIn, left);
      expect_symbol("(");
      do {
        term.condition.operands.push_back(to_operand(parse_term()));
      } while (accept_symbol(","));
      expect_symbol(")");
      const std::size_t count = term.condition.operands.size() - 1;
      if (count > kInOperandsMax) complain(Rank::kOperandCount, operand_count_error("IN", count));
      return term;
    }
    return left;
  }

  // A comparison whose operator is the current token, with its left side.
  Term begin_condition(Condition::Kind kind, Term& left) {
    count_operator();
    Term term;
    term.condition.kind = kind;
    term.condition.operands.push_back(to_operand(std::move(left)));
    lexer_.advance();
    return term;
  }

  Term parse_term() {
    Term term;
    if (accept_symbol("(")) {
      if (!nest("")) return term;
      term = parse_or();
      --nesting_;
      expect_symbol(")");
      if (term.parenthesized) complain(Rank::kParentheses, "The expression has redundant parentheses;");
      term.parenthesized = true;
      return term;
    }
    if (lexer_.current().kind == TokenKind::kIdentifier && lexer_.followed_by('(')) return parse_function();
    term.operand = parse_operand();
    return term;
  }

  Operand parse_operand() {
    Operand operand;
    if (lexer_.current().kind == TokenKind::kValue) {
      operand.value = parse_value();
    } else {
      operand.path = parse_path();
    }
    return operand;
  }

  Term parse_function() {
    Term term;
    term.function = lexer_.current().text;
    lexer_.advance();
    lexer_.advance();
    if (!nest(term.function)) return term;
    std::vector<Operand> operands;
    if (!lexer_.is_symbol(")")) {
      do {
        operands.push_back(to_operand(parse_term()));
      } while (accept_symbol(","));
    }
    --nesting_;
    expect_symbol(")");

    struct Function {
      std::string_view name;
      Condition::Kind kind;
      std::size_t operands;
    };
    static constexpr Function kFunctions[] = {
        {"attribute_exists", Condition::Kind::kAttributeExists, 1},
        {"attribute_not_exists", Condition::Kind::kAttributeNotExists, 1},
        {"attribute_type", Condition::Kind::kAttributeType, 2},
        {"begins_with", Condition::Kind::kBeginsWith, 2},
        {"contains", Condition::Kind::kContains, 2},
        {"size", Condition::Kind::kCompare, 1},
    };
    const auto* function = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                        [&](const Function& each) { return each.name == term.function; });
    if (function == std::end(kFunctions)) {
      complain(Rank::kUnknownFunction, "Invalid function name; function: " + std::string(term.function));
    } else if (operands.size() != function->operands) {
      complain(Rank::kOperandCount, operand_count_error(term.function, operands.size()));
    } else if (function->name == "size") {
      check_size(operands[0]);
      operands[0].size = true;
      term.operand = std::move(operands[0]);
    } else {
      term.condition.kind = function->kind;
      term.condition.operands = std::move(operands);
      check_function(term.condition, term.function);
    }
    return term;
  }

  Operand to_operand(Term&& term) {
    if (term.operand) return std::move(*term.operand);
    if (!term.function.empty()) {
      complain(Rank::kMisusedFunction, misused_function(term.function));
    } else {
      syntax_error();
    }
    return {};
  }

  Condition to_condition(Term&& term) {
    if (!term.operand) return std::move(term.condition);
    if (!term.function.empty()) {
      complain(Rank::kMisusedFunction, misused_function(term.function));
    } else {
      syntax_error();
    }
    return {};
  }

  // --- what can be known of a condition without an item

  static bool is_constant(const Operand& operand) { return operand.value != nullptr && !operand.size; }

  void check_distinct(const Condition& condition, std::string_view name) {
    const Operand& a = condition.operands[0];
    const Operand& b = condition.operands[1];
    if (a.path.steps.empty() || a.path != b.path || a.size != b.size) return;
    complain(
        Rank::kNotDistinct,
        "The first operand must be distinct from the remaining operands for this operator or function; operator: " +
            std::string(name) + ", first operand: " + a.path.text());
  }

  // Ordering works on strings, numbers and binary only.
  void check_ordered(const Operand& operand, std::string_view name) {
    if (!is_constant(operand) || is_ordered(operand.value->type)) return;
    complain(Rank::kOperandType, "Incorrect operand type for operator or function; operator: " + std::string(name) +
                                     ", operand type: " + std::string(model::wire_name(operand.value->type)));
  }

  void check_comparison(const Condition& condition) {
    const std::string_view name = text(condition.comparator);
    check_distinct(condition, name);
    if (condition.comparator == Comparator::kEqual || condition.comparator == Comparator::kNotEqual) return;
    for (const Operand& operand : condition.operands) check_ordered(operand, name);
  }

  void check_between(const Condition& condition) {
    for (const Operand& operand : condition.operands) check_ordered(operand, "BETWEEN");
    const Operand& lower = condition.operands[1];
    const Operand& upper = condition.operands[2];
    if (!is_constant(lower) || !is_constant(upper)) return;
    std::string_view problem;
    if (lower.value->type != upper.value->type) {
      problem = "same data type for lower and upper bounds";
    } else if (is_ordered(lower.value->type) && compare_ordered(*lower.value, *upper.value) > 0) {
      problem = "upper bound to be greater than or equal to lower bound";
    } else {
      return;
    }
    complain(Rank::kOperandType, "The BETWEEN operator requires " + std::string(problem) + "; lower bound operand: " +
                                     bound_text(*lower.value) + ", upper bound operand: " + bound_text(*upper.value));
  }

  void check_size(const Operand& operand) {
    if (operand.size) {
      complain(Rank::kOperandType, operand_type_error("size", "N"));
    } else if (operand.value != nullptr &&
               (operand.value->type == AttributeType::kNumber || operand.value->type == AttributeType::kBool ||
                operand.value->type == AttributeType::kNull)) {
      complain(Rank::kOperandType, operand_type_error("size", model::wire_name(operand.value->type)));
    }
  }

  void check_function(const Condition& condition, std::string_view name) {
    const Operand& first = condition.operands[0];
    switch (condition.kind) {
      case Condition::Kind::kAttributeExists:
      case Condition::Kind::kAttributeNotExists:
        if (first.path.steps.empty() || first.size) {
          complain(Rank::kOperandType,
                   "Operator or function requires a document path; operator or function: " + std::string(name));
        }
        break;
      case Condition::Kind::kAttributeType:
        check_distinct(condition, name);
        check_attribute_type(condition.operands[1]);
        break;
      case Condition::Kind::kBeginsWith:
        check_distinct(condition, name);
        for (const Operand& operand : condition.operands) {
          if (operand.size) complain(Rank::kOperandType, operand_type_error(name, "N"));
          if (!is_constant(operand) || operand.value->type == AttributeType::kString ||
              operand.value->type == AttributeType::kBinary) {
            continue;
          }
          complain(Rank::kOperandType, operand_type_error(name, model::wire_name(operand.value->type)));
        }
        break;
      default:
        check_distinct(condition, name);
    }
  }

  void check_attribute_type(const Operand& operand) {
    if (!is_constant(operand)) {
      complain(Rank::kOperandType, operand_type_error("attribute_type", "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}"));
    } else if (operand.value->type != AttributeType::kString) {
      complain(Rank::kOperandType, operand_type_error("attribute_type", model::wire_name(operand.value->type)));
    } else {
      static constexpr std::array<std::string_view, 10> kTypes = {"B",  "NULL", "SS", "BOOL", "L",
                                                                  "BS", "N",    "NS", "S",    "M"};
      if (std::find(kTypes.begin(), kTypes.end(), operand.value->bytes) == kTypes.end()) {
        complain(Rank::kOperandType, "Invalid attribute type name found; type: " + operand.value->bytes +
                                         ", valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}");
      }
    }
  }

  // --- updates

  void parse_section(Update& update) {
    static constexpr std::pair<std::string_view, UpdateAction::Kind> kSections[] = {
        {"SET", UpdateAction::Kind::kSet},
        {"REMOVE", UpdateAction::Kind::kRemove},
        {"ADD", UpdateAction::Kind::kAdd},
        {"DELETE", UpdateAction::Kind::kDelete}};
    for (const auto& [keyword, kind] : kSections) {
      if (!accept_keyword(keyword)) continue;
      if (!sections_.insert(kind).second) {
        complain(Rank::kSection,
                 "The \"" + std::string(keyword) + "\" section can only be used once in an update expression;");
      }
      do {
        update.actions.push_back(parse_action(kind, keyword));
      } while (accept_symbol(","));
      return;
    }
    syntax_error();
  }

  UpdateAction parse_action(UpdateAction::Kind kind, std::string_view keyword) {
    UpdateAction action;
    action.kind = kind;
    action.path = parse_path();
    if (kind == UpdateAction::Kind::kSet) {
      expect_symbol("=");
      action.value = parse_set_value();
    } else if (kind != UpdateAction::Kind::kRemove) {
      action.value.value = parse_value();
      check_set_operand(action, keyword);
    }
    return action;
  }

  // ADD takes numbers and sets, DELETE sets.
  void check_set_operand(const UpdateAction& action, std::string_view keyword) {
    const AttributeValue* value = action.value.value;
    if (value == nullptr || is_set(value->type)) return;
    if (action.kind == UpdateAction::Kind::kAdd && value->type == AttributeType::kNumber) return;
    complain(Rank::kOperandType, "Incorrect operand type for operator or function; operator: " + std::string(keyword) +
                                     ", operand type: " + std::string(update_type_name(value->type)));
  }

  UpdateValue parse_set_value() {
    UpdateValue left = parse_set_operand();
    const bool add = lexer_.is_symbol("+");
    if (!add && !lexer_.is_symbol("-")) return left;
    lexer_.advance();
    count_operator();
    UpdateValue value;
    value.kind = add ? UpdateValue::Kind::kAdd : UpdateValue::Kind::kSubtract;
    value.operands.push_back(std::move(left));
    value.operands.push_back(parse_set_operand());
    check_operand_types(value, AttributeType::kNumber, add ? "+" : "-");
    return value;
  }

  UpdateValue parse_set_operand() {
    UpdateValue value;
    if (accept_symbol("(")) {
      if (!nest("")) return value;
      value = parse_set_value();
      --nesting_;
      expect_symbol(")");
    } else if (lexer_.current().kind == TokenKind::kIdentifier && lexer_.followed_by('(')) {
      value = parse_set_function();
    } else if (lexer_.current().kind == TokenKind::kValue) {
      value.value = parse_value();
    } else {
      value.kind = UpdateValue::Kind::kPath;
      value.path = parse_path();
    }
    return value;
  }

  UpdateValue parse_set_function() {
    const std::string_view name = lexer_.current().text;
    lexer_.advance();
    lexer_.advance();
    UpdateValue value;
    if (!nest(name)) return value;
    if (!lexer_.is_symbol(")")) {
      do {
        value.operands.push_back(parse_set_value());
      } while (accept_symbol(","));
    }
    --nesting_;
    expect_symbol(")");

    if (name != "if_not_exists" && name != "list_append") {
      complain(Rank::kUnknownFunction, "Invalid function name; function: " + std::string(name));
    } else if (value.operands.size() != 2) {
      complain(Rank::kOperandCount, operand_count_error(name, value.operands.size()));
    } else if (name == "list_append") {
      value.kind = UpdateValue::Kind::kListAppend;
      check_operand_types(value, AttributeType::kList, name);
    } else {
      value.kind = UpdateValue::Kind::kIfNotExists;
      if (value.operands[0].kind != UpdateValue::Kind::kPath) {
        complain(Rank::kOperandType,
                 "Operator or function requires a document path; operator or function: " + std::string(name));
      }
      value.path = std::move(value.operands[0].path);
      value.operands.erase(value.operands.begin());
    }
    return value;
  }

  void check_operand_types(const UpdateValue& value, AttributeType wanted, std::string_view name) {
    for (const UpdateValue& operand : value.operands) {
      if (operand.kind != UpdateValue::Kind::kConstant || operand.value == nullptr || operand.value->type == wanted) {
        continue;
      }
      complain(Rank::kOperandType, operand_type_error(name, model::wire_name(operand.value->type)));
    }
  }

  Lexer lexer_;
  std::string_view text_;
  std::string_view parameter_;
  Placeholders& placeholders_;
  std::size_t nesting_ = 0;
  std::size_t operators_ = 0;
  std::set<UpdateAction::Kind> sections_;
  Rank rank_ = Rank::kNone;
  std::string message_;
  bool abandoned_ = false;
};

}  // namespace

model::Result<Condition> parse_condition(std::string_view text, std::string_view parameter,
                                         Placeholders& placeholders) {
  return Parser(text, parameter, placeholders).condition();
}

model::Result<std::vector<Path>> parse_projection(std::string_view text, Placeholders& placeholders) {
  return Parser(text, "ProjectionExpression", placeholders).projection();
}

model::Result<Update> parse_update(std::string_view text, Placeholders& placeholders) {
  return Parser(text, "UpdateExpression", placeholders).update();
}

}  // namespace drover::server::expression

#include "expression/lexer.h"

#include <algorithm>

namespace drover::server::expression {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}

}  // namespace

Lexer::Lexer(std::string_view source) : source_(source) {
  current_ = scan(0);
}

Token Lexer::scan(std::size_t from) const {
  while (from < source_.size() && is_space(source_[from])) ++from;
  const std::string_view rest = source_.substr(from);
  if (rest.empty()) return {TokenKind::kEnd, rest};

  const auto run = [rest](std::size_t at, bool (*belongs)(char)) {
    return static_cast<std::size_t>(std::find_if_not(rest.begin() + at, rest.end(), belongs) - rest.begin());
  };
  const char first = rest.front();
  if (is_letter(first)) return {TokenKind::kIdentifier, rest.substr(0, run(1, is_word))};
  if (is_digit(first)) return {TokenKind::kInteger, rest.substr(0, run(1, is_digit))};
  if (first == '#' || first == ':') {
    const std::size_t size = run(1, is_word);
    if (size == 1) return {TokenKind::kUnknown, rest.substr(0, 1)};
    return {first == '#' ? TokenKind::kName : TokenKind::kValue, rest.substr(0, size)};
  }
  if (rest.starts_with("<>") || rest.starts_with("<=") || rest.starts_with(">=")) {
    return {TokenKind::kSymbol, rest.substr(0, 2)};
  }
  const bool symbol = std::string_view("()[].,+-=<>").find(first) != std::string_view::npos;
  return {symbol ? TokenKind::kSymbol : TokenKind::kUnknown, rest.substr(0, 1)};
}

bool Lexer::followed_by(char c) const {
  const auto end = static_cast<std::size_t>(current_.text.data() + current_.text.size() - source_.data());
  return scan(end).text.starts_with(c);
}

void Lexer::advance() {
  previous_ = static_cast<std::size_t>(current_.text.data() - source_.data());
  current_ = scan(previous_ + current_.text.size());
}

void Lexer::stop() {
  previous_ = source_.size();
  current_ = {TokenKind::kEnd, source_.substr(source_.size())};
}

bool Lexer::is_keyword(std::string_view keyword) const {
  return current_.kind == TokenKind::kIdentifier &&
         std::equal(current_.text.begin(), current_.text.end(), keyword.begin(), keyword.end(),
                    [](char c, char upper) { return (c & ~0x20) == upper; });
}

std::string Lexer::syntax_error() const {
  const auto begin = static_cast<std::size_t>(current_.text.data() - source_.data());
  const Token next = scan(begin + current_.text.size());
  const auto end = static_cast<std::size_t>(next.text.data() + next.text.size() - source_.data());
  const std::string token(current_.kind == TokenKind::kEnd ? "<EOF>" : current_.text);
  return "Syntax error; token: \"" + token + "\", near: \"" + std::string(source_.substr(previous_, end - previous_)) +
         "\"";
}

}  // namespace drover::server::expression

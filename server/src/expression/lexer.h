#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace drover::server::expression {

enum class TokenKind {
  kIdentifier,  // speedKph, and every keyword
  kName,        // #name
  kValue,       // :value
  kInteger,
  kSymbol,  // ( ) [ ] . , + - = <> < <= > >=
  kEnd,
  kUnknown,  // a character that no token begins with
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  ///< Part of the source; empty at the end.
};

/// Splits an expression into tokens, one at a time.
class Lexer {
 public:
  explicit Lexer(std::string_view source);

  const Token& current() const { return current_; }
  /// Whether the token behind the current one begins with `c`.
  bool followed_by(char c) const;
  void advance();
  /// Skips everything: the current token is the end from now on.
  void stop();

  bool is_symbol(std::string_view symbol) const {
    return current_.kind == TokenKind::kSymbol && current_.text == symbol;
  }
  /// `keyword` in upper case; the source may write it in any.
  bool is_keyword(std::string_view keyword) const;

  /// `Syntax error; token: "!", near: "c !="`.
  std::string syntax_error() const;

 private:
  Token scan(std::size_t from) const;

  std::string_view source_;
  std::size_t previous_ = 0;  // where the token in front of the current one begins
  Token current_;
};

}  // namespace drover::server::expression

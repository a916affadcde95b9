#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace conversed::flows::expression {

struct Token {
  enum class Kind : std::uint8_t { end, number, string, name, punctuator, backtick, bad };
  Kind kind = Kind::end;
  std::size_t begin = 0;  // bytes in the source
  std::size_t end = 0;
  std::string_view text;  // as written
  double number = 0;
  std::string cooked;  // a string's value, or a bad token's problem
};

// Cuts a source, which must be UTF-8, into tokens on demand. To look ahead, copy the lexer. One
// thread at a time. Borrows the source.
class Lexer {
 public:
  Lexer(std::string_view source, std::size_t at) : source_(source), at_(at) {}

  [[nodiscard]] Token next();

  // A piece of a template literal, read from `at` (after the backtick or a closing brace).
  struct TemplatePiece {
    std::string cooked;
    bool last = false;  // ended by the backtick, not by ${
    std::string problem;
    std::size_t at = 0;  // the byte after the piece, or the place of the problem
  };
  [[nodiscard]] TemplatePiece template_piece(std::size_t at);

 private:
  Token number(std::size_t begin);
  Token prefixed_number(std::size_t begin, int radix);
  Token string(std::size_t begin);
  Token name(std::size_t begin);
  Token punctuator(std::size_t begin);
  // Reads the escape at at_ (a backslash). Returns the problem, or an empty text.
  std::string_view escape(std::string& out);
  std::string_view unicode_escape(std::string& out);
  bool hex(std::size_t digits, char32_t& code);
  Token finish(Token::Kind kind, std::size_t begin);
  Token bad(std::size_t begin, std::string problem);
  void skip_space();
  void skip_name();
  void character(std::string& out);  // takes one character
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  std::string_view source_;
  std::size_t at_;
};

}  // namespace conversed::flows::expression

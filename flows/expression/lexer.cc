#include "flows/expression/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "flows/expression/number.h"
#include "flows/expression/text.h"
#include "store/text/ascii.h"

namespace conversed::flows::expression {
namespace {

using text::is_digit;

// Longest first, because the lexer takes the first one that fits.
constexpr std::array<std::string_view, 58> punctuators{
    ">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "?\?=", "=>",
    "==",   "!=",  "<=",  ">=",  "&&",  "||",  "??",  "?.",  "++",  "--",  "+=",   "-=",
    "*=",   "/=",  "%=",  "&=",  "|=",  "^=",  "**",  "<<",  ">>",  "{",   "}",    "(",
    ")",    "[",   "]",   ".",   ";",   ",",   "<",   ">",   "+",   "-",   "*",    "/",
    "%",    "&",   "|",   "^",   "!",   "~",   "?",   ":",   "=",   "@"};

bool is_line_end(char32_t code) {
  return code == '\n' || code == '\r' || code == 0x2028 || code == 0x2029;
}

}  // namespace

void Lexer::skip_space() {
  while (at_ < source_.size()) {
    const CodePoint point = decode(source_, at_);
    if (!is_space(point.code)) return;
    at_ += point.bytes;
  }
}

Token Lexer::finish(Token::Kind kind, std::size_t begin) {
  Token token;
  token.kind = kind;
  token.begin = begin;
  token.end = at_;
  token.text = source_.substr(begin, at_ - begin);
  return token;
}

Token Lexer::bad(std::size_t begin, std::string problem) {
  Token token = finish(Token::Kind::bad, begin);
  token.cooked = std::move(problem);
  return token;
}

Token Lexer::next() {
  skip_space();
  const std::size_t begin = at_;
  if (at_ >= source_.size()) return finish(Token::Kind::end, begin);
  const char c = peek();
  if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number(begin);
  if (c == '"' || c == '\'') return string(begin);
  if (c == '`') {
    ++at_;
    return finish(Token::Kind::backtick, begin);
  }
  if (begins_name(decode(source_, at_).code)) return name(begin);
  if (source_.substr(at_).starts_with("//") || source_.substr(at_).starts_with("/*")) {
    return bad(begin, "comments are not supported");
  }
  return punctuator(begin);
}

Token Lexer::punctuator(std::size_t begin) {
  const std::string_view rest = source_.substr(at_);
  for (const std::string_view mark : punctuators) {
    if (!rest.starts_with(mark)) continue;
    if (mark == "?." && rest.size() > 2 && is_digit(rest[2])) continue;  // a ? .5 : b
    at_ += mark.size();
    return finish(Token::Kind::punctuator, begin);
  }
  at_ += decode(source_, at_).bytes;
  return bad(begin,
             "unexpected character '" + std::string(source_.substr(begin, at_ - begin)) + "'");
}

void Lexer::skip_name() {
  while (at_ < source_.size() && continues_name(decode(source_, at_).code)) {
    at_ += decode(source_, at_).bytes;
  }
}

Token Lexer::name(std::size_t begin) {
  skip_name();
  return finish(Token::Kind::name, begin);
}

void Lexer::character(std::string& out) {
  const std::size_t bytes = decode(source_, at_).bytes;
  append_text(out, source_.substr(at_, bytes));
  at_ += bytes;
}

Token Lexer::number(std::size_t begin) {
  if (peek() == '0') {
    const char mark = static_cast<char>(peek(1) | 0x20);
    if (mark == 'x') return prefixed_number(begin, 16);
    if (mark == 'o') return prefixed_number(begin, 8);
    if (mark == 'b') return prefixed_number(begin, 2);
    if (is_digit(peek(1)) || peek(1) == '_')
      return bad(begin, "a number can't begin with 0 and a digit");
  }
  // Single underscores may group digits.
  std::string plain;
  while (is_digit(peek()) || peek() == '.' || peek() == '_' || (peek() | 0x20) == 'e' ||
         ((peek() == '+' || peek() == '-') && !plain.empty() && (plain.back() | 0x20) == 'e')) {
    const bool grouped = at_ > begin && is_digit(source_[at_ - 1]) && is_digit(peek(1));
    if (peek() == '_' && !grouped) return bad(begin, "misplaced '_' in a number");
    if (peek() != '_') plain.push_back(peek());
    ++at_;
  }
  std::size_t used = 0;
  const double value = parse_decimal(plain, used);
  // Gives back the characters after the number. The check below refuses "1..x" and "1.e".
  at_ -= plain.size() - used;
  if (at_ < source_.size() &&
      (continues_name(decode(source_, at_).code) || source_[at_ - 1] == '_')) {
    return bad(begin, "a number must not be followed by a name");
  }
  Token token = finish(Token::Kind::number, begin);
  token.number = value;
  return token;
}

Token Lexer::prefixed_number(std::size_t begin, int radix) {
  at_ += 2;
  const std::size_t digits = at_;
  skip_name();
  std::string plain;
  for (std::size_t at = digits; at < at_; ++at) {
    if (source_[at] != '_') {
      plain.push_back(source_[at]);
    } else if (at == digits || at + 1 == at_ || source_[at - 1] == '_') {
      return bad(begin, "misplaced '_' in a number");
    }
  }
  std::size_t used = 0;
  const double value = parse_digits(plain, radix, used);
  if (used == 0 || used != plain.size()) return bad(begin, "not a number");
  Token token = finish(Token::Kind::number, begin);
  token.number = value;
  return token;
}

Token Lexer::string(std::size_t begin) {
  const char quote = peek();
  ++at_;
  std::string value;
  while (true) {
    if (at_ >= source_.size() || peek() == '\n' || peek() == '\r') {
      return bad(begin, "a string that is not closed");
    }
    if (peek() == quote) break;
    if (peek() != '\\') {
      character(value);
      continue;
    }
    const std::size_t escape_at = at_;
    if (const std::string_view problem = escape(value); !problem.empty()) {
      return bad(escape_at, std::string(problem));
    }
  }
  ++at_;
  Token token = finish(Token::Kind::string, begin);
  token.cooked = std::move(value);
  return token;
}

std::string_view Lexer::escape(std::string& out) {
  ++at_;
  const CodePoint point = decode(source_, at_);
  if (point.bytes == 0) return "a backslash with nothing behind it";
  at_ += point.bytes;
  constexpr std::string_view plain = "btnvfr0";
  constexpr std::string_view meaning("\b\t\n\v\f\r\0", 7);
  if (point.code == '0' && is_digit(peek())) return "octal escapes are not supported";
  if (point.code >= '1' && point.code <= '9') return "octal escapes are not supported";
  if (point.code == 'x') {
    char32_t code = 0;
    if (!hex(2, code)) return "\\x takes two hex digits";
    append_code(out, code);
    return {};
  }
  if (point.code == 'u') return unicode_escape(out);
  if (is_line_end(point.code)) {  // the string continues on the next line
    if (point.code == '\r' && peek() == '\n') ++at_;
    return {};
  }
  const std::size_t known =
      point.code < 0x80 ? plain.find(static_cast<char>(point.code)) : std::string_view::npos;
  append_code(out,
              known == std::string_view::npos ? point.code : static_cast<char32_t>(meaning[known]));
  return {};
}

std::string_view Lexer::unicode_escape(std::string& out) {
  constexpr std::string_view problem = "\\u takes four hex digits, or some in braces";
  char32_t code = 0;
  if (peek() == '{') {
    const std::size_t close = source_.find('}', at_);
    if (close == std::string_view::npos || close == at_ + 1 || close - at_ > 9) return problem;
    ++at_;
    if (!hex(close - at_, code) || code > 0x10FFFF) return problem;
    ++at_;
  } else if (!hex(4, code)) {
    return problem;
  }
  std::string encoded;
  append_code(encoded, code);
  append_text(out, encoded);  // two halves of a pair become one character
  return {};
}

bool Lexer::hex(std::size_t digits, char32_t& code) {
  if (digits > source_.size() - at_) return false;
  std::uint32_t value = 0;
  const char* from = source_.data() + at_;
  const auto parsed = std::from_chars(from, from + digits, value, 16);
  if (parsed.ec != std::errc{} || parsed.ptr != from + digits) return false;
  at_ += digits;
  code = value;
  return true;
}

Lexer::TemplatePiece Lexer::template_piece(std::size_t at) {
  at_ = at;
  TemplatePiece piece;
  while (at_ < source_.size()) {
    if (peek() == '`' || (peek() == '$' && peek(1) == '{')) {
      piece.last = peek() == '`';
      at_ += piece.last ? 1 : 2;
      piece.at = at_;
      return piece;
    }
    if (peek() == '\\') {
      piece.at = at_;
      if (const std::string_view problem = escape(piece.cooked); !problem.empty()) {
        piece.problem = problem;
        return piece;
      }
    } else if (peek() == '\r') {  // every line end becomes \n
      piece.cooked.push_back('\n');
      at_ += peek(1) == '\n' ? 2 : 1;
    } else {
      character(piece.cooked);
    }
  }
  piece.problem = "a template literal that is not closed";
  piece.at = at;
  return piece;
}

}  // namespace conversed::flows::expression

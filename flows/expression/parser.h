#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flows/expression/ast.h"
#include "flows/expression/lexer.h"
#include "store/model/result.h"

namespace conversed::flows::expression {

struct Parsed {
  std::shared_ptr<const Program> program;
  std::size_t end = 0;  // the byte after the expression and the white space that follows it
};

// Parses the expression that begins at byte `at`. An error is invalid_argument or, beyond a limit,
// too_large. Its message begins with the byte column in the whole source, from 1: "column 7:
// expected ')'". Takes time linear in the source. Thread-safe. `parse_all` expects the end of the
// source after the expression, `parse_until_braces` expects "}}".
[[nodiscard]] model::Result<Parsed> parse_all(std::string_view source, const Limits& limits);
[[nodiscard]] model::Result<Parsed> parse_until_braces(std::string_view source, std::size_t at,
                                                       const Limits& limits);

// "column 7: text" for byte 6.
[[nodiscard]] std::string at_column(std::size_t byte, std::string_view text);

// A recursive-descent parser of one source. After the first problem the current token is `end`,
// which unwinds every loop. Nodes made after that are never read. One use, one thread.
class Parser {
 public:
  Parser(std::string_view source, std::size_t at, const Limits& limits);

  [[nodiscard]] model::Result<Parsed> parse(std::string_view terminator);

 private:
  // Tokens.
  void advance();
  [[nodiscard]] bool at_mark(std::string_view mark) const {
    return token_.kind == Token::Kind::punctuator && token_.text == mark;
  }
  [[nodiscard]] bool at_word(std::string_view word) const {
    return token_.kind == Token::Kind::name && token_.text == word;
  }
  bool accept(std::string_view mark);
  void expect(std::string_view mark);
  void fail(std::size_t byte, std::string_view problem,
            model::Errc code = model::Errc::invalid_argument);
  void fail_here();  // the current token is not allowed here
  [[nodiscard]] bool failed() const { return failed_; }

  // Grammar, from the loosest to the tightest.
  NodeId expression();
  NodeId binary(int lowest);
  NodeId unary();
  NodeId postfix();
  NodeId access(NodeId object, bool optional);
  NodeId call(NodeId callee, bool optional);
  NodeId primary();
  NodeId identifier();
  NodeId namespace_member(std::string_view space);
  NodeId function_call(const Function* function, std::string_view name, std::size_t byte);
  NodeId array_literal();
  NodeId object_literal();
  NodeId property();
  NodeId template_literal();
  NodeId spread_or_expression();
  void arguments(Node& node, bool takes_callback);

  // Arrow functions.
  [[nodiscard]] bool arrow_ahead() const;
  NodeId arrow();
  NodeId function_reference();
  void parameter(std::vector<NodeId>& bindings, std::uint32_t index);
  NodeId binding(Node node);

  // Nodes.
  NodeId add(Node node);
  NodeId add_list(Node node, const std::vector<NodeId>& list);
  void set_list(Node& node, const std::vector<NodeId>& list);
  NodeId literal(Value value, std::size_t byte);
  NodeId raise(std::size_t byte, std::string text);
  std::string_view keep(std::string text);
  [[nodiscard]] static Node make(NodeKind kind, std::size_t byte);

  class Nesting;

  struct Local {
    std::string name;
    std::uint32_t slot;
  };

  std::string_view source_;
  Lexer lexer_;
  Token token_;
  std::shared_ptr<Program> program_ = std::make_shared<Program>();
  std::vector<std::uint32_t> heights_{0};  // by node
  std::vector<Local> locals_;
  std::size_t depth_ = 0;
  bool failed_ = false;
  model::Error error_;
};

// Counts one level of nesting during its lifetime.
class Parser::Nesting {
 public:
  explicit Nesting(Parser& parser) : parser_(parser) {
    if (++parser_.depth_ > parser_.program_->limits.max_depth) {
      parser_.fail(parser_.token_.begin, "nested too deeply", model::Errc::too_large);
    }
  }
  ~Nesting() { --parser_.depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Parser& parser_;
};

}  // namespace conversed::flows::expression

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flows/expression/ast.h"
#include "flows/expression/lexer.h"
#include "flows/expression/parser.h"

namespace conversed::flows::expression {

// A recursive descent over one source. After the first problem the current token is `end`, which
// unwinds every loop; nodes made from then on are never looked at. One use, one thread.
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
  bool accept(std::string_view mark);
  void expect(std::string_view mark);
  void fail(std::size_t byte, std::string_view problem,
            model::Errc code = model::Errc::invalid_argument);
  void fail_here();  // at a token that fits nowhere
  [[nodiscard]] bool failed() const { return failed_; }

  // Grammar, from the loosest to the tightest.
  NodeId expression();
  NodeId binary(int lowest);
  NodeId join(NodeId left, std::string_view mark, NodeId right, std::size_t byte);
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
  NodeId parameter();
  NodeId binding(std::string_view name, bool keyed);

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
  std::size_t last_end_ = 0;  // of the token before
  std::shared_ptr<Program> program_ = std::make_shared<Program>();
  std::vector<std::uint32_t> heights_{0};  // by node
  std::vector<Local> locals_;
  NodeId parenthesised_ = 0;  // the last node that stood in parentheses
  std::size_t depth_ = 0;
  bool failed_ = false;
  model::Error error_;
};

// Counts a level of nesting for as long as it lives.
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

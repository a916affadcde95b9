// Operators, accesses and calls; what they are made of is in parser_primary.cc.
#include "flows/expression/parser.h"

#include <algorithm>
#include <array>

#include "flows/expression/library.h"
#include "flows/expression/text.h"

namespace conversed::flows::expression {

using model::Errc;

namespace {

bool is_assignment(std::string_view mark) {
  constexpr std::array<std::string_view, 16> marks{
      "=",   "+=",   "-=", "*=", "/=", "%=",  "**=", "<<=",
      ">>=", ">>>=", "&=", "|=", "^=", "&&=", "||=", "?\?="};
  return std::ranges::find(marks, mark) != marks.end();
}

// Whether JavaScript wants parentheses: between ?? and either || or &&.
bool mixes(const Operator& outer, const Node& inner) {
  if (inner.kind != NodeKind::binary || inner.parenthesised) return false;
  if (outer.settled == nullptr || inner.op->settled == nullptr) return false;
  return (outer.mark == "??") != (inner.op->mark == "??");
}

}  // namespace

std::string at_column(std::size_t byte, std::string_view text) {
  return "column " + std::to_string(byte + 1) + ": " + std::string(text);
}

Parser::Parser(std::string_view source, std::size_t at, const Limits& limits)
    : source_(source), lexer_(source, at), last_end_(at) {
  program_->limits = limits;
}

model::Result<Parsed> Parser::parse(std::string_view terminator) {
  advance();
  if (!failed() && token_.kind == Token::Kind::end) fail(token_.begin, "expected an expression");
  program_->root = expression();
  const std::size_t end = token_.begin;
  if (!failed()) {
    const bool ends = terminator.empty() ? token_.kind == Token::Kind::end
                                         : source_.substr(end).starts_with(terminator);
    if (!ends) fail_here();
  }
  if (failed()) return model::fail(std::move(error_));
  return Parsed{std::move(program_), end};
}

void Parser::advance() {
  if (failed()) return;
  last_end_ = token_.end;
  token_ = lexer_.next();
  if (token_.kind == Token::Kind::bad) fail(token_.begin, std::string(token_.cooked));
}

bool Parser::accept(std::string_view mark) {
  if (!at_mark(mark)) return false;
  advance();
  return true;
}

void Parser::expect(std::string_view mark) {
  if (failed() || accept(mark)) return;
  if (token_.kind == Token::Kind::punctuator && is_assignment(token_.text)) return fail_here();
  fail(token_.begin, "expected '" + std::string(mark) + "'");
}

void Parser::fail(std::size_t byte, std::string_view problem, Errc code) {
  if (failed_) return;
  failed_ = true;
  error_ = {code, at_column(byte, problem)};
  token_ = Token{};
  token_.begin = token_.end = byte;
}

void Parser::fail_here() {
  if (token_.kind == Token::Kind::end) return fail(token_.begin, "unexpected end");
  const std::string text(token_.text);
  if (token_.kind == Token::Kind::punctuator) {
    if (text == "=") {
      return fail(token_.begin, "assignment is not supported; '==' or '===' compares");
    }
    if (is_assignment(text) || text == "++" || text == "--") {
      return fail(token_.begin, "'" + text + "' is not supported: an expression changes nothing");
    }
    if (text == "=>") {
      return fail(token_.begin,
                  "an arrow function can only be the first argument of a method such as map");
    }
    if (text == "/" || text == "/=") {
      return fail(token_.begin, "regular expressions are not supported");
    }
  }
  fail(token_.begin, "unexpected '" + text + "'");
}

NodeId Parser::expression() {
  const Nesting nesting(*this);
  if (failed()) return 0;
  if (arrow_ahead()) {
    fail(token_.begin, "an arrow function can only be the first argument of a method such as map");
    return 0;
  }
  const std::size_t byte = token_.begin;
  const NodeId condition = binary(1);
  if (token_.kind == Token::Kind::punctuator && is_assignment(token_.text)) fail_here();
  if (!accept("?")) return condition;
  Node node = make(NodeKind::conditional, byte);
  node.a = condition;
  node.b = expression();
  expect(":");
  node.c = expression();
  return add(node);
}

NodeId Parser::binary(int lowest) {
  const std::size_t byte = token_.begin;
  NodeId left = unary();
  while (!failed()) {
    if (at_word("instanceof")) fail(token_.begin, "'instanceof' is not supported");
    const bool is_operator = token_.kind == Token::Kind::punctuator || at_word("in");
    const Operator* found = is_operator ? find_binary(token_.text) : nullptr;
    if (found == nullptr || found->precedence < lowest) break;
    const bool to_the_right = found->mark == "**";  // binds so; all others bind to the left
    const Node& first = program_->node(left);
    if (to_the_right && first.kind == NodeKind::unary && !first.parenthesised) {
      fail(token_.begin, "parentheses must say what '**' belongs to");
      break;
    }
    advance();
    const Nesting nesting(*this);
    const NodeId right = binary(found->precedence + (to_the_right ? 0 : 1));
    if (failed()) break;
    if (mixes(*found, program_->node(left)) || mixes(*found, program_->node(right))) {
      fail(byte, "'?\?' next to '||' or '&&' needs parentheses");
      break;
    }
    Node node = make(NodeKind::binary, byte);
    node.op = found;
    node.a = left;
    node.b = right;
    left = add(node);
  }
  return left;
}

NodeId Parser::unary() {
  const std::size_t byte = token_.begin;
  const bool is_operator = token_.kind == Token::Kind::punctuator || at_word("typeof");
  const Operator* op = is_operator ? find_unary(token_.text) : nullptr;
  if (op == nullptr) return postfix();
  const Nesting nesting(*this);
  if (failed()) return 0;
  advance();
  Node node = make(NodeKind::unary, byte);
  node.op = op;
  node.a = unary();
  // typeof is the one operator that takes unknown names.
  Node& operand = program_->nodes[node.a];
  if (op->mark == "typeof" && operand.kind == NodeKind::name) operand.optional = true;
  return add(node);
}

NodeId Parser::postfix() {
  const std::size_t byte = token_.begin;
  NodeId node = primary();
  bool chain = false;
  while (!failed()) {
    const bool optional = at_mark("?.");
    chain = chain || optional;
    if (optional) advance();
    if (at_mark("(")) {
      node = call(node, optional);
    } else if (at_mark("[") || at_mark(".") || optional) {
      node = access(node, optional);
    } else {
      break;
    }
  }
  if (token_.kind == Token::Kind::backtick)
    fail(token_.begin, "tagged templates are not supported");
  if (at_mark("++") || at_mark("--")) fail_here();
  if (!chain) return node;
  Node end = make(NodeKind::chain, byte);
  end.a = node;
  return add(end);
}

NodeId Parser::access(NodeId object, bool optional) {
  Node node = make(NodeKind::member, token_.begin);
  node.a = object;
  node.optional = optional;
  if (accept("[")) {
    const NodeId key = expression();
    expect("]");
    // A key that is known is a name: a["b"] is a.b, and can be called like it.
    if (program_->node(key).kind == NodeKind::literal && program_->node(key).value.is_string()) {
      node.text = program_->node(key).value.as_string();
    } else {
      node.kind = NodeKind::index;
      node.b = key;
    }
    return add(node);
  }
  if (!optional) advance();  // the dot
  node.at = static_cast<std::uint32_t>(token_.begin);
  if (token_.kind != Token::Kind::name) {
    fail(token_.begin, "expected a name after '.'");
    return 0;
  }
  node.text = keep(std::string(token_.text));
  advance();
  return add(node);
}

NodeId Parser::call(NodeId callee, bool optional) {
  Node node = program_->node(callee);
  if (node.kind != NodeKind::member) {
    const std::size_t byte = token_.begin;
    arguments(node, false);
    return raise(byte, "this is not a function");
  }
  node.kind = NodeKind::call_method;
  node.optional_call = optional;
  node.method = find_method(node.text);
  arguments(node, node.method != nullptr && node.method->takes == Takes::callback);
  return add(node);
}

NodeId Parser::function_call(const Function* function, std::string_view name, std::size_t byte) {
  Node node = make(NodeKind::call_function, byte);
  node.function = function;
  arguments(node, false);
  if (function == nullptr) return raise(byte, std::string(name) + " is not a function");
  return add(node);
}

void Parser::arguments(Node& node, bool takes_callback) {
  expect("(");
  std::vector<NodeId> list;
  while (!failed() && !at_mark(")")) {
    if (takes_callback && list.empty() && arrow_ahead()) {
      list.push_back(arrow());
    } else if (const NodeId reference =
                   takes_callback && list.empty() ? function_reference() : NodeId{0};
               reference != 0) {
      list.push_back(reference);
    } else {
      list.push_back(spread_or_expression());
    }
    if (!at_mark(")")) expect(",");
  }
  expect(")");
  set_list(node, list);
}

model::Result<Parsed> parse_until_braces(std::string_view source, std::size_t at,
                                         const Limits& limits) {
  return Parser(source, at, limits).parse("}}");
}

model::Result<Parsed> parse_all(std::string_view source, const Limits& limits) {
  if (source.size() > limits.max_source_bytes) {
    return model::fail(Errc::too_large, "an expression can have " +
                                            std::to_string(limits.max_source_bytes) +
                                            " bytes, not " + std::to_string(source.size()));
  }
  if (!is_utf8(source)) return model::fail(Errc::invalid_argument, "the expression is not UTF-8");
  return Parser(source, 0, limits).parse("");
}

}  // namespace conversed::flows::expression

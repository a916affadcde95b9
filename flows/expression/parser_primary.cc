// Literals, names and arrow functions, and how nodes are made.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "flows/expression/library.h"
#include "flows/expression/number.h"
#include "flows/expression/parser.h"

namespace conversed::flows::expression {

using model::Errc;

namespace {

// A chain such as a + b + c nests its nodes without nesting in the source. Both count here, since
// an evaluation takes stack for both.
constexpr std::uint32_t heights_per_depth = 8;

bool is_reserved(std::string_view name) {
  constexpr std::array<std::string_view, 36> names{
      "await",   "break",    "case",  "catch",  "class", "const",      "continue", "debugger",
      "default", "delete",   "do",    "else",   "enum",  "export",     "extends",  "finally",
      "for",     "function", "if",    "import", "in",    "instanceof", "let",      "new",
      "return",  "static",   "super", "switch", "this",  "throw",      "try",      "typeof",
      "var",     "void",     "while", "with"};
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

Node Parser::make(NodeKind kind, std::size_t byte) {
  Node node;
  node.kind = kind;
  node.at = static_cast<std::uint32_t>(byte);
  return node;
}

NodeId Parser::add(Node node) {
  if (failed()) return 0;
  std::uint32_t height = std::max({heights_[node.a], heights_[node.b], heights_[node.c]});
  for (const NodeId id : program_->list(node)) height = std::max(height, heights_[id]);
  if (++height > program_->limits.max_depth * heights_per_depth) {
    fail(node.at, "too long a chain of operators", Errc::too_large);
    return 0;
  }
  heights_.push_back(height);
  program_->nodes.push_back(node);
  return static_cast<NodeId>(program_->nodes.size() - 1);
}

NodeId Parser::add_list(Node node, const std::vector<NodeId>& list) {
  set_list(node, list);
  return add(node);
}

void Parser::set_list(Node& node, const std::vector<NodeId>& list) {
  node.first = static_cast<std::uint32_t>(program_->lists.size());
  node.count = static_cast<std::uint32_t>(list.size());
  program_->lists.insert(program_->lists.end(), list.begin(), list.end());
}

NodeId Parser::literal(Value value, std::size_t byte) {
  Node node = make(NodeKind::literal, byte);
  node.value = value;
  return add(node);
}

NodeId Parser::raise(std::size_t byte, std::string text) {
  Node node = make(NodeKind::raise, byte);
  node.text = keep(std::move(text));
  return add(node);
}

std::string_view Parser::keep(std::string text) {
  return program_->texts.emplace_back(std::move(text));
}

NodeId Parser::primary() {
  const std::size_t byte = token_.begin;
  switch (token_.kind) {
    case Token::Kind::number: {
      const Value value = Value::number(token_.number);
      advance();
      return literal(value, byte);
    }
    case Token::Kind::string: {
      const Value value = Value::string(keep(std::move(token_.cooked)));
      advance();
      return literal(value, byte);
    }
    case Token::Kind::name:
      return identifier();
    case Token::Kind::backtick:
      return template_literal();
    case Token::Kind::punctuator:
      if (at_mark("[")) return array_literal();
      if (at_mark("{")) return object_literal();
      if (accept("(")) {
        const NodeId inner = expression();
        if (at_mark(",")) fail(token_.begin, "the comma operator is not supported");
        expect(")");
        program_->nodes[inner].parenthesised = true;
        return inner;
      }
      break;
    case Token::Kind::end:
    case Token::Kind::bad:
      break;
  }
  fail_here();
  return 0;
}

NodeId Parser::identifier() {
  const std::size_t byte = token_.begin;
  const std::string name(token_.text);
  if (is_reserved(name)) {
    fail(byte, "'" + name + "' is not supported");
    return 0;
  }
  advance();
  // The innermost parameter of a name hides all else of that name.
  const auto local = std::find_if(locals_.rbegin(), locals_.rend(),
                                  [&](const Local& candidate) { return candidate.name == name; });
  if (local != locals_.rend()) {
    Node node = make(NodeKind::local, byte);
    node.slot = local->slot;
    return add(node);
  }
  if (name == "true" || name == "false") return literal(Value::boolean(name == "true"), byte);
  if (name == "null") return literal(Value::null(), byte);
  if (name == "undefined") return literal(Value(), byte);
  if (const auto constant = find_constant("", name)) {
    return literal(Value::number(*constant), byte);
  }
  Node node = make(NodeKind::root, byte);
  node.text = keep(name);
  if (name == "input") node.root = &Scope::input;
  if (name == "context") node.root = &Scope::context;
  if (name == "profile") node.root = &Scope::profile;
  if (node.root != nullptr) return add(node);
  const bool called = at_mark("(");
  if (called) return function_call(find_function("", name), name, byte);
  if (is_namespace(name) && at_mark(".")) return namespace_member(name);
  if (is_namespace(name) || find_function("", name) != nullptr) {
    return raise(byte, name + " is not a value");
  }
  node.kind = NodeKind::name;
  return add(node);
}

NodeId Parser::namespace_member(std::string_view space) {
  advance();
  const std::size_t byte = token_.begin;
  if (token_.kind != Token::Kind::name) {
    fail(byte, "expected a name after '.'");
    return 0;
  }
  const std::string member(token_.text);
  const std::string whole = std::string(space) + "." + member;
  advance();
  if (at_mark("(")) return function_call(find_function(space, member), whole, byte);
  if (const auto constant = find_constant(space, member)) {
    return literal(Value::number(*constant), byte);
  }
  return raise(byte, whole + " is not a value");
}

NodeId Parser::spread_or_expression() {
  if (!at_mark("...")) return expression();
  Node node = make(NodeKind::spread, token_.begin);
  advance();
  node.a = expression();
  return add(node);
}

NodeId Parser::array_literal() {
  const Node node = make(NodeKind::array, token_.begin);
  advance();
  std::vector<NodeId> items;
  while (!failed() && !at_mark("]")) {
    if (at_mark(",")) {
      fail(token_.begin, "an array can't have holes");
      break;
    }
    items.push_back(spread_or_expression());
    if (!at_mark("]")) expect(",");
  }
  expect("]");
  return add_list(node, items);
}

NodeId Parser::object_literal() {
  const Node node = make(NodeKind::object, token_.begin);
  advance();
  std::vector<NodeId> properties;
  while (!failed() && !at_mark("}")) {
    properties.push_back(at_mark("...") ? spread_or_expression() : property());
    if (!at_mark("}")) expect(",");
  }
  expect("}");
  return add_list(node, properties);
}

NodeId Parser::property() {
  Node node = make(NodeKind::property, token_.begin);
  if (token_.kind == Token::Kind::name) {
    const std::string name(token_.text);
    Lexer ahead = lexer_;
    const Token next = ahead.next();
    const bool shorthand =
        next.kind == Token::Kind::punctuator && (next.text == "," || next.text == "}");
    node.text = keep(name);
    if (shorthand) {
      node.b = identifier();
      return add(node);
    }
    advance();
    if (at_mark("(") || token_.kind == Token::Kind::name) {
      fail(token_.begin, "an object can't have functions");
      return 0;
    }
  } else if (token_.kind == Token::Kind::string) {
    node.text = keep(std::move(token_.cooked));
    advance();
  } else if (token_.kind == Token::Kind::number) {
    node.text = keep(number_text(token_.number));
    advance();
  } else if (accept("[")) {
    node.a = expression();
    expect("]");
  } else {
    fail_here();
    return 0;
  }
  expect(":");
  node.b = expression();
  return add(node);
}

NodeId Parser::template_literal() {
  const Nesting nesting(*this);
  const Node node = make(NodeKind::template_text, token_.begin);
  std::vector<NodeId> pieces;
  std::size_t at = token_.end;
  while (!failed()) {
    Lexer::TemplatePiece piece = lexer_.template_piece(at);
    if (!piece.problem.empty()) {
      fail(piece.at, piece.problem);
      break;
    }
    if (!piece.cooked.empty()) {
      pieces.push_back(literal(Value::string(keep(std::move(piece.cooked))), at));
    }
    advance();
    if (piece.last) break;
    pieces.push_back(expression());
    if (!at_mark("}")) {
      fail_here();
      break;
    }
    at = token_.end;
  }
  return add_list(node, pieces);
}

bool Parser::arrow_ahead() const {
  const bool name = token_.kind == Token::Kind::name && !is_reserved(token_.text);
  if (!name && !at_mark("(")) return false;
  Lexer ahead = lexer_;
  Token next = ahead.next();
  if (at_mark("(")) {
    // Parameters are names and patterns of names; at anything else the search is over, so that all
    // searches together read the source at most twice.
    constexpr std::array<std::string_view, 7> marks{",", "[", "]", "{", "}", ":", "..."};
    while (next.kind == Token::Kind::name || (next.kind == Token::Kind::punctuator &&
                                              std::ranges::find(marks, next.text) != marks.end())) {
      next = ahead.next();
    }
    if (next.kind != Token::Kind::punctuator || next.text != ")") return false;
    next = ahead.next();
  }
  return next.kind == Token::Kind::punctuator && next.text == "=>";
}

NodeId Parser::arrow() {
  const Nesting nesting(*this);
  Node node = make(NodeKind::callback, token_.begin);
  const std::size_t outer = locals_.size();
  std::vector<NodeId> bindings;
  if (accept("(")) {
    for (std::uint32_t index = 0; !failed() && !at_mark(")"); ++index) {
      parameter(bindings, index);
      if (!at_mark(")")) expect(",");
    }
    expect(")");
  } else {
    parameter(bindings, 0);
  }
  if (!accept("=>")) fail_here();
  if (at_mark("{")) {
    fail(token_.begin,
         "function bodies are not supported; an object needs parentheses: => ({...})");
  }
  node.a = expression();
  locals_.resize(outer);
  return add_list(node, bindings);
}

NodeId Parser::binding(Node node) {
  if (token_.kind != Token::Kind::name || is_reserved(token_.text)) {
    fail(token_.begin, "expected a parameter's name");
    return 0;
  }
  node.slot = program_->slots++;
  locals_.push_back({std::string(token_.text), node.slot});
  advance();
  return add(node);
}

// A name, or a pattern of names: [key, value] or {name}.
void Parser::parameter(std::vector<NodeId>& bindings, std::uint32_t index) {
  Node node = make(NodeKind::binding, token_.begin);
  node.index = index;
  const bool keyed = at_mark("{");
  if (!keyed && !at_mark("[")) return bindings.push_back(binding(node));
  const std::string_view close = keyed ? "}" : "]";
  advance();
  if (at_mark(close)) fail(node.at, "an empty pattern");
  for (std::uint32_t item = 0; !failed() && !at_mark(close); ++item) {
    if (keyed) node.text = keep(std::string(token_.text));
    if (!keyed) node.item = item;
    bindings.push_back(binding(node));
    if (!at_mark(close)) expect(",");
  }
  expect(close);
}

// A function of the library by its name, as in list.map(Number) or list.map(Math.floor).
NodeId Parser::function_reference() {
  if (token_.kind != Token::Kind::name) return 0;
  const std::string first(token_.text);
  if (std::ranges::find(locals_, first, &Local::name) != locals_.end()) return 0;
  Lexer ahead = lexer_;
  Token next = ahead.next();
  const auto is_mark = [&](std::string_view mark) {
    return next.kind == Token::Kind::punctuator && next.text == mark;
  };
  const Function* function = find_function("", first);
  const bool member = is_mark(".");
  if (member) {
    next = ahead.next();
    if (next.kind != Token::Kind::name) return 0;
    function = find_function(first, next.text);
    next = ahead.next();
  }
  if (function == nullptr || (!is_mark(")") && !is_mark(","))) return 0;
  Node node = make(NodeKind::callback, token_.begin);
  node.function = function;
  for (int tokens = member ? 3 : 1; tokens > 0; --tokens) advance();
  return add(node);
}

}  // namespace conversed::flows::expression

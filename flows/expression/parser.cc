#include "flows/expression/parser.h"

#include <algorithm>
#include <array>

#include "flows/expression/library.h"
#include "flows/expression/number.h"
#include "flows/expression/text.h"

namespace conversed::flows::expression {

using model::Errc;

namespace {

// A chain such as a + b + c nests its nodes but not its source. Both count here, because an
// evaluation needs stack for both.
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

bool is_assignment(std::string_view mark) {
  constexpr std::array<std::string_view, 16> marks{
      "=",   "+=",   "-=", "*=", "/=", "%=",  "**=", "<<=",
      ">>=", ">>>=", "&=", "|=", "^=", "&&=", "||=", "?\?="};
  return std::ranges::find(marks, mark) != marks.end();
}

// Whether JavaScript requires parentheses: between ?? and either || or &&.
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
    : source_(source), lexer_(source, at) {
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
  if (terminator.empty()) program_->source = source_;
  return Parsed{std::move(program_), end};
}

void Parser::advance() {
  if (failed()) return;
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
    if (text == "{" && source_.substr(0, token_.begin).ends_with('{')) {
      return fail(token_.begin, "unexpected '{'; {{ }} stands only in texts");
    }
  }
  if (text == "and") return fail(token_.begin, "unexpected 'and'; write '&&'");
  if (text == "or") return fail(token_.begin, "unexpected 'or'; write '||'");
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
    const bool to_the_right = found->mark == "**";  // all others are left-associative
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
  // Only typeof accepts unknown names.
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
    // A constant key is a name: a["b"] is a.b, and can be called like it.
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
  arguments(node, takes_callback(node.text));
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
  // The innermost parameter of a name hides all others of that name.
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
  if (name == "arguments") node.root = &Scope::arguments;
  if (node.root != nullptr) return add(node);
  if (at_mark("(")) return function_call(find_function("", name), name, byte);
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
    // Parameters are names and patterns of names. The search ends at any other token, so all
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

// A function of the library by its name, such as in list.map(Number) or list.map(Math.floor).
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

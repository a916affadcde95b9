#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flows/expression/expression.h"
#include "flows/expression/value.h"

namespace conversed::flows::expression {

struct Function;  // library.h
struct Operator;

enum class NodeKind : std::uint8_t {
  literal,
  root,           // a name of the scope, such as context: text, and its member
  name,           // not a name of the language: a token's label, or an error unless optional
  local,          // a parameter of an arrow function: slot
  array,          // list of items and spreads
  object,         // list of properties and spreads
  property,       // of an object literal: text or, computed, a = key; b = value
  spread,         // a
  template_text,  // list of literals and expressions, joined
  unary,          // op a
  binary,         // a op b
  conditional,    // a ? b : c
  member,         // a.text
  index,          // a[b]
  call_method,    // a.text(list)
  call_function,  // function(list)
  chain,          // a; a `?.` on null or undefined skips the rest up to here
  callback,       // list of bindings => a; or, without a, a function of the library
  binding,        // sets slot to the argument at `index`, or to its `item`, or to its property text
  raise,          // always fails with text
};

using NodeId = std::uint32_t;  // 0: none

struct Node {
  NodeKind kind = NodeKind::literal;
  bool optional = false;       // ?. before this access, or before this call's method name
  bool optional_call = false;  // ?. before the arguments
  bool parenthesised = false;
  std::uint32_t at = 0;  // byte in the source
  NodeId a = 0;
  NodeId b = 0;
  NodeId c = 0;
  std::uint32_t first = 0;  // the list: lists[first, first + count)
  std::uint32_t count = 0;
  std::uint32_t slot = 0;
  std::uint32_t index = 0;
  std::optional<std::uint32_t> item;
  const nlohmann::json* Scope::*root = nullptr;
  std::string_view text;
  Value value;
  const Operator* op = nullptr;
  const Function* function = nullptr;
};

// A parsed expression. Immutable once made. Never moved, because texts point into it. Arrow
// functions occur only as arguments of the calls that run them and can't be stored. So only nodes
// recurse, and the height of the tree, which the parser bounds, bounds the stack of an evaluation.
struct Program {
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Limits limits;
  std::string source;               // of a whole expression; empty: braces of a template
  std::vector<Node> nodes{Node{}};  // node 0 is none
  std::vector<NodeId> lists;
  std::deque<std::string> texts;
  NodeId root = 0;
  std::uint32_t slots = 0;  // parameters of arrow functions; each has its own slot

  [[nodiscard]] const Node& node(NodeId id) const { return nodes[id]; }
  [[nodiscard]] std::span<const NodeId> list(const Node& node) const {
    return {lists.data() + node.first, node.count};
  }
};

// Adds the facts of a program. `braces`: the text of its braces without blanks, or empty.
void add_facts(const Program& program, const std::string& braces, Facts& facts);

}  // namespace conversed::flows::expression

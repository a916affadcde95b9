#include <algorithm>
#include <optional>
#include <utility>

#include "flows/expression/ast.h"
#include "flows/expression/library.h"
#include "flows/expression/number.h"
#include "store/text/near.h"

namespace conversed::flows::expression {
namespace {

template <typename T>
void keep(std::vector<T>& list, T item) {
  if (list.size() < Facts::most) list.push_back(std::move(item));
}

// `context.cart.total`. Nothing if a part is computed, or if no root begins it.
std::optional<std::string> path_of(const Program& program, const Node& node) {
  if (node.kind == NodeKind::root) return std::string(node.text);
  if (node.kind == NodeKind::chain) return path_of(program, program.node(node.a));
  if (node.kind != NodeKind::member) return std::nullopt;
  auto path = path_of(program, program.node(node.a));
  if (path) path->append(".").append(node.text);
  return path;
}

void add_comparison(const Program& program, const Node& node, Facts& facts) {
  const std::string_view mark = node.op->mark;
  if (mark != "==" && mark != "===" && mark != "!=" && mark != "!==") return;
  const Node& left = program.node(node.a);
  const Node& right = program.node(node.b);
  for (const auto& [one, other] : {std::pair(&left, &right), std::pair(&right, &left)}) {
    if (other->kind != NodeKind::literal || !other->value.is_string()) continue;
    if (auto path = path_of(program, *one)) {
      keep(facts.comparisons, {std::move(*path), std::string(other->value.as_string())});
    }
  }
}

void add_unknown_method(const Node& call, Facts& facts) {
  const auto names = method_names();
  if (call.optional_call || std::ranges::find(names, call.text) != names.end()) return;
  const auto near = text::nearest(call.text, names);
  keep(facts.doubts.back().failures,
       "there is no method '" + std::string(call.text) + "'" +
           (near.empty() ? "" : "; did you mean '" + std::string(near) + "'?"));
}

bool decides(const Node& node) {
  if (node.optional || node.kind == NodeKind::conditional) return true;
  if (node.op == nullptr) return false;
  return node.op->settled != nullptr || node.op->mark == "!" || node.op->mark == "typeof";
}

// The path that the node compares with a constant. Empty: it compares none.
std::string compared_path(const Program& program, const Node& node) {
  Facts facts;
  if (node.kind == NodeKind::binary) add_comparison(program, node, facts);
  return facts.comparisons.empty() ? std::string() : facts.comparisons.front().path;
}

// The source of a text or number that is true. Empty for other nodes.
std::string true_constant(const Node& node) {
  if (node.kind != NodeKind::literal) return {};
  if (node.value.is_string() && !node.value.as_string().empty()) {
    return "'" + std::string(node.value.as_string()) + "'";
  }
  return node.value.is_number() && node.value.as_number() != 0 ? number_text(node.value.as_number())
                                                               : "";
}

// Of a whole condition: `input.text == 'yes' || 'ja'` is always true.
void add_constants(const Program& program, NodeId id, Facts& facts) {
  const Node& node = program.node(id);
  if (node.kind == NodeKind::unary && node.op->mark == "!") {
    return add_constants(program, node.a, facts);
  }
  if (node.kind != NodeKind::binary || (node.op->mark != "||" && node.op->mark != "&&")) return;
  const Node& left = program.node(node.a);
  const Node& right = program.node(node.b);
  for (const auto& [one, other] : {std::pair(&left, &right), std::pair(&right, &left)}) {
    auto source = node.op->mark == "||" ? true_constant(*one) : std::string();
    if (source.empty()) continue;
    // Behind `a == 'x' || b == 'y'` the nearest comparison counts.
    const bool is_chain = other->kind == NodeKind::binary && other->op->mark == "||";
    const Node& compares = is_chain ? program.node(other->b) : *other;
    keep(facts.constants, {std::move(source), compared_path(program, compares)});
  }
  add_constants(program, node.a, facts);
  add_constants(program, node.b, facts);
}

// From the root, because the parser leaves nodes behind that it has replaced. The tree's height is
// bounded (ast.h). `in_member`: the parent reads a member of the node's value.
void add_below(const Program& program, NodeId id, bool in_member, Facts& facts) {
  if (id == 0) return;
  const Node& node = program.node(id);
  const bool is_member = node.kind == NodeKind::member;
  facts.decides = facts.decides || decides(node);
  if (is_member && (!in_member || program.node(node.a).kind == NodeKind::root)) {
    if (auto path = path_of(program, node)) keep(facts.paths, std::move(*path));
  } else if (node.kind == NodeKind::name && !node.optional) {
    keep(facts.doubts.back().words, std::string(node.text));
  } else if (node.kind == NodeKind::binary) {
    add_comparison(program, node, facts);
  } else if (node.kind == NodeKind::call_method) {
    add_unknown_method(node, facts);
  } else if (node.kind == NodeKind::raise) {
    keep(facts.doubts.back().failures, std::string(node.text));
  }
  for (const NodeId child : {node.a, node.b, node.c}) add_below(program, child, is_member, facts);
  for (const NodeId child : program.list(node)) add_below(program, child, false, facts);
}

}  // namespace

void add_facts(const Program& program, const std::string& braces, Facts& facts) {
  if (facts.doubts.size() >= Facts::most) return;
  facts.doubts.push_back({braces, {}, {}});
  add_below(program, program.root, false, facts);
  add_constants(program, program.root, facts);
  const auto& doubt = facts.doubts.back();
  if (doubt.words.empty() && doubt.failures.empty()) facts.doubts.pop_back();
}

}  // namespace conversed::flows::expression

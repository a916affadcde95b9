#include "flows/expression/expression.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "flows/expression/ast.h"
#include "flows/expression/json_text.h"
#include "flows/expression/machine.h"
#include "flows/expression/parser.h"

namespace conversed::flows::expression {

using model::Result;
using nlohmann::json;

void add_members_read(const Program& program, MembersRead& reads) {
  for (const Node& node : program.nodes) {
    if (node.kind != NodeKind::member) continue;
    switch (program.node(node.a).kind) {
      case NodeKind::input:
        reads.emplace_back("input", node.text);
        break;
      case NodeKind::context:
        reads.emplace_back("context", node.text);
        break;
      case NodeKind::profile:
        reads.emplace_back("profile", node.text);
        break;
      default:
        break;
    }
  }
}

MembersRead Expression::members_read() const {
  MembersRead reads;
  add_members_read(*program_, reads);
  return reads;
}

Expression::Expression() : Expression(std::move(*compile("null"))) {}

Result<Expression> Expression::compile(std::string_view source, const Limits& limits) {
  auto parsed = parse_all(source, limits);
  if (!parsed) return model::fail(std::move(parsed.error()));
  return Expression(std::move(parsed->program));
}

Result<std::optional<json>> Expression::evaluate_defined(const Scope& scope) const {
  Budget budget(program_->limits, scope);
  Machine machine(*program_, scope, budget);
  const Value value = machine.run();
  std::optional<json> copy;
  if (!machine.failed() && !value.is_undefined()) copy_to_json(machine, value, copy.emplace());
  if (machine.failed()) return model::fail(machine.take_error());
  return copy;
}

Result<json> Expression::evaluate(const Scope& scope) const {
  auto value = evaluate_defined(scope);
  if (!value) return model::fail(std::move(value.error()));
  return value->has_value() ? std::move(**value) : json();
}

Result<bool> Expression::test(const Scope& scope) const {
  Budget budget(program_->limits, scope);
  Machine machine(*program_, scope, budget);
  const Value value = machine.run();
  if (machine.failed()) return model::fail(machine.take_error());
  return value.truthy();
}

}  // namespace conversed::flows::expression

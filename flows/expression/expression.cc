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

Facts Expression::facts() const {
  Facts facts;
  add_facts(*program_, "", facts);
  return facts;
}

Expression::Expression() : Expression(std::move(*compile("null"))) {}

Result<Expression> Expression::compile(std::string_view source, const Limits& limits) {
  auto parsed = parse_all(source, limits);
  if (!parsed) return model::fail(std::move(parsed.error()));
  return Expression(std::move(parsed->program));
}

Result<json> Expression::evaluate(const Scope& scope) const {
  Budget budget(program_->limits, scope);
  Machine machine(*program_, scope, budget);
  json copy;
  copy_to_json(machine, machine.run(), copy);
  Result<json> result = std::move(copy);
  if (machine.failed()) result = model::fail(machine.take_error());
  if (scope.observer != nullptr) scope.observer->evaluated(program_->source, result);
  return result;
}

Result<bool> Expression::test(const Scope& scope) const {
  Budget budget(program_->limits, scope);
  Machine machine(*program_, scope, budget);
  const Value value = machine.run();
  Result<bool> result = value.truthy();
  if (machine.failed()) result = model::fail(machine.take_error());
  if (scope.observer != nullptr) {
    scope.observer->evaluated(program_->source, result.map([](bool is) { return json(is); }));
  }
  return result;
}

}  // namespace conversed::flows::expression

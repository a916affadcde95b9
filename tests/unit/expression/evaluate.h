#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "flows/expression/expression.h"

namespace conversed::flows::expression {

// The value of an expression as JSON text, "undefined", or "error: " and its message.
inline std::string result_of(std::string_view source, const Scope& scope = {},
                             const Limits& limits = {}) {
  const auto compiled = Expression::compile(source, limits);
  if (!compiled) return "error: " + compiled.error().message;
  const auto value = compiled->evaluate(scope);
  if (!value) return "error: " + value.error().message;
  if (!value->is_null()) return value->dump();
  const auto is_undefined =
      Expression::compile("(" + std::string(source) + ") === undefined", limits);
  if (!is_undefined) return "error: " + is_undefined.error().message;
  const auto answer = is_undefined->evaluate(scope);
  if (!answer) return "error: " + answer.error().message;
  return *answer == true ? "undefined" : "null";
}

struct Case {
  std::string_view source;
  std::string_view expected;  // as `result_of` writes it
};

inline void check(std::initializer_list<Case> cases) {
  for (const Case& one : cases) EXPECT_EQ(result_of(one.source), one.expected) << one.source;
}

// The code of the error with which the expression fails, at compilation or evaluation.
inline model::Errc error_of(std::string_view source, const Scope& scope = {},
                            const Limits& limits = {}) {
  const auto compiled = Expression::compile(source, limits);
  if (!compiled) return compiled.error().code;
  const auto value = compiled->evaluate(scope);
  EXPECT_FALSE(value) << source.substr(0, 100) << " should fail";
  return value ? model::Errc::internal : value.error().code;
}

}  // namespace conversed::flows::expression

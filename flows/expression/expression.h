#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flows/expression/scope.h"
#include "store/model/result.h"

namespace conversed::flows::expression {

struct Program;

// The limits of one evaluation. Exceeding one is an error of code too_large, never a crash.
struct Limits {
  std::size_t max_source_bytes = 16 * 1024;  // of one expression's text
  std::size_t max_depth = 64;           // nesting while parsing; also of texts given to JSON.parse
  std::size_t max_steps = 100'000;      // operations of one evaluation; about 20 ns each
  std::size_t max_bytes = 1024 * 1024;  // of all values made by one evaluation
};

// A root and a name below it, such as `input` and `text`, once for each occurrence.
using MembersRead = std::vector<std::pair<std::string, std::string>>;

// A compiled JavaScript expression; docs/flows/expressions.md defines the language. Evaluating
// always ends, within the limits it was compiled with, and does no I/O. Immutable: threads may
// share one, each with a Scope of its own; copies are cheap.
class Expression {
 public:
  Expression();  // `null`
  // invalid_argument says where and why: "column 7: expected ')'" (bytes, from 1). too_large: past
  // max_source_bytes or max_depth.
  [[nodiscard]] static model::Result<Expression> compile(std::string_view source,
                                                         const Limits& limits = {});

  // A copy of the value; undefined is null. invalid_argument for a JavaScript exception, such as
  // "column 9: can't read 'x' of undefined"; too_large past max_steps or max_bytes.
  [[nodiscard]] model::Result<nlohmann::json> evaluate(const Scope& scope) const;

  // Whether the value counts as true in JavaScript; nothing is copied.
  [[nodiscard]] model::Result<bool> test(const Scope& scope) const;

  // The same for conditions, where an error counts as false.
  [[nodiscard]] bool truthy(const Scope& scope) const { return test(scope).value_or(false); }

  // For tools that check Flows. Computed names are not among them.
  [[nodiscard]] MembersRead members_read() const;

 private:
  explicit Expression(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

  std::shared_ptr<const Program> program_;
};

}  // namespace conversed::flows::expression

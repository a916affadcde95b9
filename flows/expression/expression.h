#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "flows/expression/scope.h"
#include "store/model/result.h"

namespace conversed::flows::expression {

struct Program;

// The limits of one evaluation. Exceeding one is an error with the code too_large.
struct Limits {
  std::size_t max_source_bytes = 16 * 1024;  // of one expression's text
  std::size_t max_depth = 64;           // nesting while parsing; also of texts given to JSON.parse
  std::size_t max_steps = 100'000;      // operations of one evaluation; about 20 ns each
  std::size_t max_bytes = 1024 * 1024;  // of all values made by one evaluation
};

// The contents of an expression or template, for tools that check Flows. One item for each
// occurrence, and at most `most` of each kind.
struct Facts {
  static constexpr std::size_t most = 200;

  // One expression without a value, unless its braces are the label of a Token (`count-1`).
  struct Doubt {
    std::string braces;                 // their text without blanks; empty: the expression has none
    std::vector<std::string> words;     // neither roots nor of the language: maybe labels of Tokens
    std::vector<std::string> failures;  // parts that always fail, as sentences
  };
  struct Comparison {  // `input.source == "user"`; also with ===, != and !==
    std::string path;
    std::string text;
  };
  // Below a root, up to the first computed name. `context.cart.total` adds `context.cart`, too.
  std::vector<std::string> paths;
  std::vector<Doubt> doubts;
  std::vector<Comparison> comparisons;
  // An operand of the outermost `||` or `&&` that is a text or number other than '' and 0.
  struct Constant {
    std::string source;  // `'no'`
    std::string path;    // that the other operand compares with a constant; empty: none
  };
  std::vector<Constant> constants;
  std::vector<std::string> single_braces;  // `context.name` of `{context.name}` in a template
  bool decides = false;  // has ??, ||, &&, ?:, ?., ! or typeof: a missing value may be intended
};

// A compiled JavaScript expression. docs/flows/expressions.md defines the language. An evaluation
// always ends within the limits of its compilation, and does no I/O. Immutable: threads may share
// one, each with its own Scope. Copies are cheap.
class Expression {
 public:
  Expression();  // `null`
  // invalid_argument has the place and the reason: "column 7: expected ')'" (bytes, from 1).
  // too_large: beyond max_source_bytes or max_depth.
  [[nodiscard]] static model::Result<Expression> compile(std::string_view source,
                                                         const Limits& limits = {});

  // A copy of the value. undefined becomes null. invalid_argument for a JavaScript exception, such
  // as "column 9: can't read 'x' of undefined". too_large beyond max_steps or max_bytes.
  [[nodiscard]] model::Result<nlohmann::json> evaluate(const Scope& scope) const;

  // Whether the value is true by JavaScript's rules. Copies nothing.
  [[nodiscard]] model::Result<bool> test(const Scope& scope) const;

  // Like `test`, for conditions: an error counts as false.
  [[nodiscard]] bool truthy(const Scope& scope) const { return test(scope).value_or(false); }

  [[nodiscard]] Facts facts() const;

 private:
  explicit Expression(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

  std::shared_ptr<const Program> program_;
};

}  // namespace conversed::flows::expression

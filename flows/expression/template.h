#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "flows/expression/expression.h"
#include "flows/expression/scope.h"
#include "store/model/result.h"

namespace conversed::flows::expression {

// Whether a project has a token of that label.
using IsLabel = std::function<bool(std::string_view label)>;

// A text with {{ expression }} in it. The exact text between the braces is first looked up as the
// label of a token. A label may have any characters. The limits apply to a whole rendering.
// Immutable: threads may share one, each with its own Scope. Copies are cheap.
class Template {
 public:
  Template();  // an empty text
  // invalid_argument for text that is not UTF-8, for {{ without }}, and for braces that contain
  // neither an expression nor a label. A label is words, as in {{opening hours}}, or a text that
  // `is_label` accepts.
  [[nodiscard]] static model::Result<Template> compile(std::string_view source,
                                                       const Limits& limits = {},
                                                       const IsLabel& is_label = {});

  // The text with the values in place. Objects and arrays are written as JSON. Undefined, null,
  // NaN, an error, and a value beyond a limit are empty.
  [[nodiscard]] std::string render(const Scope& scope) const;

  // The places of values in the rendered text. Texts of tokens are not included.
  struct Span {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  [[nodiscard]] std::string render(const Scope& scope, std::vector<Span>& values) const;

  // If the whole template is one {{ }}, its value with its type (null for undefined and errors).
  // Otherwise the result of render().
  [[nodiscard]] nlohmann::json value(const Scope& scope) const;

  // Whether the template has no {{ }}. Rendering it evaluates nothing.
  [[nodiscard]] bool is_constant() const;

  // The braces of the source in order, for tools.
  struct Braces {
    std::string before;         // the literal text between these braces and the previous ones
    bool reads_values = false;  // values of `input`, `context` or `profile`
    bool url_encoded = false;   // the whole expression is one call of encodeURIComponent
  };
  [[nodiscard]] std::vector<Braces> braces() const;

  [[nodiscard]] Facts facts() const;

 private:
  friend class JsonTemplate;
  struct Body;
  explicit Template(std::shared_ptr<const Body> body) : body_(std::move(body)) {}

  std::shared_ptr<const Body> body_;
};

// A JSON value whose texts, at any depth, are templates. Keys are not. Immutable, like Template.
class JsonTemplate {
 public:
  // Errors are those of Template::compile, after the JSON pointer of the text: "/headers/0: column
  // 3: ...". too_large beyond 64 levels.
  [[nodiscard]] static model::Result<JsonTemplate> compile(const nlohmann::json& source,
                                                           const Limits& limits = {},
                                                           const IsLabel& is_label = {});

  // The value with each text replaced like Template::value. The limits apply to the whole value.
  [[nodiscard]] nlohmann::json value(const Scope& scope) const;

 private:
  struct Tree;
  explicit JsonTemplate(std::shared_ptr<const Tree> tree, const Limits& limits)
      : tree_(std::move(tree)), limits_(limits) {}

  std::shared_ptr<const Tree> tree_;
  Limits limits_;
};

}  // namespace conversed::flows::expression

#include <array>

#include "flows/nodes/calls.h"
#include "store/text/ascii.h"

namespace conversed::flows {
namespace {

constexpr std::size_t max_script_bytes = std::size_t{16} << 10;
constexpr const char* script_values = "values";
// The longest time that a script may take.
constexpr std::chrono::milliseconds longest_run{1'000};

// Whether the word stands in the script, also inside of a comment or a text.
bool script_names(std::string_view script, std::string_view word) {
  const auto is_part = [](char c) {
    return text::is_letter(c) || text::is_digit(c) || c == '_' || c == '$';
  };
  for (auto at = script.find(word); at != std::string_view::npos; at = script.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_part(script[at - 1])) && (end == script.size() || !is_part(script[end]))) {
      return true;
    }
  }
  return false;
}

struct CodeNode final : CallNode {
  // A part of the Turn's scope.
  struct Root {
    const char* name;
    const nlohmann::json* expression::Scope::*value;
  };
  static constexpr std::array<Root, 3> roots{{{"input", &expression::Scope::input},
                                              {"context", &expression::Scope::context},
                                              {"profile", &expression::Scope::profile}}};

  std::string script;
  std::array<bool, roots.size()> reads{};
  std::optional<expression::JsonTemplate> values;
  std::optional<expression::Path> store_in;
  std::chrono::milliseconds timeout{};

  static void read_script(NodeConfig& config, const View& at, std::string& into) {
    into = at.text().value_or("");
    if (into.size() > max_script_bytes) {
      config.problem("script",
                     "a script has at most " + std::to_string(max_script_bytes) + " bytes");
    }
  }

  void check(NodeConfig& config) {
    if (config.has("script") && script.find("return") == std::string::npos) {
      config.problem("script", "the script has no `return`; it returns the value for `storeIn`");
    }
    for (std::size_t i = 0; i < roots.size(); ++i) reads[i] = script_names(script, roots[i].name);
  }

  // The row of the call keeps a copy of the values, so it has only roots that the script names.
  Result<Step> run(Turn& turn) const override {
    model::CodeCall code{.script = script, .values = nlohmann::json::object(), .timeout = timeout};
    for (std::size_t i = 0; i < roots.size(); ++i) {
      if (!reads[i]) continue;
      turn.budget().read(turn.limits().context_bytes);
      if (roots[i].value == &expression::Scope::input) turn.complete_input();
      const auto* value = turn.scope().*roots[i].value;
      if (value != nullptr) code.values[roots[i].name] = *value;
    }
    if (values) code.values[script_values] = values->value(turn.scope());
    return RunCode{std::move(code)};
  }

  Result<Step> on_call_result(Turn& turn, const model::CallResult& result) const override {
    if (!result.error_code.empty()) return failed(turn, result);
    return step_after(turn.assign(*store_in, result.body));
  }
};

constexpr NodeField code_fields[]{
    required<&CodeNode::script, &CodeNode::read_script>("script").as(Form::text),
    optional<&CodeNode::values>("values"), required<&CodeNode::store_in>("storeIn"),
    optional<&CodeNode::timeout>("timeout")
        .within(std::chrono::milliseconds(1), longest_run)
        .by_default(longest_run),
    on_error_field};

}  // namespace

constinit const NodeType code_node{
    .name = "code", .fields = code_fields, .create = create<CodeNode>};

}  // namespace conversed::flows

#pragma once

#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flows/tools/rehearsal.h"

namespace conversed::flows::tools {

// A Node that ran, with what it did.
struct TracedNode {
  struct Evaluation {
    std::string source;
    nlohmann::json value;  // null: undefined, or an error
    std::string error{};
  };
  struct Change {
    std::string path;       // such as `context.cart.total`
    nlohmann::json before;  // null: there was none
    nlohmann::json after;
  };

  std::string flow;
  std::string address;
  std::string type;
  std::string label;  // its text or condition as written; may be empty
  std::vector<Evaluation> evaluations{};
  std::vector<Change> changes{};
  std::optional<nlohmann::json> call{};    // its request
  std::optional<nlohmann::json> answer{};  // of the call, if there was one
};

class Coverage;

// Limits on the Nodes and texts that a trace keeps. By default there are none.
struct TraceLimits {
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::size_t nodes = none;    // the last ones
  std::size_t details = none;  // values of a Node, and changes
  std::size_t bytes = none;    // of a text or value; the rest is cut off
};

// Notes the Nodes of Turns. One thread.
class Trace final : public TurnObserver {
 public:
  // `coverage`, which may be null, must outlive it. It counts the same Nodes.
  explicit Trace(Coverage* coverage = nullptr, const TraceLimits& limits = {})
      : coverage_(coverage), limits_(limits) {}

  // Names texts by locale by their text of this one, such as the primary one of the project.
  void set_locale(std::string locale) { locale_ = std::move(locale); }

  void runs(const Flow& flow, const Flow::Slot& node, const expression::Scope& scope) override;
  void leads(const Flow& flow, const Flow::Slot& node, NodeIndex to) override;
  void evaluated(std::string_view source, const model::Result<nlohmann::json>& value) override;
  void calls(nlohmann::json request, const std::optional<model::CallResult>& result);

  // The Nodes since the last `take`, whose Turns had these effects. The last Node of a Turn that
  // failed shows no changes, because the Turn has none.
  // Kept by: FlowTest.ShowsNoChangesOfATurnThatFails.
  [[nodiscard]] std::vector<TracedNode> take(const Rehearsal& rehearsal,
                                             const Rehearsal::Done& done);

 private:
  void note_changes(const nlohmann::json& context, const nlohmann::json& profile);
  void add_changes(const std::string& root, const nlohmann::json& before,
                   const nlohmann::json& after);
  [[nodiscard]] nlohmann::json kept(nlohmann::json value) const;
  [[nodiscard]] std::string kept_text(std::string_view text) const;

  Coverage* const coverage_;
  const TraceLimits limits_;
  std::string locale_;
  std::vector<TracedNode> nodes_;
  nlohmann::json context_;  // before the last Node
  nlohmann::json profile_;
};

// Indented lines for people.
[[nodiscard]] std::vector<std::string> lines_of(const TracedNode& node);
[[nodiscard]] nlohmann::json to_json(const TracedNode& node);

}  // namespace conversed::flows::tools

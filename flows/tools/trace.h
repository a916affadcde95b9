#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "flows/turn/turn.h"
#include "store/model/session.h"

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

// Notes the Nodes of Turns. One thread.
class Trace final : public TurnObserver {
 public:
  // `coverage`, which may be null, must outlive it. It counts the same Nodes.
  explicit Trace(Coverage* coverage = nullptr) : coverage_(coverage) {}

  void runs(const Flow& flow, const Flow::Slot& node, const expression::Scope& scope) override;
  void leads(const Flow& flow, const Flow::Slot& node, NodeIndex to) override;
  void evaluated(std::string_view source, const model::Result<nlohmann::json>& value) override;
  void calls(const model::PendingCall& call, const std::optional<model::CallResult>& result);

  // The Nodes since the last `take`. `session` and `profile` are as the last Turn left them.
  [[nodiscard]] std::vector<TracedNode> take(const model::Session& session,
                                             const model::Profile& profile);

 private:
  void note_changes(const nlohmann::json& context, const nlohmann::json& profile);

  Coverage* const coverage_;
  std::vector<TracedNode> nodes_;
  nlohmann::json context_;  // before the last Node
  nlohmann::json profile_;
};

// Indented lines for people.
[[nodiscard]] std::vector<std::string> lines_of(const TracedNode& node);
[[nodiscard]] nlohmann::json to_json(const TracedNode& node);

}  // namespace conversed::flows::tools

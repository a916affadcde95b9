#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "flows/node.h"
#include "flows/node_config.h"

// The list of Node types. A new type is a file in nodes/, a line below and one in node_types.cc.
namespace conversed::flows {

using NodePtr = std::unique_ptr<const Node>;

// One config key of a Node type. The loader refuses keys that are not listed.
struct NodeField {
  enum class Where : std::uint8_t {
    inside,  // in the mapping under the type's name
    beside,  // beside the type's name; `inside` is taken as well
  };
  std::string_view name;
  std::string_view kind;  // for docs/flows/nodes.md: `template`, `nodes`, `duration`, ...
  std::string_view summary;
  Where where = Where::inside;
};

struct NodeType {
  std::string_view name;
  std::string_view summary;  // one sentence
  // The field that gets a value which is no mapping (`- say: Hello`); empty: none.
  std::string_view shorthand{};
  // The keys of the config are not `fields` but names that the author chooses (`addToContext`).
  bool free_form = false;
  std::span<const NodeField> fields{};
  std::string_view example;  // YAML, one Node of a `nodes:` list
  // Reads the config and reports its problems to it. Never returns null.
  NodePtr (*create)(NodeConfig& config) = nullptr;
};

// A Node that only runs: `run` is a function of the Turn which holds what `create` has read. It
// returns a Step, a Result<Step>, or a Result<void> or nothing and the Flow continues.
template <typename Run>
[[nodiscard]] NodePtr node_of(Run run) {
  class RunNode final : public Node {
   public:
    explicit RunNode(Run function) : run_(std::move(function)) {}
    Result<Step> run(Turn& turn) const override {
      using Done = std::invoke_result_t<const Run&, Turn&>;
      if constexpr (std::is_void_v<Done>) {
        run_(turn);
        return Continue{};
      } else if constexpr (std::is_same_v<Done, Result<void>>) {
        return step_after(run_(turn));
      } else {
        return run_(turn);
      }
    }

   private:
    const Run run_;
  };
  return std::make_unique<const RunNode>(std::move(run));
}

// `create` of a Node without config (`- resetContext: true`) that changes the Turn and continues.
template <auto change>
[[nodiscard]] NodePtr changes(NodeConfig& config) {
  config.expect_true();
  return node_of([](Turn& turn) { std::invoke(change, turn); });
}

extern const NodeType add_lexicon_keyphrase_node;
extern const NodeType add_to_context_node;
extern const NodeType ai_agent_node;
extern const NodeType cancel_follow_up_node;
extern const NodeType copy_slots_to_context_node;
extern const NodeType execute_flow_node;
extern const NodeType follow_up_node;
extern const NodeType go_to_node;
extern const NodeType handover_node;
extern const NodeType http_request_node;
extern const NodeType if_node;
extern const NodeType interval_node;
extern const NodeType llm_prompt_node;
extern const NodeType log_node;
extern const NodeType once_node;
extern const NodeType question_node;
extern const NodeType regex_slot_filler_node;
extern const NodeType remove_from_context_node;
extern const NodeType remove_from_profile_node;
extern const NodeType reset_context_node;
extern const NodeType reset_profile_node;
extern const NodeType reset_state_node;
extern const NodeType say_node;
extern const NodeType search_knowledge_node;
extern const NodeType set_state_node;
extern const NodeType sleep_node;
extern const NodeType stop_node;
extern const NodeType switch_node;
extern const NodeType think_node;
extern const NodeType update_profile_node;
extern const NodeType wait_node;

// All of them, by name.
[[nodiscard]] std::span<const NodeType* const> node_types();

// Null if there is no such type.
[[nodiscard]] const NodeType* find_node_type(std::string_view name);

// The reference of all Node types in Markdown, one section a type: the text of docs/flows/nodes.md.
// Kept by: NodeTypes.AreDocumented.
[[nodiscard]] std::string document_node_types();

}  // namespace conversed::flows

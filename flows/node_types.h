#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "flows/node.h"
#include "flows/node_config.h"

// The list of Node types. A new type is one file in nodes/, a line below and one in node_types.cc.
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

// The type of a Node without config (`- resetContext: true`) that changes the Turn and continues.
template <auto change>
class ChangeNode final : public Node {
 public:
  Result<Step> run(Turn& turn) const override {
    std::invoke(change, turn);
    return Continue{};
  }
  static NodePtr create(NodeConfig& config) {
    config.expect_true();
    return std::make_unique<const ChangeNode>();
  }
};

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

}  // namespace conversed::flows

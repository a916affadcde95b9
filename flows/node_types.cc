#include "flows/node_types.h"

#include <algorithm>
#include <array>

namespace conversed::flows {
namespace {

// Sorted by name for the binary search of find_node_type.
constexpr std::array all{
    &add_lexicon_keyphrase_node,
    &add_to_context_node,
    &ai_agent_node,
    &cancel_follow_up_node,
    &code_node,
    &collect_node,
    &copy_slots_to_context_node,
    &execute_flow_node,
    &follow_up_node,
    &for_each_node,
    &go_to_node,
    &handover_node,
    &http_request_node,
    &if_node,
    &interval_node,
    &llm_prompt_node,
    &log_node,
    &once_node,
    &question_node,
    &regex_slot_filler_node,
    &remove_from_context_node,
    &remove_from_profile_node,
    &reset_context_node,
    &reset_profile_node,
    &reset_state_node,
    &return_node,
    &say_node,
    &search_knowledge_node,
    &set_state_node,
    &sleep_node,
    &split_node,
    &stop_node,
    &switch_node,
    &think_node,
    &update_profile_node,
    &wait_node,
    &wait_for_event_node,
};

}  // namespace

std::span<const NodeType* const> node_types() {
  return all;
}

const NodeType* find_node_type(std::string_view name) {
  const auto found = std::lower_bound(
      all.begin(), all.end(), name,
      [](const NodeType* type, std::string_view wanted) { return type->name < wanted; });
  return found != all.end() && (*found)->name == name ? *found : nullptr;
}

}  // namespace conversed::flows

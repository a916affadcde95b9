#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "flows/node.h"
#include "flows/node_config.h"

// The Node types. A new type needs a file in nodes/, a line here and one in node_types.cc.
namespace conversed::flows {

using NodePtr = std::unique_ptr<const Node>;

// One config key of a Node type. Other keys are problems. docs/flows/nodes.md describes each key.
// Kept by: Reference.HasTheFactsOfTheCode.
struct NodeField : KeyWords<NodeField> {
  // Reads the field into its member of the Node. `found` is null if the field is missing. Null: the
  // Node's `check` reads the field.
  void (*read)(NodeConfig& config, const NodeField& field, const View* found, Node& node) = nullptr;
  bool is_beside = false;  // allowed beside the type's name, too, not only in the mapping under it

  [[nodiscard]] constexpr NodeField or_beside() const {
    NodeField field = *this;
    field.is_beside = true;
    return field;
  }
};

// The form of a field that is read into a T. Fields of other types name theirs.
template <typename T>
inline constexpr Form form_of = Form::anything;
template <typename T>
inline constexpr Form form_of<std::optional<T>> = form_of<T>;
template <>
inline constexpr Form form_of<bool> = Form::flag;
template <>
inline constexpr Form form_of<int> = Form::number;
template <>
inline constexpr Form form_of<std::chrono::milliseconds> = Form::duration;
template <>
inline constexpr Form form_of<std::string> = Form::name;
template <>
inline constexpr Form form_of<std::vector<std::string>> = Form::names;
template <>
inline constexpr Form form_of<expression::Template> = Form::template_text;
template <>
inline constexpr Form form_of<expression::JsonTemplate> = Form::json_template;
template <>
inline constexpr Form form_of<LocalText> = Form::local_text;
template <>
inline constexpr Form form_of<std::vector<LocalText>> = Form::local_texts;
template <>
inline constexpr Form form_of<expression::Expression> = Form::expression;
template <>
inline constexpr Form form_of<expression::Path> = Form::path;
template <>
inline constexpr Form form_of<Regex> = Form::regex;
template <>
inline constexpr Form form_of<NodeConfig::Headers> = Form::text_map;
template <>
inline constexpr Form form_of<NodeConfig::Knowledge> = Form::name;
template <>
inline constexpr Form form_of<NodeIndex> = Form::nodes;

template <typename Owner, typename T>
[[nodiscard]] Owner& owner_of(T Owner::*, Node& node) {
  return static_cast<Owner&>(node);
}
template <typename Owner, typename T>
[[nodiscard]] T value_in(T Owner::*);
template <typename Member>
using type_of_member = decltype(value_in(std::declval<Member>()));

template <typename T>
void take_default(const NodeField& field, T& into) {
  if constexpr (std::is_same_v<T, std::string>) {
    into = field.default_word;
  } else if constexpr (std::is_same_v<T, int> || std::is_same_v<T, bool> ||
                       std::is_same_v<T, std::chrono::milliseconds>) {
    if (field.default_number) into = static_cast<T>(*field.default_number);
  }
}

template <auto member, auto reader>
void read_member(NodeConfig& config, const NodeField& field, const View* found, Node& node) {
  auto& into = owner_of(member, node).*member;
  if constexpr (std::is_same_v<decltype(into), NodeIndex&>) {
    into = config.branch(field.name, found);
  } else if (found == nullptr) {
    take_default(field, into);
  } else if constexpr (std::is_null_pointer_v<decltype(reader)>) {
    config.read(*found, field, into);
  } else {
    std::invoke(reader, config, *found, into);
  }
}

// An optional field of a Node. `reader(config, view, member)` reads it into `member`. Without a
// reader `NodeConfig::read` reads it by the member's type.
template <auto member = nullptr, auto reader = nullptr>
[[nodiscard]] constexpr NodeField optional(std::string_view name) {
  NodeField field;
  field.name = name;
  if constexpr (!std::is_null_pointer_v<decltype(member)>) {
    field.read = &read_member<member, reader>;
    field.form = form_of<type_of_member<decltype(member)>>;
  }
  return field;
}

// A required field of a Node.
template <auto member = nullptr, auto reader = nullptr>
[[nodiscard]] constexpr NodeField required(std::string_view name) {
  NodeField field = optional<member, reader>(name);
  field.is_required = true;
  return field;
}

struct NodeType {
  std::string_view name;
  // The field of a value that is not a mapping (`- say: Hello`). Empty: none.
  std::string_view shorthand{};
  // The config's keys are names that the author chooses, not `fields`: `any_mapping`
  // (`addToContext`) or `texts` (`removeFromContext`). A type with neither is written `- stop:
  // true`.
  Form form = Form::mapping;
  bool continues = true;  // the Node that follows may run next
  // The session keeps injects that no Node has taken (Turn::untaken_events) for such a Node.
  bool keeps_injects = false;
  std::span<const NodeField> fields{};
  [[nodiscard]] constexpr bool is_free_form() const { return form != Form::mapping; }
  // Reads the config and reports its problems to it. Never returns null.
  NodePtr (*create)(NodeConfig& config) = nullptr;
};

// `create` of the Node type N. After the fields it calls `N::check(config)` if that exists, for
// checks that involve several fields.
template <typename N>
[[nodiscard]] NodePtr create(NodeConfig& config) {
  auto node = std::make_unique<N>();
  config.read_fields(*node);
  if constexpr (requires { node->check(config); }) node->check(config);
  return node;
}

// A Node without config (`- resetContext: true`) that changes the Turn and continues.
template <auto change>
struct ChangeNode final : Node {
  Result<Step> run(Turn& turn) const override {
    std::invoke(change, turn);
    return Continue{};
  }
};

extern const NodeType add_lexicon_keyphrase_node;
extern const NodeType add_to_context_node;
extern const NodeType ai_agent_node;
extern const NodeType cancel_follow_up_node;
extern const NodeType code_node;
extern const NodeType collect_node;
extern const NodeType copy_slots_to_context_node;
extern const NodeType execute_flow_node;
extern const NodeType follow_up_node;
extern const NodeType for_each_node;
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
extern const NodeType return_node;
extern const NodeType say_node;
extern const NodeType search_knowledge_node;
extern const NodeType set_state_node;
extern const NodeType sleep_node;
extern const NodeType split_node;
extern const NodeType stop_node;
extern const NodeType switch_node;
extern const NodeType think_node;
extern const NodeType update_profile_node;
extern const NodeType wait_node;
extern const NodeType wait_for_event_node;

// All Node types, sorted by name.
[[nodiscard]] std::span<const NodeType* const> node_types();

// Null if the type does not exist.
[[nodiscard]] const NodeType* find_node_type(std::string_view name);

}  // namespace conversed::flows

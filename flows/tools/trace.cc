#include "flows/tools/trace.h"

#include <algorithm>
#include <utility>

#include "flows/node_types.h"
#include "flows/tools/coverage.h"
#include "flows/tools/stubs.h"
#include "store/text/utf8.h"

namespace conversed::flows::tools {
namespace {

using nlohmann::json;

// A JSON pointer below a root, such as `/cart/items/0`, as a path of expressions.
std::string path_of(std::string root, const std::string& pointer) {
  std::size_t at = 0;
  while (at < pointer.size()) {
    const auto next = std::min(pointer.find('/', at + 1), pointer.size());
    const auto name = pointer.substr(at + 1, next - at - 1);
    if (!name.empty() && name.find_first_not_of("0123456789") == std::string::npos) {
      root += '[' + name + ']';
    } else {
      root += '.' + name;
    }
    at = next;
  }
  return root;
}

void add_changes(std::vector<TracedNode::Change>& into, const std::string& root, const json& before,
                 const json& after) {
  for (const auto& change : json::diff(before, after)) {
    const auto& name = change.at("path").get_ref<const std::string&>();
    const json::json_pointer pointer(name);
    into.push_back({.path = path_of(root, name),
                    .before = before.contains(pointer) ? before.at(pointer) : json(),
                    .after = after.contains(pointer) ? after.at(pointer) : json()});
  }
}

// A value on one line, cut if it is long.
std::string shown(const json& value) {
  constexpr std::size_t longest = 200;
  if (value.is_null()) return "nothing";
  const std::string whole = value.dump(-1, ' ', false, json::error_handler_t::replace);
  const std::string cut(text::cut(whole, longest));
  return cut.size() < whole.size() ? cut + "..." : cut;
}

}  // namespace

void Trace::runs(const Flow& flow, const Flow::Slot& node, const expression::Scope& scope) {
  if (coverage_ != nullptr) coverage_->runs(flow, node);
  if (!nodes_.empty()) note_changes(*scope.context, *scope.profile);
  context_ = *scope.context;
  profile_ = *scope.profile;
  nodes_.push_back({.flow = flow.name(),
                    .address = node.address,
                    .type = std::string(node.type->name),
                    .label = node.outline.label});
}

void Trace::leads(const Flow& flow, const Flow::Slot& node, NodeIndex to) {
  if (coverage_ != nullptr) coverage_->leads(flow, node, to);
}

void Trace::evaluated(std::string_view source, const model::Result<json>& value) {
  if (nodes_.empty()) return;
  nodes_.back().evaluations.push_back({.source = std::string(source),
                                       .value = value ? *value : json(),
                                       .error = value ? "" : value.error().message});
}

void Trace::calls(const model::PendingCall& call, const std::optional<model::CallResult>& result) {
  if (nodes_.empty()) return;
  nodes_.back().call = request_of(call);
  if (!result) return;
  nodes_.back().answer = result->error_code.empty()
                             ? json{{"status", result->status}, {"body", result->body}}
                             : json{{"status", result->status}, {"error", result->error_code}};
}

std::vector<TracedNode> Trace::take(const model::Session& session, const model::Profile& profile) {
  if (!nodes_.empty()) note_changes(session.context, profile.data);
  return std::exchange(nodes_, {});
}

void Trace::note_changes(const json& context, const json& profile) {
  add_changes(nodes_.back().changes, "context", context_, context);
  add_changes(nodes_.back().changes, "profile", profile_, profile);
}

std::vector<std::string> lines_of(const TracedNode& node) {
  std::vector<std::string> lines{"  " + node.flow + ": " + node.address + ' ' + node.type};
  if (!node.label.empty()) lines.back() += ": " + node.label;
  for (const auto& evaluation : node.evaluations) {
    lines.push_back("      " + evaluation.source +
                    (evaluation.error.empty() ? " = " + shown(evaluation.value)
                                              : " failed: " + evaluation.error));
  }
  for (const auto& change : node.changes) {
    lines.push_back("      " + change.path + ": " + shown(change.before) + " -> " +
                    shown(change.after));
  }
  if (node.call) lines.push_back("      call " + shown(*node.call));
  if (node.answer) lines.push_back("      answer " + shown(*node.answer));
  return lines;
}

json to_json(const TracedNode& node) {
  json evaluations = json::array();
  for (const auto& each : node.evaluations) {
    json evaluation = {{"source", each.source}, {"value", each.value}};
    if (!each.error.empty()) evaluation["error"] = each.error;
    evaluations.push_back(std::move(evaluation));
  }
  json changes = json::array();
  for (const auto& each : node.changes) {
    changes.push_back({{"path", each.path}, {"before", each.before}, {"after", each.after}});
  }
  json made = {{"flow", node.flow},
               {"node", node.address},
               {"type", node.type},
               {"label", node.label},
               {"evaluations", std::move(evaluations)},
               {"changes", std::move(changes)}};
  if (node.call) made["call"] = *node.call;
  if (node.answer) made["answer"] = *node.answer;
  return made;
}

}  // namespace conversed::flows::tools

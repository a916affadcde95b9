#include "flows/tools/trace.h"

#include <algorithm>
#include <map>
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

// Whether the JSON pointer names the place behind the last item of a list.
bool is_append(const json& value, const std::string& pointer) {
  if (!pointer.ends_with("/-")) return false;
  const json::json_pointer list(pointer.substr(0, pointer.size() - 2));
  return value.contains(list) && value.at(list).is_array();
}

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string shortened(std::string_view whole, std::size_t longest) {
  std::string cut(text::cut(whole, longest));
  return cut.size() < whole.size() ? cut + "..." : cut;
}

// A value on one line, cut if it is long.
std::string shown(const json& value) {
  constexpr std::size_t longest = 200;
  return value.is_null() ? "nothing" : shortened(text_of(value), longest);
}

}  // namespace

void Trace::runs(const Flow& flow, const Flow::Slot& node, const expression::Scope& scope) {
  if (coverage_ != nullptr) coverage_->runs(flow, node);
  if (!nodes_.empty()) note_changes(*scope.context, *scope.profile);
  context_ = *scope.context;
  profile_ = *scope.profile;
  if (nodes_.size() == limits_.nodes) nodes_.erase(nodes_.begin());
  nodes_.push_back({.flow = flow.name(),
                    .address = node.address,
                    .type = std::string(node.type->name),
                    .label = kept_text(node.outline.label_in(locale_))});
}

void Trace::leads(const Flow& flow, const Flow::Slot& node, NodeIndex to) {
  if (coverage_ != nullptr) coverage_->leads(flow, node, to);
}

void Trace::evaluated(std::string_view source, const model::Result<json>& value) {
  if (nodes_.empty() || nodes_.back().evaluations.size() == limits_.details) return;
  nodes_.back().evaluations.push_back({.source = kept_text(source),
                                       .value = value ? kept(*value) : json(),
                                       .error = value ? "" : kept_text(value.error().message)});
}

void Trace::calls(json request, const std::optional<model::CallResult>& result) {
  if (nodes_.empty()) return;
  nodes_.back().call = kept(std::move(request));
  if (!result) return;
  nodes_.back().answer = kept(
      result->error_code.empty() ? json{{"status", result->status}, {"body", result->body}}
                                 : json{{"status", result->status}, {"error", result->error_code}});
}

std::vector<TracedNode> Trace::take(const Rehearsal& rehearsal, const Rehearsal::Done& done) {
  if (!nodes_.empty() && done.error.empty()) {
    note_changes(rehearsal.session().context, rehearsal.profile().data);
  }
  return std::exchange(nodes_, {});
}

void Trace::note_changes(const json& context, const json& profile) {
  add_changes("context", context_, context);
  add_changes("profile", profile_, profile);
}

void Trace::add_changes(const std::string& root, const json& before, const json& after) {
  auto& changes = nodes_.back().changes;
  std::map<std::string, std::size_t> appended;  // to each list
  for (const auto& change : json::diff(before, after)) {
    if (changes.size() == limits_.details) return;
    auto name = change.at("path").get<std::string>();
    if (is_append(before, name)) {
      const auto list = name.substr(0, name.rfind('/'));
      const auto size = before.at(json::json_pointer(list)).size();
      name = list + '/' + std::to_string(size + appended[list]++);
    }
    const json::json_pointer pointer(name);
    changes.push_back({.path = kept_text(path_of(root, name)),
                       .before = before.contains(pointer) ? kept(before.at(pointer)) : json(),
                       .after = after.contains(pointer) ? kept(after.at(pointer)) : json()});
  }
}

json Trace::kept(json value) const {
  if (limits_.bytes == TraceLimits::none) return value;
  auto whole = text_of(value);
  return whole.size() <= limits_.bytes ? value : json(shortened(whole, limits_.bytes));
}

std::string Trace::kept_text(std::string_view text) const {
  return shortened(text, limits_.bytes);
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

#include "flows/flow.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "flows/flow_compiler.h"
#include "flows/local_text.h"
#include "flows/node_types.h"
#include "store/model/json.h"
#include "store/text/joined.h"

namespace conversed::flows {
namespace {

constexpr std::size_t max_id_bytes = 64;
constexpr std::size_t max_nodes = 10'000;  // in one Flow

// An id begins with a letter and has no brackets or dots, so it differs from every path.
bool is_node_id(std::string_view id) {
  return is_word(id, "_-") && id.size() <= max_id_bytes && id.front() != '-' &&
         (id.front() < '0' || id.front() > '9');
}

std::string locale_hint(const std::string& name, const std::vector<std::string>& known) {
  const auto same = matching_locale(name, known);
  return same.empty() ? "; known are " + text::joined(known)
                      : "; did you mean '" + std::string(same) + "'?";
}

}  // namespace

void expect_known(const View& view, std::string_view missing, const Names& known) {
  if (!view.value().is_text() || known.contains(view.value().text())) return;
  const std::string& name = view.value().text();
  view.problem(std::string(missing) + " '" + name + "'" + did_you_mean(name, known));
}

void expect_locales(const View& mapping, const std::vector<std::string>& known) {
  const auto& members = mapping.value().members();
  if (members.empty()) {
    mapping.problem("the mapping is empty; write a text for each locale, such as `en: Hello`");
  }
  if (members.empty() || known.empty()) return;
  for (const auto& member : members) {
    if (std::ranges::find(known, member.name) != known.end()) continue;
    mapping.report().add(
        member.place, mapping.member(member).path(),
        "the project has no locale '" + member.name + "'" + locale_hint(member.name, known));
  }
  if (mapping.value().find(known.front()) == nullptr) {
    mapping.problem("has no text for the primary locale '" + known.front() + "'; write one");
  }
}

Checked<std::shared_ptr<const Flow>> Flow::compile(const nlohmann::json& definition) {
  Report report("");
  const Located located = Located::from_json(definition);
  auto flow = compile(View(located, report), nullptr);
  if (flow == nullptr) return tl::unexpected<Problems>(report.take());
  return flow;
}

Checked<std::shared_ptr<const Flow>> Flow::compile_text(std::string_view definition) {
  auto parsed = model::parse_json(definition);
  if (!parsed) {
    return tl::unexpected<Problems>({{"", {}, "", "the definition: " + parsed.error().message}});
  }
  return compile(*parsed);
}

std::shared_ptr<const Flow> Flow::compile(const View& definition, const KnownNames* known) {
  return FlowCompiler(definition.report(), known).compile(definition);
}

const std::string& Flow::Outline::label_in(std::string_view locale) const {
  const auto found = std::ranges::find_if(
      labels, [&](const auto& each) { return is_same_locale(each.first, locale); });
  return found == labels.end() ? label : found->second;
}

NodeIndex Flow::find(const std::string& address) const {
  const auto found = by_address_.find(address);
  return found == by_address_.end() ? end_of_flow : found->second;
}

std::shared_ptr<const Flow> FlowCompiler::compile(const View& definition) {
  const std::size_t problems_before = report_.size();
  const Fields fields(definition, flow_keys);
  flow_->name_ = fields.name("name");
  flow_->lexicons_ = fields.names("lexicons");
  if (known_ != nullptr) {
    fields.each("lexicons", [&](const View& item) {
      expect_known(item, "there is no lexicon", known_->lexicons);
    });
  }
  if (const auto nodes = fields.find("nodes")) {
    flow_->start_ = sequence(*nodes, "nodes", end_of_flow);
  }
  check_references();
  if (report_.size() != problems_before) return nullptr;
  for (const auto& slot : flow_->slots_) {
    flow_->keeps_injects_ = flow_->keeps_injects_ || slot.type->keeps_injects;
    for (const auto& use : slot.outline.uses) {
      if (use.kind == Flow::Use::Kind::flow) flow_->entered_.insert(use.name);
    }
  }
  return flow_;
}

NodeIndex FlowCompiler::sequence(const View& list, const std::string& path, NodeIndex next) {
  if (!list.expect_list("a list of Nodes")) return next;
  const std::size_t count = list.value().items().size();
  const std::size_t first = flow_->slots_.size();
  if (count > max_nodes - std::min(first, max_nodes)) {
    if (!std::exchange(too_many_, true)) {
      list.problem("the Flow has more than " + std::to_string(max_nodes) +
                   " Nodes; move some to a Flow that executeFlow enters");
    }
    return next;
  }
  flow_->slots_.resize(first + count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto after = i + 1 < count ? NodeIndex(first + i + 1) : next;
    node(list.item(i), path + '[' + std::to_string(i) + ']', NodeIndex(first + i), after);
  }
  return count == 0 ? next : NodeIndex(first);
}

const Located::Member* FlowCompiler::typed_member(const View& view) {
  if (!view.value().is_object()) {
    view.problem("a Node is a mapping such as `say: Hello`, not " +
                 std::string(view.value().kind_name()));
    return nullptr;
  }
  const Located::Member* named = nullptr;
  const Located::Member* unknown = nullptr;
  for (const auto& member : view.value().members()) {
    if (member.name == "id") continue;
    if (find_node_type(member.name) == nullptr) {
      if (unknown == nullptr) unknown = &member;
    } else if (named == nullptr) {
      named = &member;
    } else {
      view.report().add(
          member.place, view.member(member).path(),
          "a Node has one type, and this one is a '" + named->name + "'; write a Node for each");
    }
  }
  if (named != nullptr) return named;
  std::vector<std::string_view> names;
  for (const NodeType* type : node_types()) names.push_back(type->name);
  if (unknown == nullptr) {
    view.problem("a Node needs a type; known are " + text::joined(names));
    return nullptr;
  }
  view.report().add(unknown->place, view.member(*unknown).path(),
                    "unknown Node type '" + unknown->name + "'" +
                        did_you_mean(unknown->name, names) + "; known are " + text::joined(names));
  return nullptr;
}

std::string FlowCompiler::address_of(const View& view, const std::string& path) {
  const auto& members = view.value().members();
  const auto found = std::ranges::find(members, "id", &Located::Member::name);
  if (found == members.end()) return path;
  const Located& value = found->value;
  const View id = view.member(*found);
  if (!value.is_text() || !is_node_id(value.text())) {
    id.problem("an id is a letter and at most 63 letters, digits, `_` or `-`");
  } else if (flow_->by_address_.contains(value.text())) {
    id.problem("the id '" + value.text() + "' is used twice in this Flow; choose another");
  } else {
    return value.text();
  }
  return path;
}

void FlowCompiler::node(const View& view, std::string path, NodeIndex index, NodeIndex next) {
  const Located::Member* typed = typed_member(view);
  if (!view.value().is_object()) return;
  std::string address = address_of(view, path);
  flow_->by_address_.emplace(address, index);
  if (typed == nullptr) return;
  const NodeType* type = find_node_type(typed->name);
  const View config_view = view.member(*typed);
  NodeConfig config(*this, *type, view, config_view, std::move(path), index, next);
  auto made = type->create(config);
  // The slot is set after the branches, because compiling branches moves the array.
  flow_->slots_[static_cast<std::size_t>(index)] = {std::move(made), type, std::move(address), next,
                                                    config.take_outline()};
}

void FlowCompiler::expect_node(const View& reference, std::string id, NodeIndex from) {
  references_.push_back({std::move(id), reference.value().place(), reference.path(), from});
}

void FlowCompiler::check_references() {
  Names ids;
  for (const auto& [address, index] : flow_->by_address_) {
    if (is_node_id(address)) ids.insert(address);
  }
  for (auto& reference : references_) {
    if (ids.contains(reference.id)) {
      auto& ways = flow_->slots_[static_cast<std::size_t>(reference.from)].outline.ways;
      ways.push_back({reference.id, flow_->by_address_[reference.id]});
      continue;
    }
    report_.add(
        reference.place, std::move(reference.path),
        "no Node of this Flow has the id '" + reference.id + "'" + did_you_mean(reference.id, ids));
  }
}

}  // namespace conversed::flows

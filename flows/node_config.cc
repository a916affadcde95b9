#include "flows/node_config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "flows/expression/text.h"
#include "flows/flow_compiler.h"
#include "flows/node_types.h"

namespace conversed::flows {
namespace {

using expression::Expression;
using expression::JsonTemplate;
using expression::Path;
using expression::Template;
using Kind = Flow::Use::Kind;

// Braces may hold the label of a Token. The labels are known while a bundle is checked. For a Flow
// of the store any label is possible.
expression::IsLabel labels(const KnownNames* known) {
  return
      [known](std::string_view label) { return known == nullptr || known->tokens.contains(label); };
}

std::optional<Path> path_from(const View& view, const std::string& text) {
  auto compiled = Path::compile(text);
  if (compiled) return std::move(*compiled);
  view.problem(compiled.error().message);
  return std::nullopt;
}

std::optional<Path> place_below(const View& view, std::string_view root, const std::string& name) {
  const std::string prefix = std::string(root) + '.';
  if (name.starts_with(prefix)) {
    view.problem("write '" + name.substr(prefix.size()) + "' instead of '" + name + "'");
    return std::nullopt;
  }
  return path_from(view, prefix + name);
}

// RFC 9110, 5.6.2.
bool is_header_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

// Headers that the sender of the request sets.
bool is_reserved_header(std::string_view name) {
  static constexpr std::array<std::string_view, 8> reserved{
      "connection", "content-length",    "expect",         "host", "te",
      "upgrade",    "transfer-encoding", "idempotency-key"};
  return std::ranges::find(reserved, expression::to_lower(name)) != reserved.end();
}

}  // namespace

NodeConfig::NodeConfig(FlowCompiler& compiler, const NodeType& type, const View& node,
                       const View& config, std::string path, NodeIndex here, NodeIndex next)
    : compiler_(compiler),
      type_(type),
      node_(node),
      config_(config),
      path_(std::move(path)),
      here_(here),
      next_(next) {
  outline_.place = node.value().place();
  check_keys();
}

void NodeConfig::check_keys() {
  std::vector<std::string_view> inside;
  std::vector<std::string_view> beside;
  for (const auto& field : type_.fields) {
    inside.push_back(field.name);
    if (field.where == NodeField::Where::beside) beside.push_back(field.name);
  }
  for (const auto& member : node_.value().members()) {
    // A second type was reported as such.
    if (member.name == "id" || find_node_type(member.name) != nullptr) continue;
    const std::string path = node_.member(member).path();
    if (std::find(beside.begin(), beside.end(), member.name) == beside.end()) {
      std::vector<std::string_view> known = beside;
      known.emplace_back("id");
      node_.report().add(member.place, path,
                         "unknown key '" + member.name + "' beside '" + std::string(type_.name) +
                             "'" + did_you_mean(member.name, known));
    } else if (!type_.free_form && config_.value().find(member.name) != nullptr) {
      node_.report().add(member.place, path, "stands here and in the mapping as well; remove one");
    }
  }
  if (type_.free_form) return;
  if (config_.value().is_object() || type_.shorthand.empty()) (void)Fields(config_, inside);
}

std::optional<View> NodeConfig::find(std::string_view field) const {
  if (type_.free_form) return std::nullopt;
  if (!config_.value().is_object() && field == type_.shorthand && !config_.value().is_null()) {
    return config_;
  }
  if (auto inside = config_.find(field)) return inside;
  for (const auto& known : type_.fields) {
    if (known.name == field && known.where == NodeField::Where::beside) return node_.find(field);
  }
  return std::nullopt;
}

std::optional<View> NodeConfig::require(std::string_view field) {
  auto found = find(field);
  if (!found && (config_.value().is_object() || !type_.shorthand.empty())) {
    config_.problem("'" + std::string(field) + "' is missing");
  }
  return found;
}

void NodeConfig::problem(std::string_view field, std::string message) {
  const auto found = find(field);
  (found ? *found : config_).problem(std::move(message));
}

void NodeConfig::import_problem(std::string_view field, std::string message) {
  if (compiler_.known() != nullptr) problem(field, std::move(message));
}

void NodeConfig::warn(std::string_view field, std::string message) {
  const auto found = find(field);
  outline_.warnings.push_back({(found ? *found : config_).value().place(), std::move(message)});
}

Template NodeConfig::text_template(std::string_view field) {
  const auto found = require(field);
  return found ? template_at(*found) : std::move(*Template::compile(""));
}

std::optional<Template> NodeConfig::optional_template(std::string_view field) {
  const auto found = find(field);
  if (!found) return std::nullopt;
  return template_at(*found);
}

Expression NodeConfig::expression_at(const View& view, std::string_view source) {
  auto compiled = Expression::compile(source);
  if (compiled) {
    note_reads(view, compiled->members_read());
    return std::move(*compiled);
  }
  view.problem(compiled.error().message);
  return std::move(*Expression::compile("null"));
}

Template NodeConfig::template_at(const View& view) {
  auto compiled = Template::compile(view.text().value_or(""), {}, labels(compiler_.known()));
  if (compiled) {
    note_reads(view, compiled->members_read());
    return std::move(*compiled);
  }
  view.problem(compiled.error().message);
  return std::move(*Template::compile(""));
}

void NodeConfig::check_templates(const View& view) {
  if (view.value().is_text()) {
    (void)template_at(view);
    return;
  }
  for (const View& item : view.items()) check_templates(item);
  for (const auto& member : view.value().members()) check_templates(view.member(member));
}

JsonTemplate NodeConfig::json_template_at(const View& view) {
  const std::size_t before = view.report().size();
  check_templates(view);
  if (view.report().size() == before) {
    auto compiled = JsonTemplate::compile(view.value().to_json(), {}, labels(compiler_.known()));
    if (compiled) return std::move(*compiled);
    view.problem(compiled.error().message);
  }
  return std::move(*JsonTemplate::compile(nullptr));
}

void NodeConfig::note_reads(const View& view, const expression::MembersRead& reads) {
  for (const auto& [root, name] : reads) {
    outline_.reads.push_back({root, name, view.value().place()});
  }
}

std::vector<Template> NodeConfig::alternatives(std::string_view field) {
  std::vector<Template> list;
  const auto found = require(field);
  if (!found) return list;
  if (!found->value().is_array()) {
    list.push_back(template_at(*found));
    return list;
  }
  if (found->value().items().empty()) found->problem("the list is empty; write a text");
  for (const View& item : found->items()) {
    list.push_back(template_at(item));
  }
  return list;
}

Expression NodeConfig::condition(std::string_view field) {
  const auto found = require(field);
  if (!found) return std::move(*Expression::compile("null"));
  // `if: true` is accepted, for trying things out.
  const auto& scalar = found->value().scalar();
  if (scalar.is_boolean() || scalar.is_number()) {
    return expression_at(*found, scalar.dump());
  }
  const auto text = found->text();
  return text ? expression_at(*found, *text) : std::move(*Expression::compile("null"));
}

std::optional<JsonTemplate> NodeConfig::json_template(std::string_view field) {
  const auto found = find(field);
  if (!found) return std::nullopt;
  return json_template_at(*found);
}

std::vector<std::pair<std::string, Template>> NodeConfig::headers(std::string_view field) {
  std::vector<std::pair<std::string, Template>> list;
  const auto found = find(field);
  if (!found || !found->expect_mapping()) return list;
  for (const auto& member : found->value().members()) {
    const View view = found->member(member);
    if (!is_header_name(member.name)) {
      view.problem("'" + member.name + "' is no name of a header; use letters, digits and '-'");
    } else if (is_reserved_header(member.name)) {
      view.problem("the daemon sets the header '" + member.name + "'; remove it");
    }
    list.emplace_back(member.name, template_at(view));
  }
  return list;
}

std::optional<Path> NodeConfig::path(std::string_view field) {
  const auto found = find(field);
  return found ? path_at(*found) : std::nullopt;
}

std::optional<Path> NodeConfig::path_at(const View& view) {
  const auto text = view.text();
  auto path = text ? path_from(view, *text) : std::nullopt;
  if (path) outline_.writes.push_back(path->text());
  return path;
}

Path NodeConfig::path_or(std::string_view field, const char* otherwise) {
  if (auto given = path(field)) return std::move(*given);
  outline_.writes.emplace_back(otherwise);
  return std::move(*Path::compile(otherwise));
}

std::string NodeConfig::choice(std::string_view field, std::span<const std::string_view> choices,
                               std::string_view otherwise) {
  const auto found = find(field);
  return found ? found->one_of(choices).value_or(std::string(otherwise)) : std::string(otherwise);
}

int NodeConfig::integer(std::string_view field, int otherwise, int least, int most) {
  const auto found = find(field);
  return found ? static_cast<int>(found->integer(least, most).value_or(otherwise)) : otherwise;
}

std::chrono::milliseconds NodeConfig::duration(std::string_view field,
                                               std::optional<std::chrono::milliseconds> otherwise,
                                               std::chrono::milliseconds least,
                                               std::chrono::milliseconds most) {
  const auto found = otherwise ? find(field) : require(field);
  return found ? found->duration(least, most).value_or(least) : otherwise.value_or(least);
}

std::vector<std::string> NodeConfig::names(std::string_view field) {
  const auto found = find(field);
  std::vector<std::string> list;
  if (!found || !found->expect_list("a list of texts")) return list;
  for (const View& item : found->items()) {
    if (auto name = item.name()) list.push_back(std::move(*name));
  }
  return list;
}

std::optional<Regex> NodeConfig::regex(std::string_view field, Regex::Case which) {
  const auto found = find(field);
  const auto text = found ? found->text() : std::nullopt;
  if (!text) return std::nullopt;
  auto compiled = Regex::compile(*text, which);
  if (compiled) return std::move(*compiled);
  found->problem(compiled.error().message);
  return std::nullopt;
}

bool NodeConfig::flag(std::string_view field, bool otherwise) {
  const auto found = find(field);
  return found ? found->flag().value_or(otherwise) : otherwise;
}

Flow::Outline NodeConfig::take_outline() {
  for (const std::string_view field : {"text", "condition", "on"}) {
    const auto found = find(field);
    if (!found) continue;
    const Located* value = &found->value();
    if (value->is_array() && !value->items().empty()) value = &value->items().front();
    if (value->is_scalar()) {
      outline_.label = value->is_text() ? value->text() : value->scalar().dump();
    }
    break;
  }
  return std::move(outline_);
}

NodeIndex NodeConfig::branch(std::string_view field) {
  const auto found = find(field);
  const NodeIndex first =
      found ? compiler_.sequence(*found, path_ + '.' + std::string(field), next_) : next_;
  outline_.ways.push_back({std::string(field), first});
  return first;
}

NodeIndex NodeConfig::loop(const View& nodes, const std::string& name) {
  const NodeIndex first = compiler_.sequence(nodes, path_ + '.' + name, here_);
  if (first != here_) outline_.ways.push_back({name, first});
  return first;
}

NodeIndex NodeConfig::nodes_so_far() const {
  return compiler_.nodes_so_far();
}

std::vector<std::pair<std::string, NodeIndex>> NodeConfig::branches(std::string_view field) {
  std::vector<std::pair<std::string, NodeIndex>> list;
  const auto found = require(field);
  if (!found || !found->expect_mapping()) return list;
  for (const auto& member : found->value().members()) {
    const std::string path = path_ + '.' + std::string(field) + "[\"" + member.name + "\"]";
    list.emplace_back(member.name, compiler_.sequence(found->member(member), path, next_));
    outline_.ways.push_back({member.name, list.back().second});
  }
  return list;
}

void NodeConfig::expect_true() {
  const Located& value = config_.value();
  if (value.is_null() || value.scalar() == true) return;
  config_.problem("write `" + std::string(type_.name) + ": true`; there is nothing to configure");
}

std::vector<std::pair<Path, JsonTemplate>> NodeConfig::assignments(std::string_view root) {
  std::vector<std::pair<Path, JsonTemplate>> list;
  if (!config_.expect_mapping()) return list;
  if (config_.value().members().empty()) config_.problem("the mapping is empty; name a value");
  for (const auto& member : config_.value().members()) {
    const View view = config_.member(member);
    auto path = place_below(view, root, member.name);
    auto value = json_template_at(view);
    if (!path) continue;
    outline_.writes.push_back(path->text());
    list.emplace_back(std::move(*path), std::move(value));
  }
  return list;
}

std::vector<Path> NodeConfig::places(std::string_view root) {
  std::vector<Path> list;
  const auto take = [&](const View& view) {
    const auto name = view.text();
    if (!name) return;
    if (auto path = place_below(view, root, *name)) list.push_back(std::move(*path));
  };
  if (!config_.value().is_array()) {
    take(config_);
    return list;
  }
  if (config_.value().items().empty()) config_.problem("the list is empty; name a value");
  for (const View& item : config_.items()) take(item);
  return list;
}

void NodeConfig::use(Kind kind, const View& at, std::string name) {
  outline_.uses.push_back({kind, std::move(name), at.value().place()});
}

std::string NodeConfig::named(const std::optional<View>& found, Kind kind, std::string_view missing,
                              const Names KnownNames::*known) {
  auto name = found ? found->name() : std::nullopt;
  if (!name) return {};
  if (compiler_.known() != nullptr) expect_known(*found, missing, compiler_.known()->*known);
  use(kind, *found, *name);
  return *name;
}

std::string NodeConfig::connection(std::string_view field) {
  const auto found = find(field);
  auto name = named(found, Kind::connection, "there is no Connection", &KnownNames::connections);
  if (compiler_.known() != nullptr && compiler_.known()->models.contains(name)) {
    found->problem("the Connection '" + name +
                   "' leads to a language model; use llmPrompt or aiAgent");
  }
  return name;
}

std::string NodeConfig::model_connection(std::string_view field) {
  const auto found = require(field);
  auto name = named(found, Kind::connection, "there is no Connection", &KnownNames::connections);
  const KnownNames* known = compiler_.known();
  if (known != nullptr && known->connections.contains(name) && !known->models.contains(name)) {
    found->problem("the Connection '" + name + "' is not of type llm; name one that is");
  }
  return name;
}

std::string NodeConfig::flow_name(std::string_view field) {
  return named(require(field), Kind::flow, "there is no Flow", &KnownNames::flows);
}

std::string NodeConfig::lexicon(std::string_view field) {
  return named(find(field), Kind::lexicon, "there is no lexicon", &KnownNames::lexicons);
}

std::string NodeConfig::slot(std::string_view field) {
  const auto found = find(field);
  auto name = found ? found->name() : std::nullopt;
  if (!name) return {};
  use(Kind::slot, *found, *name);
  return *name;
}

NodeConfig::Knowledge NodeConfig::knowledge() {
  if (!config_.value().is_object()) return {};
  std::vector<std::string_view> all;  // `check_keys` has checked them
  for (const auto& member : config_.value().members()) all.push_back(member.name);
  return knowledge_at(Fields(config_, all));
}

NodeConfig::Knowledge NodeConfig::knowledge_at(const Fields& fields) {
  Knowledge knowledge{.store = fields.name("store"), .sources = fields.names("sources")};
  const auto at = fields.find("store");
  if (!at || knowledge.store.empty()) return knowledge;
  use(Kind::knowledge, *at, knowledge.store);
  const KnownNames* known = compiler_.known();
  if (known == nullptr) return knowledge;
  const auto store = known->knowledge.find(knowledge.store);
  if (store == known->knowledge.end()) {
    Names stores;
    for (const auto& [name, sources] : known->knowledge) stores.insert(name);
    expect_known(*at, "there is no knowledge store", stores);
    return knowledge;
  }
  fields.each("sources", [&](const View& item) {
    expect_known(item, "the knowledge store '" + knowledge.store + "' has no source",
                 store->second);
  });
  return knowledge;
}

std::string NodeConfig::node_id(std::string_view field) {
  const auto found = require(field);
  const auto id = found ? found->text() : std::nullopt;
  if (!id) return {};
  compiler_.expect_node(*found, *id, here_);
  return *id;
}

}  // namespace conversed::flows

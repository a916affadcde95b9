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

// Braces may contain the label of a Token. The labels are known during the check of a bundle. For a
// stored Flow any label is possible.
expression::IsLabel labels(const KnownNames* known) {
  return
      [known](std::string_view label) { return known == nullptr || known->tokens.contains(label); };
}

// Adds the error to the report.
template <typename T>
std::optional<T> valid(const View& view, model::Result<T> compiled) {
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
  return valid(view, Path::compile(prefix + name));
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
  outline_.continues = type.continues;
  check_keys();
}

// The problem of a key beside the type's name that may not stand there.
std::string NodeConfig::misplaced(const Located::Member& member,
                                  const std::vector<std::string_view>& inside,
                                  std::vector<std::string_view> beside) const {
  const std::string type(type_.name);
  const std::string& key = member.name;
  if (std::ranges::find(inside, key) != inside.end()) {
    const bool is_first = type_.shorthand.empty() || type_.shorthand == key;
    const std::string first = is_first ? "" : std::string(type_.shorthand) + ": .., ";
    return "'" + key + "' belongs to the mapping of '" + type + "'; indent it further than '" +
           type + "', or write `" + type + ": {" + first + key + ": ..}`";
  }
  beside.emplace_back("id");
  return "unknown key '" + key + "' beside '" + type + "'" + known_keys(member, beside);
}

void NodeConfig::check_keys() {
  std::vector<std::string_view> inside;
  std::vector<std::string_view> beside;
  for (const auto& field : type_.fields) {
    inside.push_back(field.name);
    if (field.is_beside) beside.push_back(field.name);
  }
  for (const auto& member : node_.value().members()) {
    // A second type was reported already.
    if (member.name == "id" || find_node_type(member.name) != nullptr) continue;
    const std::string path = node_.member(member).path();
    if (std::ranges::find(beside, member.name) == beside.end()) {
      node_.report().add(member.place, path, misplaced(member, inside, beside));
    } else if (!type_.is_free_form() && config_.value().find(member.name) != nullptr) {
      node_.report().add(member.place, path, "stands here and in the mapping as well; remove one");
    }
  }
  if (type_.is_free_form()) return;
  if (type_.fields.empty()) return expect_true();
  if (is_true_for_nothing()) {
    return config_.problem("write `" + std::string(type_.name) + ": {}`; no key is needed");
  }
  if (is_shorthand_by_locale(inside)) {
    return config_.problem("a mapping is the Node's config; write the texts by locale as `" +
                           std::string(type_.name) + ": {" + std::string(type_.shorthand) +
                           ": {..}}`");
  }
  if (config_.value().is_object() || type_.shorthand.empty()) expect_keys(config_, inside);
}

// Whether the config is a mapping of the project's locales, in place of a text.
bool NodeConfig::is_shorthand_by_locale(const std::vector<std::string_view>& inside) const {
  if (compiler_.known() == nullptr || type_.shorthand.empty()) return false;
  const auto field = std::ranges::find(type_.fields, type_.shorthand, &NodeField::name);
  if (field->form != Form::local_text && field->form != Form::local_texts) return false;
  const auto& members = config_.value().members();
  const auto& locales = compiler_.known()->locales;
  return !members.empty() && std::ranges::all_of(members, [&](const auto& member) {
    return std::ranges::find(locales, member.name) != locales.end() &&
           std::ranges::find(inside, member.name) == inside.end();
  });
}

// Whether the config is `true`, as of a Node without config, and the type needs no key either.
bool NodeConfig::is_true_for_nothing() const {
  if (config_.value().scalar() != true) return false;
  bool takes_true = false;
  for (const auto& field : type_.fields) {
    if (field.is_required) return false;
    const bool is_text = field.form == Form::local_text || field.form == Form::local_texts;
    takes_true = takes_true || (field.name == type_.shorthand && !is_text);
  }
  return !takes_true;
}

void NodeConfig::expect_true() {
  const Located& value = config_.value();
  if (value.is_null() || value.scalar() == true) return;
  config_.problem("write `" + std::string(type_.name) + ": true`; there is nothing to configure");
}

void NodeConfig::read_fields(Node& node) {
  for (const auto& field : type_.fields) {
    const auto found = field.is_required ? require(field.name) : find(field.name);
    if (field.read != nullptr) field.read(*this, field, found ? &*found : nullptr, node);
  }
}

std::optional<View> NodeConfig::find(std::string_view field) const {
  if (type_.is_free_form()) return std::nullopt;
  if (!config_.value().is_object() && field == type_.shorthand && !config_.value().is_null() &&
      !is_true_for_nothing()) {
    return config_;
  }
  if (auto inside = config_.find(field)) return inside;
  for (const auto& known : type_.fields) {
    if (known.name == field && known.is_beside) return node_.find(field);
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

void NodeConfig::import_problem(const View& at, std::string message) {
  if (compiler_.known() != nullptr) at.problem(std::move(message));
}

void NodeConfig::warn(const View& at, std::string message) {
  outline_.warnings.push_back({at.value().place(), std::move(message)});
}

Expression NodeConfig::condition_at(const View& view) {
  // `if: true` is accepted, for experiments.
  const auto& scalar = view.value().scalar();
  const auto text = scalar.is_boolean() || scalar.is_number() ? scalar.dump() : view.text();
  if (!text) return {};
  auto compiled = valid(view, Expression::compile(*text));
  if (compiled) note_reads(view, compiled->facts(), Reader::condition);
  return std::move(compiled).value_or(Expression());
}

Template NodeConfig::template_at(const View& view) {
  auto compiled =
      valid(view, Template::compile(view.text().value_or(""), {}, labels(compiler_.known())));
  if (compiled) note_reads(view, compiled->facts(), Reader::text);
  if (compiled && compiled->is_constant()) warn_of_expression(view);
  return std::move(compiled).value_or(Template());
}

// `addToContext: {count: context.count + 1}` stores the text, not the number.
void NodeConfig::warn_of_expression(const View& text) {
  if (!text.value().is_text()) return;
  const std::string& whole = text.value().text();
  const bool begins_so =
      std::ranges::any_of(std::array{"arguments.", "context.", "input.", "profile."},
                          [&](std::string_view root) { return whole.starts_with(root); });
  if (!begins_so || !Expression::compile(whole)) return;
  warn(text, "'" + whole + "' stays as it is written; write \"{{" + whole + "}}\" for its value");
}

LocalText NodeConfig::local_text_at(const View& view) {
  if (!view.value().is_object()) return LocalText(template_at(view));
  check_locales(view);
  std::vector<std::pair<std::string, Template>> texts;
  for (const auto& member : view.value().members()) {
    texts.emplace_back(member.name, template_at(view.member(member)));
  }
  return texts.empty() ? LocalText() : LocalText(std::move(texts));
}

void NodeConfig::check_locales(const View& mapping) {
  static const std::vector<std::string> any;
  expect_locales(mapping, compiler_.known() == nullptr ? any : compiler_.known()->locales);
  auto& noted = outline_.locales.emplace_back();
  noted.place = mapping.value().place();
  for (const auto& member : mapping.value().members()) noted.names.push_back(member.name);
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
    auto compiled =
        valid(view, JsonTemplate::compile(view.value().to_json(), {}, labels(compiler_.known())));
    if (compiled) return std::move(*compiled);
  }
  return std::move(*JsonTemplate::compile(nullptr));
}

void NodeConfig::note_reads(const View& view, expression::Facts facts, Reader reader) {
  outline_.reads.push_back({std::move(facts), view.value().place(), reader == Reader::condition});
}

std::optional<Path> NodeConfig::path_at(const View& view) {
  const auto text = view.text();
  auto path = text ? valid(view, Path::compile(*text)) : std::nullopt;
  if (path) note_write(path->text());
  return path;
}

std::optional<Regex> NodeConfig::regex_at(const View& view, Regex::Case which) {
  const auto text = view.text();
  return text ? valid(view, Regex::compile(*text, which)) : std::nullopt;
}

void NodeConfig::read(const View& at, const NodeField& field, int& into) {
  into = static_cast<int>(at.integer(field.least, field.most).value_or(into));
}

void NodeConfig::read(const View& at, const NodeField& field, std::chrono::milliseconds& into) {
  const std::chrono::milliseconds least(field.least);
  into = at.duration(least, std::chrono::milliseconds(field.most)).value_or(least);
}

void NodeConfig::read(const View& at, const NodeField& field, std::string& into) {
  auto text = field.choices.empty() ? at.name() : at.one_of(field.choices);
  into = std::move(text).value_or(into);
}

void NodeConfig::read(const View& at, const NodeField&, std::vector<std::string>& into) {
  if (!at.expect_list("a list of texts")) return;
  for (const View& item : at.items()) {
    if (auto name = item.name()) into.push_back(std::move(*name));
  }
}

void NodeConfig::read(const View& at, const NodeField&, std::vector<LocalText>& into) {
  if (!at.value().is_array()) return into.push_back(local_text_at(at));
  if (at.value().items().empty()) at.problem("the list is empty; write a text");
  for (const View& item : at.items()) into.push_back(local_text_at(item));
}

void NodeConfig::read(const View& at, const NodeField&, Headers& into) {
  if (!at.expect_mapping()) return;
  for (const auto& member : at.value().members()) {
    const View view = at.member(member);
    if (!is_word(member.name, "!#$%&'*+-.^_`|~")) {  // RFC 9110, 5.6.2
      view.problem("'" + member.name + "' is not a name of a header; use letters, digits and '-'");
    } else if (is_reserved_header(member.name)) {
      view.problem("the daemon sets the header '" + member.name + "'; remove it");
    }
    into.emplace_back(member.name, template_at(view));
  }
}

void NodeConfig::read(const View& at, const NodeField& field, NodeIndex& into) {
  into = branch(field.name, &at);
}

Flow::Outline NodeConfig::take_outline() {
  for (const std::string_view field :
       {"text", "condition", "on", "state", "if", "list", "flow", "url"}) {
    const auto found = find(field);
    if (!found) continue;
    const Located* value = &found->value();
    if (value->is_array() && !value->items().empty()) value = &value->items().front();
    if (value->is_object() && !value->members().empty()) {
      for (const auto& member : value->members()) {
        if (member.value.is_text()) outline_.labels.emplace_back(member.name, member.value.text());
      }
      value = &value->members().front().value;
    }
    if (value->is_scalar()) {
      outline_.label = value->is_text() ? value->text() : value->scalar().dump();
    }
    break;
  }
  return std::move(outline_);
}

NodeIndex NodeConfig::branch(std::string_view field, const View* nodes) {
  const std::string name(field);
  return branch_at(name, name, nodes);
}

NodeIndex NodeConfig::branch_at(const std::string& part, std::string name, const View* nodes) {
  const NodeIndex first = nodes ? compiler_.sequence(*nodes, path_ + '.' + part, next_) : next_;
  outline_.ways.push_back({std::move(name), first});
  return first;
}

std::optional<NodeIndex> NodeConfig::loop(const View& nodes, const std::string& name) {
  const NodeIndex first = compiler_.sequence(nodes, path_ + '.' + name, here_);
  if (first == here_) return std::nullopt;
  outline_.ways.push_back({name, first});
  return first;
}

NodeIndex NodeConfig::nodes_so_far() const {
  return compiler_.nodes_so_far();
}

void NodeConfig::refuse_waits(const View& at, NodeIndex begin) {
  for (auto i = static_cast<std::uint32_t>(begin); NodeIndex(i) < nodes_so_far(); ++i) {
    const auto& slot = compiler_.slot(NodeIndex(i));
    if (slot.node == nullptr) continue;
    if (slot.node->awaits() == Node::Awaits::input) {
      at.report().add(slot.outline.place, at.path(),
                      "the Node " + slot.address + " waits for another input; lead to it by goTo");
    }
    if (slot.type != &execute_flow_node) continue;
    outline_.pauses.insert(outline_.pauses.end(), slot.outline.uses.begin(),
                           slot.outline.uses.end());
  }
}

std::vector<std::pair<std::string, NodeIndex>> NodeConfig::branches(std::string_view field,
                                                                    const View& mapping) {
  std::vector<std::pair<std::string, NodeIndex>> list;
  if (!mapping.expect_mapping()) return list;
  for (const auto& member : mapping.value().members()) {
    const std::string path = path_ + '.' + std::string(field) + "[\"" + member.name + "\"]";
    list.emplace_back(member.name, compiler_.sequence(mapping.member(member), path, next_));
    outline_.ways.push_back({member.name, list.back().second});
  }
  return list;
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
    note_write(path->text());
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

std::string NodeConfig::named(const View& at, Kind kind, std::string_view missing,
                              const Names KnownNames::*known) {
  auto name = at.name();
  if (!name) return {};
  if (compiler_.known() != nullptr) expect_known(at, missing, compiler_.known()->*known);
  use(kind, at, *name);
  return *name;
}

void NodeConfig::connection(const View& at, std::string& into) {
  into = named(at, Kind::connection, "there is no Connection", &KnownNames::connections);
  if (compiler_.known() != nullptr && compiler_.known()->models.contains(into)) {
    at.problem("the Connection '" + into + "' leads to a language model; use llmPrompt or aiAgent");
  }
}

void NodeConfig::model_connection(const View& at, std::string& into) {
  into = named(at, Kind::connection, "there is no Connection", &KnownNames::connections);
  const KnownNames* known = compiler_.known();
  if (known != nullptr && known->connections.contains(into) && !known->models.contains(into)) {
    at.problem("the Connection '" + into + "' is not of type llm; name one that is");
  }
}

void NodeConfig::flow_name(const View& at, std::string& into) {
  into = named(at, Kind::flow, "there is no Flow", &KnownNames::flows);
}

void NodeConfig::lexicon(const View& at, std::string& into) {
  into = named(at, Kind::lexicon, "there is no lexicon", &KnownNames::lexicons);
}

void NodeConfig::slot(const View& at, std::string& into) {
  into = at.name().value_or("");
  if (!into.empty()) use(Kind::slot, at, into);
}

void NodeConfig::node_id(const View& at, std::string& into) {
  into = at.text().value_or("");
  if (at.value().is_text()) compiler_.expect_node(at, into, here_);
}

void NodeConfig::knowledge(const View& store, Knowledge& into) {
  into = knowledge_at(store, find("sources"));
}

NodeConfig::Knowledge NodeConfig::knowledge_at(const View& store,
                                               const std::optional<View>& sources) {
  Knowledge knowledge{.store = store.name().value_or(""), .sources = {}};
  if (sources) knowledge.sources = sources->names();
  if (knowledge.store.empty()) return knowledge;
  use(Kind::knowledge, store, knowledge.store);
  const KnownNames* known = compiler_.known();
  if (known == nullptr) return knowledge;
  const auto found = known->knowledge.find(knowledge.store);
  if (found == known->knowledge.end()) {
    Names stores;
    for (const auto& [name, names] : known->knowledge) stores.insert(name);
    expect_known(store, "there is no knowledge store", stores);
  } else if (sources) {
    for (const View& item : sources->items()) {
      expect_known(item, "the knowledge store '" + knowledge.store + "' has no source",
                   found->second);
    }
  }
  return knowledge;
}

}  // namespace conversed::flows

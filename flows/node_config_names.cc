// The names of a project and of a Flow that a Node uses.
#include "flows/flow_compiler.h"
#include "flows/node_config.h"

namespace conversed::flows {

using Kind = Flow::Use::Kind;

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

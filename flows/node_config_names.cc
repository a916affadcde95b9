// What a Node names of its project and of its Flow.
#include <set>

#include "flows/flow_compiler.h"
#include "flows/node_config.h"

namespace conversed::flows {

std::string NodeConfig::connection(std::string_view field) {
  const auto found = find(field);
  if (!found) return {};
  auto name = found->name();
  if (!name) return {};
  const KnownNames* known = compiler_.known();
  if (known != nullptr && !known->connections.contains(*name)) {
    found->problem("there is no Connection '" + *name + "'" + near_name(*name, known->connections));
  }
  if (known != nullptr && known->models.contains(*name)) {
    found->problem("the Connection '" + *name +
                   "' leads to a language model; llmPrompt and aiAgent "
                   "take it");
  }
  use(Flow::Use::Kind::connection, *found, *name);
  return *name;
}

std::string NodeConfig::model_connection(std::string_view field) {
  const auto found = require(field);
  auto name = found ? found->name() : std::nullopt;
  if (!name) return {};
  const KnownNames* known = compiler_.known();
  if (known != nullptr && !known->connections.contains(*name)) {
    found->problem("there is no Connection '" + *name + "'" + near_name(*name, known->connections));
  } else if (known != nullptr && !known->models.contains(*name)) {
    found->problem("the Connection '" + *name + "' is not of type llm");
  }
  use(Flow::Use::Kind::connection, *found, *name);
  return *name;
}

NodeConfig::Knowledge NodeConfig::knowledge() {
  if (!config_.value().is_object()) return {};
  std::vector<std::string_view> all;  // which keys there may be was checked
  for (const auto& member : config_.value().members()) all.push_back(member.name);
  return knowledge_at(Fields(config_, all));
}

NodeConfig::Knowledge NodeConfig::knowledge_at(const Fields& fields) {
  Knowledge knowledge{.store = fields.name("store"), .sources = fields.names("sources")};
  const auto at = fields.find("store");
  if (!at || knowledge.store.empty()) return knowledge;
  use(Flow::Use::Kind::knowledge, *at, knowledge.store);
  const KnownNames* known = compiler_.known();
  if (known == nullptr) return knowledge;
  const auto store = known->knowledge.find(knowledge.store);
  if (store == known->knowledge.end()) {
    std::set<std::string, std::less<>> stores;
    for (const auto& [name, sources] : known->knowledge) stores.insert(name);
    at->problem("there is no knowledge store '" + knowledge.store + "'" +
                near_name(knowledge.store, stores));
    return knowledge;
  }
  fields.each("sources", [&](const View& item) {
    if (!item.value().is_text() || store->second.contains(item.value().text())) return;
    item.problem("the knowledge store '" + knowledge.store + "' has no source '" +
                 item.value().text() + "'" + near_name(item.value().text(), store->second));
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

void NodeConfig::use(Flow::Use::Kind kind, const View& at, std::string name) {
  outline_.uses.push_back({kind, std::move(name), at.value().place()});
}

std::string NodeConfig::flow_name(std::string_view field) {
  const auto found = require(field);
  auto name = found ? found->name() : std::nullopt;
  if (!name) return {};
  const KnownNames* known = compiler_.known();
  if (known != nullptr && !known->flows.contains(*name)) {
    found->problem("there is no Flow '" + *name + "'" + near_name(*name, known->flows));
  }
  use(Flow::Use::Kind::flow, *found, *name);
  return *name;
}

std::string NodeConfig::lexicon(std::string_view field) {
  const auto found = find(field);
  auto name = found ? found->name() : std::nullopt;
  if (!name) return {};
  const KnownNames* known = compiler_.known();
  if (known != nullptr && !known->lexicons.contains(*name)) {
    found->problem("there is no lexicon '" + *name + "'" + near_name(*name, known->lexicons));
  }
  use(Flow::Use::Kind::lexicon, *found, *name);
  return *name;
}

std::string NodeConfig::slot(std::string_view field) {
  const auto found = find(field);
  auto name = found ? found->name() : std::nullopt;
  if (!name) return {};
  use(Flow::Use::Kind::slot, *found, *name);
  return *name;
}

}  // namespace conversed::flows

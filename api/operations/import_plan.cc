#include "api/operations/import_plan.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>

#include "flows/flow.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using Change = PlannedPart::Change;

// ---- The name and the content of each kind of part

const std::string& name_of(const model::BundleMember& member) {
  return member.email;
}
const std::string& name_of(const model::BundleToken& token) {
  return token.label;
}
template <typename Part>
const std::string& name_of(const Part& part) {
  return part.name;
}

// The user's own name is not the project's.
json content_of(const model::BundleMember& member) {
  const std::set<std::string> roles(member.roles.begin(), member.roles.end());
  const std::set<std::string> locales(member.allowed_locales.begin(), member.allowed_locales.end());
  return json::array({roles, locales});
}

json content_of(const model::BundleToken& token) {
  return json::array({token.type, token.script});
}

json content_of(const model::BundleConnection& connection) {
  return json::array({connection.type, connection.source, connection.fields, connection.hosts});
}

json content_of(const model::BundleLexicon& lexicon) {
  json entries = json::array();
  for (const auto& entry : lexicon.entries) {
    entries.push_back(
        json::array({entry.main_keyphrase, entry.keyphrases, entry.slots, entry.data}));
  }
  return json::array({lexicon.slots, std::move(entries)});
}

json content_of(const model::BundleKnowledgeStore& store) {
  json sources = json::array();
  for (const auto& source : store.sources) {
    json chunks = json::array();
    for (const auto& chunk : source.chunks) chunks.push_back(json::array({chunk.text, chunk.data}));
    sources.push_back(json::array({source.name, std::move(chunks)}));
  }
  return sources;
}

json content_of(const model::BundleFlow& flow) {
  return flow.definition;
}

// Without the URLToken: an import without one keeps it.
json content_of(const model::BundleEndpoint& endpoint) {
  json webhooks = json::array();
  for (const auto& webhook : endpoint.webhook) {
    webhooks.push_back(
        json::array({webhook.url, webhook.url_source, webhook.secret, webhook.secret_source}));
  }
  return json::array({endpoint.flow, endpoint.session_expiry.count(), endpoint.active_only,
                      endpoint.error_text, endpoint.error_flow, std::move(webhooks)});
}

// The parts of a project without a name of their own.
struct Setting {
  std::string name;
  json value;
};

json content_of(const Setting& setting) {
  return setting.value;
}

// An import without a journey removes the present one. None for a project that does not exist.
std::vector<Setting> settings_of(const model::Bundle& bundle, bool has_journey) {
  std::vector<Setting> settings;
  if (bundle.project_name.empty()) return settings;
  settings.push_back({"locales", bundle.locales});
  if (has_journey) settings.push_back({"journey", bundle.proactive});
  return settings;
}

// ---- Comparing

template <typename Part>
bool is_same(const Part& present, const Part& imported) {
  if constexpr (std::is_same_v<Part, model::BundleEndpoint>) {
    if (!imported.url_token.empty() && imported.url_token != present.url_token) return false;
  }
  return content_of(present) == content_of(imported);
}

template <typename Part>
void compare(const char* kind, const std::vector<Part>& present, const std::vector<Part>& imported,
             std::vector<PlannedPart>& plan) {
  std::map<std::string, const Part*, std::less<>> left;
  for (const auto& part : present) left.emplace(name_of(part), &part);
  for (const auto& part : imported) {
    const auto found = left.find(name_of(part));
    Change change = Change::added;
    if (found != left.end()) {
      change = is_same(*found->second, part) ? Change::unchanged : Change::changed;
      left.erase(found);
    }
    plan.push_back({kind, name_of(part), change});
  }
  for (const auto& [name, part] : left) plan.push_back({kind, name, Change::left_over});
}

// The Flow that the bundle makes. Null if the bundle lacks it.
std::shared_ptr<const flows::Flow> imported_flow(const model::Bundle& bundle,
                                                 const std::string& name) {
  const auto found = std::ranges::find(bundle.flows, name, &model::BundleFlow::name);
  if (found == bundle.flows.end()) return nullptr;
  auto flow = flows::Flow::compile(found->definition);
  return flow ? *std::move(flow) : nullptr;
}

// Whether a session that waits at the Node, or in a Flow that it entered, goes on with an input.
bool can_go_on(const flows::Flow& flow, const std::string& address) {
  const auto at = flow.find(address);
  if (at == flows::end_of_flow) return false;
  const auto& slot = flow.slot(at);
  return slot.node->awaits() == flows::Node::Awaits::input ||
         std::ranges::find(slot.outline.uses, flows::Flow::Use::Kind::flow,
                           &flows::Flow::Use::kind) != slot.outline.uses.end();
}

void add_sessions(const model::Bundle& bundle, const StandingSessions& sessions,
                  PlannedPart& planned) {
  if (planned.part != "Flow" || planned.change == Change::unchanged) return;
  const auto flow = imported_flow(bundle, planned.name);
  for (const auto& [place, count] : sessions.places()) {
    if (place.flow != planned.name) continue;
    auto& waiting = planned.waiting;
    // A running execution stays in its version.
    const bool stays = place.version != 0 || flow == nullptr || can_go_on(*flow, place.at);
    const std::string& address = place.at;
    auto node = std::ranges::find_if(
        waiting, [&](const auto& each) { return each.node == address && each.stays == stays; });
    if (node == waiting.end()) node = waiting.insert(waiting.end(), {place.at, 0, stays});
    node->sessions += count;
  }
}

}  // namespace

std::string_view to_string(Change change) {
  switch (change) {
    case Change::added:
      return "new";
    case Change::changed:
      return "changed";
    case Change::unchanged:
      return "unchanged";
    case Change::left_over:
      return "leftOver";
    case Change::deleted:
      return "deleted";
  }
  return "";
}

std::vector<PlannedPart> import_plan(const model::Bundle& project, const model::Bundle& bundle,
                                     const StandingSessions& sessions,
                                     const std::vector<store::RemovedPart>& removed) {
  std::vector<PlannedPart> plan;
  const bool has_journey = !project.proactive.is_null() || !bundle.proactive.is_null();
  compare("project", settings_of(project, has_journey), settings_of(bundle, has_journey), plan);
  compare("member", project.members, bundle.members, plan);
  compare("Token", project.tokens, bundle.tokens, plan);
  compare("Connection", project.connections, bundle.connections, plan);
  compare("lexicon", project.lexicons, bundle.lexicons, plan);
  compare("knowledge store", project.knowledge_stores, bundle.knowledge_stores, plan);
  compare("Flow", project.flows, bundle.flows, plan);
  compare("Endpoint", project.endpoints, bundle.endpoints, plan);
  for (auto& planned : plan) {
    const bool is_removed =
        std::ranges::find(removed, store::RemovedPart{planned.part, planned.name}) != removed.end();
    if (is_removed) planned.change = Change::deleted;
    add_sessions(bundle, sessions, planned);
  }
  return plan;
}

}  // namespace conversed::api

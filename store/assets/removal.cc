#include "store/assets/removal.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "store/model/key_range.h"
#include "store/model/session.h"
#include "store/sql/read.h"

namespace conversed::store {

using nlohmann::json;

namespace {

constexpr std::size_t sessions_at_once = 500;

struct Named {
  std::string id;
  std::string name;
};

// The Flows and Endpoints that a transaction deletes together.
struct Doomed {
  std::vector<Named> flows{};
  std::vector<Named> endpoints{};
};

const Named* find_id(const std::vector<Named>& list, const std::string& id) {
  const auto found = std::ranges::find(list, id, &Named::id);
  return found == list.end() ? nullptr : &*found;
}

model::KeyRange keys_of_endpoint(const std::string& project_id, const std::string& endpoint_id) {
  auto from = model::SessionKey{project_id, endpoint_id, "", ""}.encode();
  from.pop_back();  // the separator behind the user
  auto to = from;
  ++to.back();
  return {std::move(from), std::move(to)};
}

// Finds the usages of what is deleted by what stays.
class Search {
 public:
  Search(Writer& writer, const std::string& project_id, const Doomed& doomed,
         const FlowReader& reader)
      : connection_(writer.connection()),
        now_(writer.now()),
        project_(project_id),
        doomed_(doomed),
        reader_(reader) {}

  std::vector<PartUsage> run() {
    if (doomed_.flows.empty() && doomed_.endpoints.empty()) return {};
    add_endpoints();
    add_flows();
    add_journey();
    add_sessions();
    for (const auto& endpoint : doomed_.endpoints) add_waiting(endpoint);
    for (const auto& flow : doomed_.flows) {
      // Ids are in no other text.
      add("Flow", flow.name, PartUsage::Kind::follow_ups,
          connection_.number("SELECT COUNT(*) FROM follow_ups WHERE value LIKE :p",
                             "%" + flow.id + "%"));
    }
    return std::move(usages_);
  }

 private:
  void add(const std::string& part, const std::string& name, PartUsage::Kind kind,
           std::int64_t number) {
    if (number > 0) usages_.push_back({part, name, kind, "", number});
  }
  void add_user(const std::string& flow, PartUsage::Kind kind, const std::string& by) {
    usages_.push_back({"Flow", flow, kind, by, 0});
  }

  void add_endpoints() {
    connection_.rows(
        [&](const std::string& id, const std::string& name, const std::string& flow,
            const std::string& follow_up_flow, std::chrono::milliseconds expiry) {
          expiries_[id] = expiry;
          if (find_id(doomed_.endpoints, id) != nullptr) return;
          if (const auto* used = find_id(doomed_.flows, flow)) {
            add_user(used->name, PartUsage::Kind::endpoint, name);
          }
          if (const auto* used = find_id(doomed_.flows, follow_up_flow)) {
            add_user(used->name, PartUsage::Kind::follow_up_flow, name);
          }
        },
        "SELECT id, name, flow_id, COALESCE(follow_up_flow_id, ''), session_expiry_ms"
        " FROM endpoints WHERE project_id = :p ORDER BY name",
        project_);
  }

  void add_flows() {
    if (doomed_.flows.empty()) return;
    connection_.rows(
        [&](const std::string& id, const std::string& name, const std::string& definition) {
          if (find_id(doomed_.flows, id) != nullptr) return;
          const auto entered = reader_.entered(definition);
          for (const auto& flow : doomed_.flows) {
            if (std::ranges::find(entered, flow.name) == entered.end()) continue;
            add_user(flow.name, PartUsage::Kind::flow, name);
          }
        },
        "SELECT f.id, f.name, v.definition FROM flows f JOIN flow_versions v ON v.flow_id = f.id"
        " AND v.version = f.version WHERE f.project_id = :p ORDER BY f.name",
        project_);
  }

  // The bundle's journey, and the one that was set up.
  void add_journey() {
    std::vector<json> journeys;
    if (const auto bundled =
            connection_.value<json>("SELECT proactive FROM projects WHERE id = :i", project_);
        bundled && bundled->is_object()) {
      journeys.push_back(bundled->value("journey", json()));
    }
    if (auto present = connection_.value<json>(
            "SELECT definition FROM journeys WHERE project_id = :p", project_)) {
      journeys.push_back(*std::move(present));
    }
    const auto is_named = [&](const char* member, const std::string& name) {
      return std::ranges::any_of(journeys, [&](const json& journey) {
        return journey.is_object() && journey.value(member, json()) == name;
      });
    };
    for (const auto& flow : doomed_.flows) {
      if (is_named("flow", flow.name)) add_user(flow.name, PartUsage::Kind::journey, "");
    }
    for (const auto& endpoint : doomed_.endpoints) {
      if (!is_named("endpoint", endpoint.name)) continue;
      usages_.push_back({"Endpoint", endpoint.name, PartUsage::Kind::journey, "", 0});
    }
  }

  struct Place {
    std::int64_t row = 0;
    model::SessionKey key;
    model::Timestamp active{};
    std::string flow_state;
    std::optional<std::string> execution;
    std::int64_t inbox_size = 0;
    bool has_calls = false;
  };

  // Reads all sessions of the project that wait, while all commits wait. Only rows of such sessions
  // leave the database.
  void add_sessions() {
    std::int64_t row = 0;
    for (std::size_t found = sessions_at_once; found == sessions_at_once;) {
      const auto places = connection_.all(
          row_of<&Place::row, &Place::key, &Place::active, &Place::flow_state, &Place::execution,
                 &Place::inbox_size, &Place::has_calls>,
          "SELECT s.id, s.key, s.last_activity_at, s.flow_state, s.execution, s.inbox_size, CASE"
          " WHEN EXISTS (SELECT 1 FROM pending_calls c WHERE c.session = s.id) THEN 1 ELSE 0 END"
          " FROM sessions s WHERE s.project_id = :p AND s.id > :r AND (s.execution IS NOT NULL OR"
          " s.inbox_size > 0 OR s.flow_state LIKE '%\"waiting\"%') ORDER BY s.id LIMIT :l",
          project_, row, sessions_at_once);
      for (const auto& place : places) {
        row = place.row;
        count(place);
      }
      found = places.size();
    }
    for (const auto& [part, number] : sessions_) {
      add(part.first, part.second, PartUsage::Kind::sessions, number);
    }
  }

  void count(const Place& place) {
    const auto expiry = expiries_.find(place.key.endpoint_id);
    if (expiry == expiries_.end()) return;  // its Endpoint is gone
    const bool has_expired = expiry->second.count() > 0 && now_ - place.active > expiry->second;
    if (has_expired && place.inbox_size == 0 && !place.has_calls) return;
    const auto flows = flows_of(place);
    if (const auto* endpoint = find_id(doomed_.endpoints, place.key.endpoint_id);
        endpoint != nullptr && (!flows.empty() || place.execution || place.inbox_size > 0)) {
      ++sessions_[{"Endpoint", endpoint->name}];
    }
    for (const auto& flow : doomed_.flows) {
      if (flows.contains(flow.name)) ++sessions_[{"Flow", flow.name}];
    }
  }

  // Damaged parts are left out: the session can't go on there.
  std::set<std::string> flows_of(const Place& place) const {
    std::optional<model::Execution> execution;
    if (place.execution) {
      auto read = model::execution_from(json::parse(*place.execution, nullptr, false));
      if (read) execution = *std::move(read);
    }
    const auto state = json::parse(place.flow_state, nullptr, false);
    const auto names = reader_.standing(state.is_discarded() ? json() : state, execution);
    return {names.begin(), names.end()};
  }

  void add_waiting(const Named& endpoint) {
    const auto keys = keys_of_endpoint(project_, endpoint.id);
    add("Endpoint", endpoint.name, PartUsage::Kind::follow_ups,
        connection_.number("SELECT COUNT(*) FROM follow_ups f JOIN sessions s ON s.id = f.session"
                           " WHERE s.key >= :f AND s.key < :t",
                           keys.from, keys.to));
    add("Endpoint", endpoint.name, PartUsage::Kind::outputs,
        connection_.number("SELECT COUNT(*) FROM deliveries WHERE endpoint_id = :e", endpoint.id));
    add("Endpoint", endpoint.name, PartUsage::Kind::schedules,
        connection_.number("SELECT COUNT(*) FROM schedules WHERE key >= :f AND key < :t", keys.from,
                           keys.to));
  }

  Connection& connection_;
  const model::Timestamp now_;
  const std::string& project_;
  const Doomed& doomed_;
  const FlowReader& reader_;
  std::map<std::string, std::chrono::milliseconds> expiries_;             // of all Endpoints, by id
  std::map<std::pair<std::string, std::string>, std::int64_t> sessions_;  // by part and name
  std::vector<PartUsage> usages_;
};

// Deletes them, unless something uses them.
Removal remove_parts(Writer& writer, const std::string& project_id, const Doomed& doomed,
                     const FlowReader& reader) {
  Removal removal;
  for (const auto& each : doomed.flows) removal.parts.push_back({"Flow", each.name});
  for (const auto& each : doomed.endpoints) removal.parts.push_back({"Endpoint", each.name});
  removal.usages = Search(writer, project_id, doomed, reader).run();
  if (!removal.usages.empty()) return removal;
  Connection& connection = writer.connection();
  for (const auto& endpoint : doomed.endpoints) {
    connection.run("INSERT INTO removed_endpoints (id, project_id) VALUES (:i, :p)", endpoint.id,
                   project_id);
    connection.run("DELETE FROM endpoint_health WHERE endpoint_id = :e", endpoint.id);
    connection.run("DELETE FROM endpoints WHERE id = :i", endpoint.id);
  }
  for (const auto& flow : doomed.flows) {
    connection.run("DELETE FROM flow_versions WHERE flow_id = :f", flow.id);
    connection.run("DELETE FROM flows WHERE id = :i", flow.id);
  }
  return removal;
}

using NamesInBundle = std::set<std::string_view>;

template <typename Part>
NamesInBundle names_of(const std::vector<Part>& bundled, std::string Part::*name) {
  NamesInBundle names;
  for (const Part& part : bundled) names.insert(part.*name);
  return names;
}

// The rows of the project, or of an owner in it, that the bundle does not name.
class LeftOver {
 public:
  LeftOver(Connection& connection, const std::string& project_id)
      : connection_(connection), project_(project_id) {}

  std::vector<Named> of(const std::string& table, const NamesInBundle& bundled,
                        const std::string& column = "name") {
    return without(bundled, connection_.all(row_of<&Named::id, &Named::name>,
                                            "SELECT id, " + column + " FROM " + table +
                                                " WHERE project_id = :p ORDER BY " + column,
                                            project_));
  }

  struct Owner {
    std::string table;
    std::string column;  // refers to it
    std::string name;
  };
  std::vector<Named> of(const std::string& table, const NamesInBundle& bundled,
                        const Owner& owner) {
    const auto sql = "SELECT t.id, t.name FROM " + table + " t JOIN " + owner.table +
                     " o ON o.id = t." + owner.column + " WHERE o.project_id = :p AND o.name = :n";
    return without(bundled,
                   connection_.all(row_of<&Named::id, &Named::name>, sql, project_, owner.name));
  }

 private:
  static std::vector<Named> without(const NamesInBundle& bundled, std::vector<Named> present) {
    std::erase_if(present, [&](const Named& each) { return bundled.contains(each.name); });
    return present;
  }

  Connection& connection_;
  const std::string& project_;
};

void delete_source(Connection& connection, const std::string& id) {
  connection.run("DELETE FROM knowledge_chunks WHERE source_id = :s", id);
  connection.run("DELETE FROM knowledge_sources WHERE id = :s", id);
}

void delete_store(Connection& connection, const std::string& id) {
  for (const auto& source :
       connection.values<std::string>("SELECT id FROM knowledge_sources WHERE store_id = :s", id)) {
    delete_source(connection, source);
  }
  connection.run("DELETE FROM knowledge_stores WHERE id = :s", id);
}

void delete_lexicon(Connection& connection, const std::string& id) {
  connection.run("DELETE FROM lexicon_entries WHERE lexicon_id = :l", id);
  connection.run("DELETE FROM lexicon_slots WHERE lexicon_id = :l", id);
  connection.run("DELETE FROM lexicons WHERE id = :l", id);
}

// What only Flows use. The bundle's Flows use only the bundle's parts.
void remove_others(Connection& connection, const std::string& project_id,
                   const model::Bundle& bundle, std::vector<RemovedPart>& parts) {
  LeftOver left(connection, project_id);
  const auto remove_each = [&](const char* part, const std::vector<Named>& list,
                               const auto& remove_one) {
    for (const auto& each : list) {
      remove_one(each.id);
      parts.push_back({part, each.name});
    }
  };
  remove_each("Token",
              left.of("tokens", names_of(bundle.tokens, &model::BundleToken::label), "label"),
              [&](const auto& id) { connection.run("DELETE FROM tokens WHERE id = :i", id); });
  remove_each("Connection",
              left.of("connections", names_of(bundle.connections, &model::BundleConnection::name)),
              [&](const auto& id) { connection.run("DELETE FROM connections WHERE id = :i", id); });
  remove_each("lexicon",
              left.of("lexicons", names_of(bundle.lexicons, &model::BundleLexicon::name)),
              [&](const auto& id) { delete_lexicon(connection, id); });
  remove_each("knowledge store",
              left.of("knowledge_stores",
                      names_of(bundle.knowledge_stores, &model::BundleKnowledgeStore::name)),
              [&](const auto& id) { delete_store(connection, id); });
  for (const auto& store : bundle.knowledge_stores) {
    for (const auto& source :
         left.of("knowledge_sources", names_of(store.sources, &model::BundleSource::name),
                 LeftOver::Owner{"knowledge_stores", "store_id", store.name})) {
      delete_source(connection, source.id);
    }
  }
  for (const auto& lexicon : bundle.lexicons) {
    for (const auto& slot : left.of("lexicon_slots", {lexicon.slots.begin(), lexicon.slots.end()},
                                    LeftOver::Owner{"lexicons", "lexicon_id", lexicon.name})) {
      connection.run("DELETE FROM lexicon_slots WHERE id = :i", slot.id);
    }
  }
}

}  // namespace

std::string_view to_string(PartUsage::Kind kind) {
  switch (kind) {
    case PartUsage::Kind::endpoint:
      return "endpoint";
    case PartUsage::Kind::follow_up_flow:
      return "followUpFlow";
    case PartUsage::Kind::flow:
      return "flow";
    case PartUsage::Kind::journey:
      return "journey";
    case PartUsage::Kind::sessions:
      return "sessions";
    case PartUsage::Kind::follow_ups:
      return "followUps";
    case PartUsage::Kind::outputs:
      return "outputs";
    case PartUsage::Kind::schedules:
      return "schedules";
  }
  return "";
}

Result<Removal> remove_flow(Writer& writer, const std::string& flow_id, const FlowReader& reader) {
  const auto row = writer.connection().row<std::string, std::string>(
      "SELECT project_id, name FROM flows WHERE id = :i", flow_id);
  if (!row) return fail(Errc::not_found, "there is no such Flow");
  const auto& [project, name] = *row;
  return remove_parts(writer, project, {.flows = {Named{flow_id, name}}}, reader);
}

Result<Removal> remove_endpoint(Writer& writer, const std::string& endpoint_id,
                                const FlowReader& reader) {
  const auto row = writer.connection().row<std::string, std::string>(
      "SELECT project_id, name FROM endpoints WHERE id = :i", endpoint_id);
  if (!row) return fail(Errc::not_found, "there is no such Endpoint");
  const auto& [project, name] = *row;
  return remove_parts(writer, project, {.endpoints = {Named{endpoint_id, name}}}, reader);
}

Removal remove_left_over(Writer& writer, const std::string& project_id, const model::Bundle& bundle,
                         const FlowReader& reader) {
  LeftOver left(writer.connection(), project_id);
  const Doomed doomed{
      .flows = left.of("flows", names_of(bundle.flows, &model::BundleFlow::name)),
      .endpoints = left.of("endpoints", names_of(bundle.endpoints, &model::BundleEndpoint::name))};
  auto removal = remove_parts(writer, project_id, doomed, reader);
  remove_others(writer.connection(), project_id, bundle, removal.parts);
  return removal;
}

}  // namespace conversed::store

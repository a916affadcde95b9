#include "store/assets/removal.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "store/assets/project_removal.h"
#include "store/model/names.h"
#include "store/model/session.h"
#include "store/sql/read.h"

namespace conversed::store {

using nlohmann::json;
using Kind = PartUsage::Kind;
using Part = PartsToDelete::Part;

namespace {

constexpr std::size_t sessions_at_once = 500;

constexpr model::Names<Kind, 8> kinds{{{{Kind::endpoint, "endpoint"},
                                        {Kind::follow_up_flow, "followUpFlow"},
                                        {Kind::flow, "flow"},
                                        {Kind::journey, "journey"},
                                        {Kind::sessions, "sessions"},
                                        {Kind::follow_ups, "followUps"},
                                        {Kind::outputs, "outputs"},
                                        {Kind::schedules, "schedules"}}}};

const Part* find_id(const std::vector<Part>& list, const std::string& id) {
  const auto found = std::ranges::find(list, id, &Part::id);
  return found == list.end() ? nullptr : &*found;
}

using Names = std::set<std::string_view>;

template <typename Element>
Names names_of(const std::vector<Element>& list, std::string Element::*name) {
  Names names;
  for (const Element& each : list) names.insert(each.*name);
  return names;
}

// Adds usages. Those of the same part and kind in several shards become one.
void add_usages(std::vector<PartUsage>& all, const std::vector<PartUsage>& more) {
  for (const auto& each : more) {
    const auto same = std::ranges::find_if(all, [&](const PartUsage& present) {
      return present.part == each.part && present.name == each.name && present.kind == each.kind &&
             present.by == each.by;
    });
    if (same == all.end()) {
      all.push_back(each);
    } else {
      same->count += each.count;
    }
  }
}

// ---- The first step, by reading connections

// Counts the sessions and follow-ups that still use the parts.
class WorkInHand {
 public:
  WorkInHand(const PartsToDelete& parts, const FlowReader& reader, model::Timestamp now)
      : parts_(parts), reader_(reader), now_(now) {}

  void read_expiries(Connection& connection) {
    connection.rows(
        [&](const std::string& id, std::chrono::milliseconds expiry) { expiries_[id] = expiry; },
        "SELECT id, session_expiry_ms FROM endpoints WHERE project_id = :p", parts_.project_id);
  }

  // Begins with the first session of another shard.
  void begin_shard() { row_ = 0; }

  // Reads the shard's next sessions. False: there are no more.
  bool read_on(Connection& connection) {
    const auto places = connection.all(
        row_of<&Place::row, &Place::key, &Place::active, &Place::flow_state, &Place::execution,
               &Place::inbox_size, &Place::has_calls>,
        "SELECT s.id, s.key, s.last_activity_at, s.flow_state, s.execution, s.inbox_size, CASE"
        " WHEN EXISTS (SELECT 1 FROM pending_calls c WHERE c.session = s.id) THEN 1 ELSE 0 END"
        " FROM sessions s WHERE s.project_id = :p AND s.id > :r ORDER BY s.id LIMIT :l",
        parts_.project_id, row_, sessions_at_once);
    if (places.empty()) return false;
    for (const auto& place : places) count(place);
    // CROSS JOIN makes SQLite begin with `sessions`.
    connection.rows(
        [&](const model::SessionKey& key, const std::string& value) { count(key, value); },
        "SELECT s.key, f.value FROM sessions s CROSS JOIN follow_ups f WHERE s.project_id = :p"
        " AND s.id > :r AND s.id <= :l AND f.session = s.id",
        parts_.project_id, row_, places.back().row);
    row_ = places.back().row;
    return places.size() == sessions_at_once;
  }

  [[nodiscard]] std::vector<PartUsage> usages() const {
    std::vector<PartUsage> found;
    for (const auto& [of, number] : numbers_) {
      const auto& [part, name, kind] = of;
      found.push_back({part, name, kind, "", number});
    }
    return found;
  }

 private:
  struct Place {
    std::int64_t row = 0;
    model::SessionKey key;
    model::Timestamp active{};
    std::string flow_state;
    std::optional<std::string> execution;
    std::int64_t inbox_size = 0;
    bool has_calls = false;
  };

  void count(const Place& place) {
    const auto expiry = expiries_.find(place.key.endpoint_id);
    if (expiry == expiries_.end()) return;  // its Endpoint is gone
    const bool has_expired = expiry->second.count() > 0 && now_ - place.active > expiry->second;
    if (has_expired && place.inbox_size == 0 && !place.has_calls) return;
    const auto flows = flows_of(place);
    if (const auto* endpoint = find_id(parts_.endpoints, place.key.endpoint_id);
        endpoint != nullptr && (!flows.empty() || place.execution || place.inbox_size > 0)) {
      ++numbers_[{"Endpoint", endpoint->name, Kind::sessions}];
    }
    for (const auto& flow : parts_.flows) {
      if (flows.contains(flow.name)) ++numbers_[{"Flow", flow.name, Kind::sessions}];
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

  // A follow-up.
  void count(const model::SessionKey& key, const std::string& value) {
    if (const auto* endpoint = find_id(parts_.endpoints, key.endpoint_id)) {
      ++numbers_[{"Endpoint", endpoint->name, Kind::follow_ups}];
    }
    const auto follow_up = json::parse(value, nullptr, false);
    const auto plan = model::follow_up_plan_from(
        follow_up.is_object() ? follow_up.value("plan", json()) : json());
    if (!plan) return;
    if (const auto* flow = find_id(parts_.flows, plan->flow_id)) {
      ++numbers_[{"Flow", flow->name, Kind::follow_ups}];
    }
  }

  const PartsToDelete& parts_;
  const FlowReader& reader_;
  const model::Timestamp now_;
  std::map<std::string, std::chrono::milliseconds> expiries_;  // of Endpoints, by id
  std::int64_t row_ = 0;  // of the last session that was read of the shard
  std::map<std::tuple<std::string, std::string, Kind>, std::int64_t> numbers_;
};

// Adds the Flows that stay and enter one of the parts. The loader has checked those of a bundle.
Result<void> add_entering_flows(Database& database, const Names& of_bundle,
                                const FlowReader& reader, PartsToDelete& parts) {
  if (parts.flows.empty()) return {};
  struct Flow {
    std::string id;
    std::string name;
    std::int64_t version = 0;
    std::int64_t ramped = 0;
    std::string definition;
  };
  const auto flows = read_all(
      database, row_of<&Flow::id, &Flow::name, &Flow::version, &Flow::ramped, &Flow::definition>,
      "SELECT f.id, f.name, f.version, COALESCE(r.version, 0), v.definition FROM flows f"
      " LEFT JOIN flow_ramps r ON r.flow_id = f.id AND r.ended_at IS NULL"
      " JOIN flow_versions v ON v.flow_id = f.id AND v.version IN (f.version, r.version)"
      " WHERE f.project_id = :p ORDER BY f.name, v.version",
      parts.project_id);
  if (!flows) return fail(flows.error());
  for (const auto& each : *flows) {
    if (find_id(parts.flows, each.id) != nullptr || of_bundle.contains(each.name)) continue;
    parts.searched[each.id] = {each.version, each.ramped};
    const auto entered = reader.entered(each.definition);
    for (const auto& flow : parts.flows) {
      if (std::ranges::find(entered, flow.name) == entered.end()) continue;
      const PartUsage usage{"Flow", flow.name, Kind::flow, each.name, 0};
      const bool is_known = std::ranges::find(parts.usages, usage) != parts.usages.end();
      if (!is_known) parts.usages.push_back(usage);  // else by another version in a ramp
    }
  }
  return {};
}

// ---- Both steps

// Finds the parts and rows that still use the parts to delete, by few rows and ranges of indexes.
class Search {
 public:
  Search(Connection& connection, const PartsToDelete& parts)
      : connection_(connection), parts_(parts) {}

  std::vector<PartUsage> run() {
    if (!parts_.flows.empty()) add_endpoints();
    add_journey();
    for (const auto& endpoint : parts_.endpoints) add_waiting(endpoint);
    return std::move(usages_);
  }

  // The rows that wait for the Endpoints.
  std::vector<PartUsage> run_for_endpoints() {
    for (const auto& endpoint : parts_.endpoints) add_waiting(endpoint);
    return std::move(usages_);
  }

 private:
  void add_endpoints() {
    connection_.rows(
        [&](const std::string& id, const std::string& name, const std::string& runs,
            const std::string& follows_up_by, const std::string& handles_errors_by) {
          if (find_id(parts_.endpoints, id) != nullptr) return;
          for (const auto* used : {&runs, &handles_errors_by}) {
            if (const auto* flow = find_id(parts_.flows, *used)) {
              usages_.push_back({"Flow", flow->name, Kind::endpoint, name, 0});
            }
          }
          if (const auto* flow = find_id(parts_.flows, follows_up_by)) {
            usages_.push_back({"Flow", flow->name, Kind::follow_up_flow, name, 0});
          }
        },
        "SELECT id, name, flow_id, COALESCE(follow_up_flow_id, ''), COALESCE(error_flow_id, '')"
        " FROM endpoints WHERE project_id = :p ORDER BY name",
        parts_.project_id);
  }

  // The bundle's journey, and the one that was set up.
  void add_journey() {
    std::vector<json> journeys;
    if (const auto bundled = connection_.value<json>("SELECT proactive FROM projects WHERE id = :i",
                                                     parts_.project_id);
        bundled && bundled->is_object()) {
      journeys.push_back(bundled->value("journey", json()));
    }
    if (auto present = connection_.value<json>(
            "SELECT definition FROM journeys WHERE project_id = :p", parts_.project_id)) {
      journeys.push_back(*std::move(present));
    }
    const auto add_named = [&](const char* part, const char* member,
                               const std::vector<Part>& list) {
      for (const auto& each : list) {
        const bool is_named = std::ranges::any_of(journeys, [&](const json& journey) {
          return journey.is_object() && journey.value(member, json()) == each.name;
        });
        if (is_named) usages_.push_back({part, each.name, Kind::journey, "", 0});
      }
    };
    add_named("Flow", "flow", parts_.flows);
    add_named("Endpoint", "endpoint", parts_.endpoints);
  }

  void add_waiting(const Part& endpoint) {
    const auto add = [&](Kind kind, std::int64_t number) {
      if (number > 0) usages_.push_back({"Endpoint", endpoint.name, kind, "", number});
    };
    add(Kind::outputs,
        connection_.number("SELECT COUNT(*) FROM (SELECT 1 FROM deliveries WHERE endpoint_id = :e"
                           " LIMIT :l) AS counted",
                           endpoint.id, most_counted));
    add(Kind::schedules,
        connection_.number("SELECT COUNT(*) FROM (SELECT 1 FROM schedules WHERE endpoint_id = :e"
                           " LIMIT :l) AS counted",
                           endpoint.id, most_counted));
  }

  Connection& connection_;
  const PartsToDelete& parts_;
  std::vector<PartUsage> usages_;
};

// ---- The first step as a whole

// Adds the usages that the first step alone looks for: sessions and follow-ups of all shards, and
// the deliveries and schedules of the Endpoints in all shards but the first.
Result<PartsToDelete> with_work(const Shards& shards, Result<PartsToDelete> parts,
                                const Names& of_bundle, const FlowReader& reader,
                                model::Timestamp now) {
  if (!parts || (parts->flows.empty() && parts->endpoints.empty())) return parts;
  Database& first = shards.front()->database();
  if (auto added = add_entering_flows(first, of_bundle, reader, *parts); !added) {
    return fail(added.error());
  }
  WorkInHand work(*parts, reader, now);
  const auto known = read(first, [&](Connection& connection) { work.read_expiries(connection); });
  if (!known) return fail(known.error());
  for (const auto& shard : shards) {
    work.begin_shard();
    Result<bool> more = true;
    // Others may use the connection between the pages.
    while (more && *more) {
      more =
          read(shard->database(), [&](Connection& connection) { return work.read_on(connection); });
    }
    if (!more) return fail(more.error());
  }
  add_usages(parts->usages, work.usages());
  for (std::size_t at = 1; at < shards.size(); ++at) {
    const auto found = read(shards[at]->database(), [&](Connection& connection) {
      return Search(connection, *parts).run_for_endpoints();
    });
    if (!found) return fail(found.error());
    add_usages(parts->usages, *found);
  }
  return parts;
}

// ---- The second step, in the Committer's transaction

// Whether the Flows are those that were searched.
Result<void> check_flows(Connection& connection, const PartsToDelete& parts,
                         const Names& of_bundle) {
  if (parts.flows.empty()) return {};
  decltype(parts.searched) present;
  connection.rows(
      [&](const std::string& id, const std::string& name, std::int64_t version,
          std::int64_t ramped) {
        if (find_id(parts.flows, id) != nullptr || of_bundle.contains(name)) return;
        present[id] = {version, ramped};
      },
      "SELECT f.id, f.name, f.version, COALESCE(r.version, 0) FROM flows f"
      " LEFT JOIN flow_ramps r ON r.flow_id = f.id AND r.ended_at IS NULL"
      " WHERE f.project_id = :p",
      parts.project_id);
  if (present == parts.searched) return {};
  return fail(Errc::conflict, "Flows of the project have changed meanwhile; try again");
}

// A bundle has one version of a Flow. In a ramp sessions run another one, too, which may use parts
// that the bundle lacks.
Result<void> check_ramps(Connection& connection, const PartsToDelete& parts) {
  std::string ramped;
  connection.rows(
      [&](const std::string& id, const std::string& name) {
        if (find_id(parts.flows, id) == nullptr) ramped = name;
      },
      "SELECT f.id, f.name FROM flows f JOIN flow_ramps r ON r.flow_id = f.id"
      " AND r.ended_at IS NULL WHERE f.project_id = :p",
      parts.project_id);
  if (ramped.empty()) return {};
  return fail(Errc::conflict, "the Flow " + ramped + " is in a ramp; end the ramp, then prune");
}

void delete_parts(Connection& connection, const PartsToDelete& parts) {
  for (const auto& endpoint : parts.endpoints) {
    connection.run(
        "INSERT INTO removed_endpoints (id, project_id) VALUES (:i, :p)"
        " ON CONFLICT (id) DO NOTHING",
        endpoint.id, parts.project_id);
    connection.run("DELETE FROM endpoint_health WHERE endpoint_id = :e", endpoint.id);
    connection.run("DELETE FROM endpoints WHERE id = :i", endpoint.id);
  }
  for (const auto& flow : parts.flows) {
    connection.run("DELETE FROM flow_ramps WHERE flow_id = :f", flow.id);
    connection.run("DELETE FROM flow_versions WHERE flow_id = :f", flow.id);
    connection.run("DELETE FROM flows WHERE id = :i", flow.id);
  }
}

// The rows of the project, or of an owner in it, that the bundle does not name.
class LeftOver {
 public:
  LeftOver(Connection& connection, const std::string& project_id)
      : connection_(connection), project_(project_id) {}

  std::vector<Part> of(const std::string& table, const Names& bundled,
                       const std::string& column = "name") {
    return without(bundled, connection_.all(row_of<&Part::id, &Part::name>,
                                            "SELECT id, " + column + " FROM " + table +
                                                " WHERE project_id = :p ORDER BY " + column,
                                            project_));
  }

  struct Owner {
    std::string table;
    std::string column;  // refers to it
    std::string name;
  };
  std::vector<Part> of(const std::string& table, const Names& bundled, const Owner& owner) {
    const auto sql = "SELECT t.id, t.name FROM " + table + " t JOIN " + owner.table +
                     " o ON o.id = t." + owner.column + " WHERE o.project_id = :p AND o.name = :n";
    return without(bundled,
                   connection_.all(row_of<&Part::id, &Part::name>, sql, project_, owner.name));
  }

 private:
  static std::vector<Part> without(const Names& bundled, std::vector<Part> present) {
    std::erase_if(present, [&](const Part& each) { return bundled.contains(each.name); });
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

// Only Flows use these parts, and the bundle's Flows use only parts of the bundle. Adds them to
// `parts`, and deletes them if `deletes`. Sources and slots of parts that stay are not added.
void remove_others(Connection& connection, const std::string& project_id,
                   const model::Bundle& bundle, bool deletes, std::vector<RemovedPart>& parts) {
  LeftOver left(connection, project_id);
  const auto remove_each = [&](const char* part, const std::vector<Part>& list,
                               const auto& remove_one) {
    for (const auto& each : list) {
      if (part != nullptr) parts.push_back({part, each.name});
      if (deletes) remove_one(each.id);
    }
  };
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
    remove_each(nullptr,
                left.of("knowledge_sources", names_of(store.sources, &model::BundleSource::name),
                        LeftOver::Owner{"knowledge_stores", "store_id", store.name}),
                [&](const auto& id) { delete_source(connection, id); });
  }
  for (const auto& lexicon : bundle.lexicons) {
    remove_each(
        nullptr,
        left.of("lexicon_slots", {lexicon.slots.begin(), lexicon.slots.end()},
                LeftOver::Owner{"lexicons", "lexicon_id", lexicon.name}),
        [&](const auto& id) { connection.run("DELETE FROM lexicon_slots WHERE id = :i", id); });
  }
}

// The import may need the quota of Tokens and the URLTokens. Returns the Tokens.
std::vector<Part> make_room(Connection& connection, const PartsToDelete& left_over,
                            const model::Bundle& bundle) {
  auto tokens = LeftOver(connection, left_over.project_id)
                    .of("tokens", names_of(bundle.tokens, &model::BundleToken::label), "label");
  for (const auto& token : tokens) connection.run("DELETE FROM tokens WHERE id = :i", token.id);
  for (const auto& endpoint : left_over.endpoints) {
    connection.run("UPDATE endpoints SET url_token = id WHERE id = :i", endpoint.id);
  }
  return tokens;
}

bool has_ids(const std::vector<Part>& present, const std::vector<Part>& expected) {
  return std::ranges::is_permutation(present, expected, {}, &Part::id, &Part::id);
}

void delete_project(Connection& connection, const PartsToDelete& parts, model::Timestamp now) {
  delete_parts(connection, parts);
  LeftOver all(connection, parts.project_id);
  for (const auto& lexicon : all.of("lexicons", {})) delete_lexicon(connection, lexicon.id);
  for (const auto& store : all.of("knowledge_stores", {})) delete_store(connection, store.id);
  for (const char* table :
       {"connections", "tokens", "journeys", "proactive_tenants", "members", "locales"}) {
    connection.run("DELETE FROM " + std::string(table) + " WHERE project_id = :p",
                   parts.project_id);
  }
  connection.run("INSERT INTO removed_projects (id, removed_at) VALUES (:i, :t)", parts.project_id,
                 now);
  connection.run("DELETE FROM projects WHERE id = :i", parts.project_id);
}

// The part whose row has this id.
Result<PartsToDelete> one_part(Database& database, const std::string& id, const char* sql,
                               const char* missing, std::vector<Part> PartsToDelete::*list) {
  return read(database, [&](Connection& connection) -> Result<PartsToDelete> {
    const auto row = connection.row<std::string, std::string>(sql, id);
    if (!row) return fail(Errc::not_found, missing);
    PartsToDelete parts{.project_id = std::get<0>(*row)};
    (parts.*list).push_back({id, std::get<1>(*row)});
    return parts;
  });
}

Result<PartsToDelete> with_all_usages(const Shards& shards, Result<PartsToDelete> parts,
                                      const FlowReader& reader, model::Timestamp now) {
  parts = with_work(shards, std::move(parts), {}, reader, now);
  if (!parts) return parts;
  const auto found = read(shards.front()->database(),
                          [&](Connection& connection) { return Search(connection, *parts).run(); });
  if (!found) return fail(found.error());
  add_usages(parts->usages, *found);
  return parts;
}

}  // namespace

std::string_view to_string(Kind kind) {
  return kinds.name_of(kind);
}

Result<PartsToDelete> Removals::flow(const std::string& id, const FlowReader& reader,
                                     model::Timestamp now) const {
  return with_all_usages(shards_,
                         one_part(first_, id, "SELECT project_id, name FROM flows WHERE id = :i",
                                  "there is no such Flow", &PartsToDelete::flows),
                         reader, now);
}

Result<PartsToDelete> Removals::endpoint(const std::string& id, const FlowReader& reader,
                                         model::Timestamp now) const {
  return with_all_usages(
      shards_,
      one_part(first_, id, "SELECT project_id, name FROM endpoints WHERE id = :i",
               "there is no such Endpoint", &PartsToDelete::endpoints),
      reader, now);
}

Result<PartsToDelete> Removals::left_over(const std::string& project_id,
                                          const model::Bundle& bundle, const FlowReader& reader,
                                          model::Timestamp now) const {
  const auto bundled = names_of(bundle.flows, &model::BundleFlow::name);
  auto parts = read(first_, [&](Connection& connection) {
    LeftOver left(connection, project_id);
    PartsToDelete found{.project_id = project_id,
                        .flows = left.of("flows", bundled),
                        .endpoints = left.of(
                            "endpoints", names_of(bundle.endpoints, &model::BundleEndpoint::name))};
    const bool names_follow_up_flow =
        bundle.proactive.is_object() && bundle.proactive.value("journey", json()).contains("flow");
    if (names_follow_up_flow) return found;
    for (const auto& attached : connection.values<std::string>(
             "SELECT follow_up_flow_id FROM endpoints WHERE project_id = :p"
             " AND follow_up_flow_id IS NOT NULL",
             project_id)) {
      std::erase_if(found.flows, [&](const Part& each) { return each.id == attached; });
    }
    return found;
  });
  return with_work(shards_, std::move(parts), bundled, reader, now);
}

Result<std::vector<PartUsage>> Removals::remove(Writer& writer, const PartsToDelete& parts) {
  Connection& connection = writer.connection();
  if (auto same = check_flows(connection, parts, {}); !same) return fail(same.error());
  auto usages = Search(connection, parts).run();
  if (usages.empty()) delete_parts(connection, parts);
  return usages;
}

Result<Removal> Removals::prune(Writer& writer, const PartsToDelete& left,
                                const model::Bundle& bundle, Mode mode,
                                const std::function<Result<void>()>& import) {
  Connection& connection = writer.connection();
  if (auto no_ramp = check_ramps(connection, left); !no_ramp) return fail(no_ramp.error());
  const auto tokens = make_room(connection, left, bundle);
  if (auto imported = import(); !imported) return fail(imported.error());
  const auto bundled = names_of(bundle.flows, &model::BundleFlow::name);
  if (auto same = check_flows(connection, left, bundled); !same) return fail(same.error());
  Removal removal{.parts = {}, .usages = left.usages};
  add_usages(removal.usages, Search(connection, left).run());
  const bool deletes = mode == Mode::real && removal.usages.empty();
  if (deletes) delete_parts(connection, left);
  for (const auto& each : left.flows) removal.parts.push_back({"Flow", each.name});
  for (const auto& each : left.endpoints) removal.parts.push_back({"Endpoint", each.name});
  for (const auto& each : tokens) removal.parts.push_back({"Token", each.name});
  remove_others(connection, left.project_id, bundle, deletes, removal.parts);
  return removal;
}

Result<void> Removals::forget_health() {
  for (std::size_t at = 1; at < shards_.size(); ++at) {
    // Reads these first: an Endpoint has a row only after it was made.
    auto ids = read(shards_[at]->database(), [](Connection& connection) {
      return connection.values<std::string>("SELECT endpoint_id FROM endpoint_health");
    });
    if (!ids) return fail(ids.error());
    auto checked = read(first_, [&](Connection& connection) {
      std::erase_if(*ids, [&](const auto& id) {
        return connection.exists("SELECT 1 FROM endpoints WHERE id = :i", id);
      });
    });
    if (!checked) return checked;
    if (ids->empty()) continue;
    auto forgotten = shards_[at]->committer().write_and_wait([&](Writer& writer) {
      for (const auto& id : *ids) {
        writer.connection().run("DELETE FROM endpoint_health WHERE endpoint_id = :e", id);
      }
    });
    if (!forgotten) return forgotten;
  }
  return {};
}

Result<PartsToDelete> parts_of_project(const Removals& removals, const std::string& project_id,
                                       const FlowReader& reader, model::Timestamp now) {
  // A bundle without parts leaves all parts of the project over. The bundle's journey names a Flow,
  // so the Flow of the set-up is left over, too.
  model::Bundle nothing;
  nothing.proactive = {{"journey", {{"flow", ""}}}};
  auto parts = removals.left_over(project_id, nothing, reader, now);
  if (parts) std::erase_if(parts->usages, [](const auto& each) { return each.part == "Flow"; });
  return parts;
}

Result<std::vector<PartUsage>> remove_project(Writer& writer, const PartsToDelete& parts,
                                              Removals::Mode mode) {
  Connection& connection = writer.connection();
  const auto& project = parts.project_id;
  if (!connection.exists("SELECT 1 FROM projects WHERE id = :i", project)) {
    return fail(Errc::not_found, "there is no such project");
  }
  LeftOver present(connection, project);
  if (!has_ids(present.of("flows", {}), parts.flows) ||
      !has_ids(present.of("endpoints", {}), parts.endpoints)) {
    return fail(Errc::conflict, "the project has changed meanwhile; try again");
  }
  const auto jobs = connection.number(
      "SELECT COUNT(*) FROM jobs WHERE project_id = :p"
      " AND state IN ('queued', 'active', 'cancelling')",
      project);
  if (jobs > 0) {
    return fail(Errc::conflict, "jobs of the project that have not ended: " + std::to_string(jobs) +
                                    "; cancel them, or wait");
  }
  auto usages = parts.usages;
  // All parts go together, so none of them uses another one.
  add_usages(usages, Search(connection, parts).run_for_endpoints());
  if (usages.empty() && mode == Removals::Mode::real) {
    delete_project(connection, parts, writer.now());
  }
  return usages;
}

}  // namespace conversed::store

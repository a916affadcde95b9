// /management/connections: lists Connections, and shows the Nodes that use a Connection with the
// sessions that can reach these Nodes.
// DELETE /v2.0/connections/{connectionId}: deletes a Connection, even if Flows use it. A call of
// such a Flow then fails at its Node, because calls look the Connection up by name.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "api/live/assets_cache.h"
#include "api/openapi/description.h"
#include "api/operations/documents.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "flows/node_types.h"
#include "flows/tools/usages.h"
#include "flows/turn/standing.h"
#include "flows/turn/turn.h"
#include "store/shards/across_shards.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;
using store::ConnectionInfo;
using FlowPtr = std::shared_ptr<const flows::Flow>;
using namespace openapi;

// Limits on the sessions and the time of one request, because the pool has few threads. Beyond
// either limit the count is a lower bound, and the answer says so.
constexpr std::size_t max_examined = 200'000;
constexpr std::chrono::milliseconds max_time{1'000};
constexpr std::size_t examined_at_once = 500;

constexpr std::string_view missing_connection = "there is no such Connection";

const Shape<store::Sessions::Place>& place_shape() {
  using store::Sessions;
  const auto state = [](const Sessions::Place& place) { return place.execution ? "busy" : "idle"; };
  static const auto shape =
      session_shape(&Sessions::Place::key)
          .with("", {{"state", one_of({"busy", "idle"}), state},
                     {"lastActivityAt", unix_time(), &Sessions::Place::last_activity_at}});
  return shape;
}

const Shape<ConnectionInfo>& connection_shape() {
  static const Shape<ConnectionInfo> shape(
      "",
      {{"_id", id(), &ConnectionInfo::id},
       {"name", text(1), &ConnectionInfo::name},
       {"type", text(1), &ConnectionInfo::type},
       {"hosts",
        described("The hosts that its credentials may be sent to, as `host` or `host:port`; none: "
                  "to any.",
                  list_of(text(1))),
        &ConnectionInfo::hosts}});
  return shape;
}

Result<Response> list(const Call& call, ProjectServices& services) {
  auto project = project_of(services.store, call, call.operation.role);
  if (!project) return model::fail(project.error());
  auto connections = services.store.assets().connections(project->id);
  if (!connections) return model::fail(store_error(connections.error()));
  json items = json::array();
  for (const ConnectionInfo& connection : *connections) {
    items.emplace_back(connection_shape()(connection))["projectId"] = project->id;
  }
  return ok({{"items", std::move(items)}});
}

// When a session can reach a Node that uses the Connection.
enum class Meets : std::uint8_t {
  never,
  ahead,  // from its current Node
  later,  // after its Flow has started again
};

// Finds Nodes and sessions that use a Connection in one project.
class Search {
 public:
  Search(ProjectServices& services, const store::ProjectInfo& project, ConnectionInfo connection)
      : services_(services), project_(project), connection_(std::move(connection)) {}

  Result<void> prepare() {
    auto stored = services_.store.assets().flows(project_.id);
    if (!stored) return model::fail(store_error(stored.error()));
    std::vector<FlowPtr> newest;
    for (const store::FlowInfo& info : *stored) {
      auto flow = compiled(info.id, 0);
      if (!flow) return model::fail(flow.error());
      if (!*flow) continue;
      newest.push_back(*flow);
      known_.emplace(info.name, Known{info, {{info.version, *flow}}});
    }
    if (auto added = add_ramped(); !added) return added;
    ways_ = std::make_unique<flows::tools::WaysToConnection>(connection_.name, std::move(newest));
    return {};
  }

  // The Nodes of the versions in effect and in ramps, and of older versions whose sessions can
  // reach such a Node.
  [[nodiscard]] json using_flows() const {
    json list = json::array();
    for (const auto& [name, known] : known_) {
      for (const auto& [version, flow] : known.versions) add_uses(list, known.info, version, *flow);
    }
    return list;
  }

  // A page of sessions. The first page has the total count.
  Result<json> sessions(const PageQuery& page) {
    const auto until = std::chrono::steady_clock::now() + max_time;
    const bool counts = page.after == 0;
    json items = json::array();
    json next = nullptr;
    std::size_t count = 0;
    std::size_t examined = 0;
    std::int64_t row = page.after;
    bool has_more = true;
    while (has_more && (counts || next.is_null())) {
      const bool is_over = examined > 0 && std::chrono::steady_clock::now() >= until;
      if (is_over || examined >= max_examined) break;
      auto places = newest_places(row);
      if (!places) return model::fail(store_error(places.error()));
      has_more = places->size() == examined_at_once;
      for (const auto& place : *places) {
        ++examined;
        auto meets = meeting(place);
        if (!meets) return model::fail(meets.error());
        if (*meets != Meets::never) {
          ++count;
          if (items.size() < page.limit) {
            items.push_back(item(place, *meets));
          } else if (next.is_null()) {
            next = row;  // the last row that is done: in this page, or no match
          }
        }
        row = place.row;
      }
    }
    // The time was up before the page was full. The next page continues there.
    if (has_more && next.is_null()) next = row;
    return json{{"count", counts ? json(count) : json()},
                {"isComplete", !has_more},
                {"items", std::move(items)},
                {"next", std::move(next)}};
  }

 private:
  struct Known {
    store::FlowInfo info;
    // The versions in effect and in a ramp, and older ones whose sessions can reach such a Node.
    std::map<std::int64_t, FlowPtr, std::greater<>> versions;
  };

  // Of the sessions below the row, newest first.
  Result<std::vector<store::Sessions::Place>> newest_places(std::int64_t row) {
    const auto of_shard = [&](store::Shard& shard) {
      return shard.sessions().places(project_.id, row, examined_at_once);
    };
    return merge_shards(services_.store.shards(), examined_at_once, of_shard,
                        [](const auto& a, const auto& b) { return a.row > b.row; });
  }

  Result<void> add_ramped() {
    const auto project = services_.assets.project(project_.id);
    if (!project) return model::fail(store_error(project.error()));
    for (auto& [name, known] : known_) {
      const auto ramp = (*project)->ramps.find(known.info.id);
      if (ramp == (*project)->ramps.end()) continue;
      auto flow = compiled(known.info.id, ramp->second.version);
      if (!flow) return model::fail(flow.error());
      if (*flow) known.versions.emplace(ramp->second.version, *flow);
    }
    return {};
  }

  void add_uses(json& list, const store::FlowInfo& info, std::int64_t version,
                const flows::Flow& flow) const {
    json nodes = json::array();
    for (const auto* slot : flows::tools::nodes_using(flow, connection_.name)) {
      nodes.push_back({{"node", slot->address}, {"type", slot->type->name}});
    }
    if (nodes.empty()) return;
    list.push_back(
        {{"_id", info.id}, {"name", info.name}, {"version", version}, {"nodes", std::move(nodes)}});
  }

  // Null: the version is missing or can't be run.
  Result<FlowPtr> compiled(const std::string& id, std::int64_t version) {
    auto found =
        version == 0 ? services_.assets.newest_flow(id) : services_.assets.flow(id, version);
    if (found) return (*found)->flow;
    const auto code = found.error().code;
    if (code == Errc::not_found || code == Errc::internal) return FlowPtr();
    return model::fail(store_error(found.error()));
  }

  Result<Meets> meeting(const store::Sessions::Place& place) {
    auto endpoint = services_.assets.endpoint(place.key.endpoint_id);
    if (!endpoint && endpoint.error().code != Errc::not_found) {
      return model::fail(store_error(endpoint.error()));
    }
    if (!endpoint) return Meets::never;
    model::Session session;
    session.last_activity_at = place.last_activity_at;
    session.flow_state = place.flow_state;
    const bool is_over =
        flows::starts_afresh(session, **endpoint, services_.clock.now()) && !place.execution;
    if (is_over) return Meets::never;
    auto leads = leads_from_place(place);
    if (!leads) return model::fail(leads.error());
    if (*leads) return Meets::ahead;
    for (const auto& [name, known] : known_) {
      const auto& id = known.info.id;
      const auto& of = **endpoint;
      const bool may_begin =
          id == of.flow_id || id == of.follow_up_flow_id || id == of.error_flow_id;
      if (may_begin && ways_->from_start(name)) return Meets::later;
    }
    return Meets::never;
  }

  Result<bool> leads_from_place(const store::Sessions::Place& place) {
    auto leads = leads_from(flows::standings(place.flow_state, place.execution));
    if (!leads || *leads) return leads;
    return leads_from(flows::standings_behind(place.flow_state));
  }

  Result<bool> leads_from(const std::vector<flows::Standing>& standings) {
    bool leads = false;
    for (std::size_t i = 0; i < standings.size(); ++i) {
      const auto known = known_.find(standings[i].flow);
      if (known == known_.end()) continue;
      auto flow = compiled(known->second.info.id, standings[i].version);
      if (!flow) return model::fail(flow.error());
      if (!*flow) continue;
      const auto at = (*flow)->find(standings[i].at);
      const bool is_innermost = i + 1 == standings.size();
      if (!(is_innermost ? ways_->from(*flow, at) : ways_->after(*flow, at))) continue;
      if (standings[i].version != 0) known->second.versions.emplace(standings[i].version, *flow);
      leads = true;
    }
    return leads;
  }

  static json item(const store::Sessions::Place& place, Meets meets) {
    json item = place_shape()(place);
    item["meets"] = meets == Meets::ahead ? "ahead" : "later";
    return item;
  }

  ProjectServices& services_;
  const store::ProjectInfo& project_;
  const ConnectionInfo connection_;
  std::map<std::string, Known> known_;  // Flows by name
  std::unique_ptr<flows::tools::WaysToConnection> ways_;
};

// The project of the path's Connection, for a principal with the role in the project.
Result<store::ProjectInfo> owner_of(const Call& call, ProjectServices& services) {
  auto id = id_of(call, "connectionId");
  if (!id) return model::fail(id.error());
  return open_owner(services.store, *call.principal,
                    services.store.assets().project_of_connection(*id), call.operation.role,
                    missing_connection);
}

Result<Response> usages(const Call& call, ProjectServices& services) {
  auto project = owner_of(call, services);
  if (!project) return model::fail(project.error());
  auto page = page_query(call.request);
  if (!page) return model::fail(page.error());
  auto connections = services.store.assets().connections(project->id);
  if (!connections) return model::fail(store_error(connections.error()));
  const auto id = call.parameters["connectionId"];
  const auto found = std::ranges::find(*connections, id, &ConnectionInfo::id);
  if (found == connections->end()) {
    return model::fail(Errc::not_found, std::string(missing_connection));
  }
  json body = connection_shape()(*found);
  Search search(services, *project, std::move(*found));
  if (auto ready = search.prepare(); !ready) return model::fail(ready.error());
  auto sessions = search.sessions(*page);
  if (!sessions) return model::fail(sessions.error());
  // Session keys name users. Only a principal with conversationAdmin may see them.
  const bool may_see = call.principal->access(project->organisation_id, project->id,
                                              Role::conversation_admin) == Access::granted;
  if (!may_see) (*sessions)["items"] = (*sessions)["next"] = nullptr;
  body["flows"] = search.using_flows();
  body["sessions"] = *std::move(sessions);
  return ok(body);
}

Description describe_list() {
  const auto connection = with_members(connection_shape().schema(), {{"projectId", id()}});
  return {.summary = "List the Connections of a project",
          .parameters = {project_parameter()},
          .answers = {json_answer("The Connections, by name, without their fields.",
                                  items_of(named("Connection", connection)))},
          .errors = {404}};
}

Description describe_usages() {
  const auto node = object(
      {{"node", described("Its id, or its place in the Flow.", text(1))}, {"type", text(1)}});
  const auto flow =
      object({{"_id", id()}, {"name", text(1)}, {"version", integer(1)}, {"nodes", list_of(node)}});
  const auto session = with_members(
      place_shape().schema(),
      {{"meets", described("`ahead`: from its current Node. `later`: after its Flow has started "
                           "again.",
                           one_of({"ahead", "later"}))}});
  const auto sessions = object(
      {{"count", described("In all; null on further pages.", nullable(integer(0)))},
       {"isComplete",
        described("False: only the newest sessions were examined, so there may be more.",
                  boolean())},
       {"items", described("A page of sessions; null without the role `conversationAdmin`.",
                           nullable(list_of(named("SessionThatMeets", session))))},
       {"next", described("Give it as `after`; null on the last page.", nullable(integer(0)))}});
  const auto body =
      with_members(connection_shape().schema(), {{"flows", list_of(flow)}, {"sessions", sessions}});
  return {.summary = "Show the Nodes and sessions that use a Connection",
          .details =
              "The Nodes that name the Connection: in each Flow's version in effect, in "
              "ramps, and in older versions to which a session of this page is pinned and where it "
              "can reach the "
              "Node. Also the sessions that can reach such a Node from their place. Expired "
              "sessions are not counted.",
          .parameters = row_parameters(),
          .answers = {json_answer("Its uses.", named("ConnectionUsages", body))}};
}

Result<Response> delete_connection(const Call& call, ProjectServices& services) {
  auto project = owner_of(call, services);
  if (!project) return model::fail(project.error());
  const std::string id(call.parameters["connectionId"]);
  return from_store(services.store.assets().delete_connection(project->id, id)).map(no_content);
}

Description describe_delete_connection() {
  return {.summary = "Delete a Connection",
          .details = "Flows that use it stay as they are. They fail at the Nodes that use it.",
          .answers = {empty_answer("The Connection is deleted.")},
          .errors = specified_errors()};
}

}  // namespace

Operations connections_operations() {
  static constexpr Operation rows[] = {
      for_operators("listConnections", Method::get, "/management/connections",
                    Role::connection_admin, list, describe_list),
      for_operators("getConnectionUsages", Method::get,
                    "/management/connections/{connectionId}/usages", Role::connection_admin, usages,
                    describe_usages),
      for_clients("deleteConnection_2_0", Method::delete_, "/v2.0/connections/{connectionId}",
                  Role::connection_admin, delete_connection, describe_delete_connection),
  };
  return rows;
}

}  // namespace conversed::api

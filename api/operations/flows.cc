// /management/flows: lists and compares the versions of a project's Flows, goes back to one, and
// gives one to a share of the sessions.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "api/live/assets_cache.h"
#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/operations/standing_sessions.h"
#include "api/replies.h"
#include "flows/fields.h"
#include "flows/flow.h"
#include "flows/node_types.h"
#include "flows/tools/diff.h"
#include "flows/tools/graph.h"
#include "store/model/json.h"
#include "store/store.h"
#include "store/text/ascii.h"

namespace conversed::api {
namespace {

using flows::tools::FlowChange;
using model::Errc;
using model::Result;
using nlohmann::json;
using store::FlowVersionInfo;
using store::RampInfo;
using namespace openapi;

Result<Response> list_flows(const Call& call, ProjectServices& services) {
  auto project = project_of(services.store, call, call.operation.role);
  if (!project) return model::fail(project.error());
  auto flows = services.store.assets().flows(project->id);
  if (!flows) return model::fail(store_error(flows.error()));
  json items = json::array();
  for (const store::FlowInfo& flow : *flows) {
    items.push_back({{"_id", flow.id},
                     {"projectId", project->id},
                     {"name", flow.name},
                     {"version", flow.version}});
  }
  return ok({{"items", std::move(items)}});
}

Result<std::string> flow_of(const Call& call, ProjectServices& services) {
  return path_flow(services.store, call).map(&PathFlow::id);
}

Result<model::FlowVersion> version_of(const std::string& flow, std::int64_t version,
                                      ProjectServices& services) {
  auto found = services.store.assets().flow(flow, version);
  if (!found) return model::fail(store_error(found.error()));
  if (*found) return std::move(**found);
  auto newest = services.store.assets().flow(flow, 0);
  if (!newest) return model::fail(store_error(newest.error()));
  const std::string name = *newest ? (*newest)->name : flow;
  const bool is_word = text::consists_of(name, "._-");
  return model::fail(Errc::not_found, "the Flow '" + name + "' has no version " +
                                          std::to_string(version) +
                                          "; `conversectl flow versions " +
                                          (is_word ? name : '"' + name + '"') + "` lists them");
}

struct Definition {
  model::FlowVersion version;
  json content;
};

Result<Definition> definition_of(const std::string& flow, std::int64_t number,
                                 ProjectServices& services) {
  auto version = version_of(flow, number, services);
  if (!version) return model::fail(version.error());
  auto content = model::parse_json(version->definition);
  if (content) return Definition{*std::move(version), *std::move(content)};
  return model::fail(Errc::internal,
                     "the stored version of the Flow can't be read; import its bundle again");
}

Schema version_number() {
  return integer(1, max_whole_number);
}

const Shape<FlowVersionInfo>& version_shape() {
  static const Shape<FlowVersionInfo> shape(
      "FlowVersion",
      {{"version", version_number(), &FlowVersionInfo::version},
       {"createdAt", unix_time(), &FlowVersionInfo::created_at},
       {"createdBy", described("The user who imported or rolled back.", nullable(text(1))),
        null_if_empty(&FlowVersionInfo::created_by)},
       {"restoredFrom",
        described("The older version that a rollback restored.", nullable(version_number())),
        null_if_absent(&FlowVersionInfo::restored_from)},
       {"share", described("The sessions that run it, in percent.", integer(0, 100)),
        &FlowVersionInfo::share}});
  return shape;
}

const Shape<RampInfo>& ramp_shape() {
  using Counts = RampInfo::Counts;
  const auto of = [](Counts RampInfo::*version, std::int64_t Counts::*number) {
    return [=](const RampInfo& ramp) { return ramp.*version.*number; };
  };
  static const Shape<RampInfo> shape(
      "FlowRamp",
      {{"_id", id(), &RampInfo::flow_id},
       {"name", text(1), &RampInfo::name},
       {"version", described("The version that the share runs.", version_number()),
        &RampInfo::version},
       {"stableVersion", described("The version that the others run.", version_number()),
        &RampInfo::stable_version},
       {"share", described("Of the sessions, in percent.", integer(1, 100)), &RampInfo::share},
       {"maxErrors",
        described("The ramp is taken back when more of 100 Turns of the version fail.",
                  integer(0, 100)),
        &RampInfo::max_errors},
       {"beganAt", unix_time(), &RampInfo::began_at},
       {"beganBy", nullable(text(1)), null_if_empty(&RampInfo::began_by)},
       {"endedAt", described("Null: it runs.", nullable(unix_time())),
        null_if_absent(&RampInfo::ended_at)},
       {"ending",
        described("`finished`: all sessions run the version. `stopped`: a user has ended it. "
                  "`errors`: too many Turns have failed. Null: it runs.",
                  nullable(one_of({"finished", "stopped", "errors"}))),
        null_if_empty(&RampInfo::ending)},
       {"turns", described("Of the version, since the ramp began.", integer(0)),
        of(&RampInfo::ramped, &Counts::turns)},
       {"failures", described("Of these: became dead letters, or met a failed call.", integer(0)),
        of(&RampInfo::ramped, &Counts::failures)},
       {"stableTurns", integer(0), of(&RampInfo::stable, &Counts::turns)},
       {"stableFailures", integer(0), of(&RampInfo::stable, &Counts::failures)}});
  return shape;
}

Result<Response> list_versions(const Call& call, ProjectServices& services) {
  auto flow = flow_of(call, services);
  if (!flow) return model::fail(flow.error());
  auto versions = from_store(services.store.assets().flow_versions(*flow));
  if (!versions) return model::fail(versions.error());
  auto ramp = from_store(services.store.assets().ramp(*flow));
  if (!ramp) return model::fail(ramp.error());
  return ok({{"items", version_shape()(*versions)},
             {"ramp", *ramp ? json(ramp_shape()(**ramp)) : json()}});
}

Result<std::string> primary_locale(const std::string& project, ProjectServices& services) {
  const auto assets = services.assets.project(project);
  if (!assets) return model::fail(store_error(assets.error()));
  const auto& locales = (*assets)->locales;
  return locales.empty() ? std::string() : locales.front();
}

Result<Response> show_definition(const Call& call, ProjectServices& services) {
  auto flow = path_flow(services.store, call);
  if (!flow) return model::fail(flow.error());
  auto number = number_parameter(call.request, "version", 1, max_whole_number, 0);
  if (!number) return model::fail(number.error());
  auto definition = definition_of(flow->id, *number, services);
  if (!definition) return model::fail(definition.error());
  const auto locale = primary_locale(flow->project.id, services);
  if (!locale) return model::fail(locale.error());
  return ok({{"_id", flow->id},
             {"name", definition->version.name},
             {"version", definition->version.version},
             {"primaryLocale", *locale},
             {"definition", std::move(definition->content)}});
}

// Limits on one graph: a page is to answer at once, and the pool has few threads.
constexpr std::size_t sessions_with_runs = 250;
constexpr std::size_t most_run_rows = 1'000;

// Counts, for each Node of a version, the events in which the Node ran, and in which it failed.
class NodeRuns {
 public:
  struct Runs {
    std::int64_t all = 0;
    std::int64_t failed = 0;
  };

  NodeRuns(const std::string& flow, std::int64_t version) : flow_(flow), version_(version) {}

  // Takes the rows of receipts, one receipt after the other.
  void add(const store::Receipts::NewestRow& row) {
    if (row.input_id != input_) end_receipt();
    input_ = row.input_id;
    const auto what = row.body.value("what", "");
    if (what == "turn") add_turn(row.body);
    if (what != "call") return;
    // The call's row may come behind the row of the Turn that got the result. The last try counts.
    const auto status = row.body.value("status", status::ok);
    failed_calls_[row.body.value("id", "")] =
        row.body.contains("error") || status == 0 || status >= 400;
  }
  void end_receipt() {
    for (const auto& [call, failed] : failed_calls_) {
      const auto node = calls_.find(call);
      if (failed && node != calls_.end()) failed_.insert(node->second);
    }
    for (const auto& node : ran_) ++runs_[node].all;
    for (const auto& node : failed_) ++runs_[node].failed;
    ran_.clear();
    failed_.clear();
    calls_.clear();
    failed_calls_.clear();
    last_.clear();
  }

  [[nodiscard]] Runs of(const std::string& address) const {
    const auto found = runs_.find(address);
    return found == runs_.end() ? Runs() : found->second;
  }

 private:
  void add_turn(const json& turn) {
    // A Turn that is refused has no Flow: the Node before it has failed.
    if (turn.contains("flow")) last_.clear();
    if (turn.value("flow", "") == flow_ && turn.value("version", 0) == version_) {
      for (const auto& node : turn.value("nodes", json::array())) {
        last_ = node.get<std::string>();
        ran_.insert(last_);
      }
    }
    if (last_.empty()) return;
    if (turn.contains("waitsFor")) calls_[turn["waitsFor"].value("id", "")] = last_;
    if (turn.contains("deadLetter")) failed_.insert(last_);
  }

  const std::string& flow_;
  const std::int64_t version_;
  std::map<std::string, Runs, std::less<>> runs_;  // by the Node's address
  // Of the receipt that is read:
  std::string input_;
  std::string last_;  // the Node at which its last Turn ended
  std::set<std::string> ran_;
  std::set<std::string> failed_;
  std::map<std::string, std::string> calls_;  // Nodes by their calls
  std::map<std::string, bool> failed_calls_;
};

Result<NodeRuns> runs_of(const std::string& project, const model::FlowVersion& version,
                         store::Store& store) {
  NodeRuns runs(version.name, version.version);
  for (const auto& shard : store.shards()) {
    auto rows = shard->receipts().newest(project, sessions_with_runs, most_run_rows);
    if (!rows) return model::fail(store_error(rows.error()));
    for (const auto& row : *rows) runs.add(row);
  }
  runs.end_receipt();
  return runs;
}

Result<Response> show_graph(const Call& call, ProjectServices& services) {
  auto flow = path_flow(services.store, call);
  if (!flow) return model::fail(flow.error());
  auto number = number_parameter(call.request, "version", 1, max_whole_number, 0);
  if (!number) return model::fail(number.error());
  auto newest = services.assets.newest_flow(flow->id);
  auto shown = *number == 0 ? newest : services.assets.flow(flow->id, *number);
  if (!shown) return model::fail(store_error(shown.error()));
  const model::FlowVersion& version = (*shown)->version;
  const bool is_newest = newest && (*newest)->version.version == version.version;
  const std::string& project = flow->project.id;
  auto standing = StandingSessions::of(project, services);
  if (!standing) return model::fail(standing.error());
  auto runs = runs_of(project, version, services.store);
  if (!runs) return model::fail(runs.error());
  const auto locale = primary_locale(project, services);
  if (!locale) return model::fail(locale.error());
  const auto graph = flows::tools::graph_of(*(*shown)->flow, *locale);
  json nodes = json::array();
  for (const auto& box : graph.boxes) {
    const auto& at = box.node->address;
    const auto waiting = standing->count({version.name, version.version, at}) +
                         (is_newest ? standing->count({version.name, 0, at}) : 0);
    const auto ran = runs->of(box.node->address);
    nodes.push_back({{"name", box.name},
                     {"node", box.node->address},
                     {"type", box.node->type->name},
                     {"text", box.text},
                     {"sessions", waiting},
                     {"runs", ran.all},
                     {"failures", ran.failed}});
  }
  json arrows = json::array();
  for (const auto& arrow : graph.arrows) {
    arrows.push_back(
        {{"from", arrow.from}, {"to", arrow.to}, {"way", arrow.way}, {"waits", arrow.waits}});
  }
  return ok({{"_id", flow->id},
             {"name", version.name},
             {"version", version.version},
             {"nodes", std::move(nodes)},
             {"arrows", std::move(arrows)},
             {"isComplete", standing->is_complete()}});
}

json fields_of(const FlowChange& change) {
  json fields = json::array();
  for (const auto& field : change.fields) {
    fields.push_back({{"name", field.name}, {"before", field.before}, {"after", field.after}});
  }
  return fields;
}

const Shape<FlowChange>& change_shape() {
  const auto field = object({{"name", text(1)}, {"before", anything()}, {"after", anything()}});
  static const Shape<FlowChange> shape(
      "FlowChange",
      {{"change", one_of({"added", "removed", "changed", "moved"}),
        [](const FlowChange& change) { return flows::tools::to_string(change.kind); }},
       {"path",
        described(
            "The place of the Node, before its removal if it was removed. Null: the Flow itself.",
            nullable(text(1))),
        null_if_empty(&FlowChange::path)},
       {"oldPath", described("Its former place, if it moved.", nullable(text(1))),
        null_if_empty(&FlowChange::old_path)},
       {"type", nullable(text(1)), null_if_empty(&FlowChange::type)},
       {"id", described("The Node's own.", nullable(text(1))), null_if_empty(&FlowChange::id)},
       {"fields", list_of(field), fields_of},
       {"node", described("The added or removed Node, whole.", anything()), &FlowChange::node}});
  return shape;
}

// The version that was in effect when `to` took effect. If `to` never did, the version in effect.
// `to` itself, if there is none.
std::int64_t version_before(const std::vector<FlowVersionInfo>& versions, std::int64_t to) {
  const auto place = [](const FlowVersionInfo& each) {
    return std::pair(*each.took_effect_at, each.version);
  };
  const auto end = std::ranges::find(versions, to, &FlowVersionInfo::version);
  const FlowVersionInfo* before = nullptr;
  for (const auto& each : versions) {
    if (!each.took_effect_at || each.version == to) continue;
    const bool is_later = end != versions.end() && end->took_effect_at && place(each) > place(*end);
    if (!is_later && (before == nullptr || place(each) > place(*before))) before = &each;
  }
  return before == nullptr ? to : before->version;
}

// Default of `to`: the newest version. Default of `from`: the version in effect before `to`.
Result<std::pair<std::int64_t, std::int64_t>> compared_versions(const std::string& flow,
                                                                const Call& call,
                                                                ProjectServices& services) {
  auto from = number_parameter(call.request, "from", 1, max_whole_number, 0);
  if (!from) return model::fail(from.error());
  auto to = number_parameter(call.request, "to", 1, max_whole_number, 0);
  if (!to) return model::fail(to.error());
  auto versions = from_store(services.store.assets().flow_versions(flow));
  if (!versions) return model::fail(versions.error());
  if (*to == 0) *to = versions->front().version;
  if (*from == 0) *from = version_before(*versions, *to);
  return std::pair(*from, *to);
}

Result<Response> diff(const Call& call, ProjectServices& services) {
  auto flow = flow_of(call, services);
  if (!flow) return model::fail(flow.error());
  auto compared = compared_versions(*flow, call, services);
  if (!compared) return model::fail(compared.error());
  auto before = definition_of(*flow, compared->first, services);
  if (!before) return model::fail(before.error());
  auto after = definition_of(*flow, compared->second, services);
  if (!after) return model::fail(after.error());
  const auto changes = flows::tools::diff_flows(before->content, after->content);
  return ok({{"_id", *flow},
             {"name", after->version.name},
             {"from", compared->first},
             {"to", compared->second},
             {"changes", change_shape()(changes)}});
}

Result<std::int64_t> read_version(const Request& request) {
  auto body = read_object(request);
  if (!body) return model::fail(body.error());
  return whole_number(*body, "version", 1, max_whole_number);
}

// The names in the version that its project does not have, as problems.
flows::Problems missing_parts(const flows::Flow& flow, const store::PartNames& known) {
  flows::Problems problems;
  const auto expect = [&](const std::string& where, std::string_view part, const std::string& name,
                          const flows::Names& names) {
    if (names.contains(name)) return;
    problems.push_back({"",
                        {},
                        where,
                        "there is no " + std::string(part) + " '" + name + "'" +
                            flows::did_you_mean(name, names)});
  };
  for (const auto& name : flow.lexicons()) expect("lexicons", "lexicon", name, known.lexicons);
  for (const auto& slot : flow.slots()) {
    for (const auto& use : slot.outline.uses) {
      using Kind = flows::Flow::Use::Kind;
      const auto& at = slot.address;
      if (use.kind == Kind::connection) expect(at, "Connection", use.name, known.connections);
      if (use.kind == Kind::flow) expect(at, "Flow", use.name, known.flows);
      if (use.kind == Kind::lexicon) expect(at, "lexicon", use.name, known.lexicons);
      if (use.kind != Kind::knowledge) continue;
      expect(at, "knowledge store", use.name, known.knowledge_stores);
    }
  }
  return problems;
}

// A version that can't run would stop the conversations of its Endpoints.
Result<void> check_runnable(const model::FlowVersion& version, ProjectServices& services) {
  const std::string name = "version " + std::to_string(version.version);
  auto compiled = flows::Flow::compile_text(version.definition);
  if (!compiled) {
    return model::fail(Errc::conflict,
                       name + " can't run in this program: " + flows::to_string(compiled.error()));
  }
  auto known = services.store.assets().part_names(version.project_id);
  if (!known) return model::fail(store_error(known.error()));
  const auto missing = missing_parts(**compiled, *known);
  if (missing.empty()) return {};
  return model::fail(Errc::conflict, name +
                                         " names parts that the project does not have; import "
                                         "them first:\n" +
                                         flows::to_string(missing));
}

Result<Response> roll_back(const Call& call, ProjectServices& services) {
  auto flow = flow_of(call, services);
  if (!flow) return model::fail(flow.error());
  auto number = read_version(call.request);
  if (!number) return model::fail(number.error());
  auto old = version_of(*flow, *number, services);
  if (!old) return model::fail(old.error());
  if (auto good = check_runnable(*old, services); !good) return model::fail(good.error());
  auto made = services.store.assets().roll_back(*flow, *number, call.principal->user_id);
  if (!made) return model::fail(store_error(made.error()));
  return ok({{"_id", *flow},
             {"name", made->name},
             {"version", made->version},
             {"restoredFrom", *number}});
}

// The share 0 stops the ramp.
Result<store::WantedRamp> read_ramp(const Request& request) {
  auto body = read_object(request);
  if (!body) return model::fail(body.error());
  store::WantedRamp wanted;
  const auto version = whole_number(*body, "version", 1, max_whole_number);
  if (!version) return model::fail(version.error());
  wanted.version = *version;
  const auto share = whole_number(*body, "share", 0, store::all_sessions);
  if (!share) return model::fail(share.error());
  wanted.share = *share;
  if (body->value("maxErrors", json()).is_null()) return wanted;
  const auto max_errors = whole_number(*body, "maxErrors", 0, 100);
  if (!max_errors) return model::fail(max_errors.error());
  wanted.max_errors = *max_errors;
  return wanted;
}

Result<Response> set_ramp(const Call& call, ProjectServices& services) {
  auto flow = flow_of(call, services);
  if (!flow) return model::fail(flow.error());
  auto wanted = read_ramp(call.request);
  if (!wanted) return model::fail(wanted.error());
  auto version = version_of(*flow, wanted->version, services);
  if (!version) return model::fail(version.error());
  if (wanted->share > 0) {
    if (auto good = check_runnable(*version, services); !good) return model::fail(good.error());
  }
  wanted->flow_id = *flow;
  wanted->by = call.principal->user_id;
  auto& assets = services.store.assets();
  auto ramp = from_store(wanted->share == 0 ? assets.stop_ramp(*flow, wanted->version)
                                            : assets.set_ramp(*wanted));
  if (!ramp) return model::fail(ramp.error());
  return ok(ramp_shape()(*ramp));
}

Result<Response> stop_ramp(const Call& call, ProjectServices& services) {
  auto flow = flow_of(call, services);
  if (!flow) return model::fail(flow.error());
  auto version = number_parameter(call.request, "version", 1, max_whole_number, 0);
  if (!version) return model::fail(version.error());
  auto ramp = from_store(services.store.assets().stop_ramp(
      *flow, *version == 0 ? std::nullopt : std::optional(*version)));
  if (!ramp) return model::fail(ramp.error());
  return ok(ramp_shape()(*ramp));
}

Description describe_list_flows() {
  const auto flow = object({{"_id", id()},
                            {"projectId", id()},
                            {"name", text(1)},
                            {"version", described("The version in effect.", version_number())}});
  return {.summary = "List the Flows of a project",
          .parameters = {project_parameter()},
          .answers = {json_answer("The Flows, by name.", items_of(named("FlowSummary", flow)))},
          .errors = {404}};
}

Description describe_versions() {
  return {.summary = "List the versions of a Flow",
          .details = "The last " + std::to_string(store::kept_flow_versions) +
                     " versions are kept, and versions that sessions still run.",
          .answers = {
              json_answer("The versions, newest first, and the Flow's ramp.",
                          with_members(items_of(version_shape().schema()),
                                       {{"ramp", described("The running ramp, or the last one.",
                                                           nullable(ramp_shape().schema()))}}))}};
}

Description describe_definition() {
  const auto body = object({{"_id", id()},
                            {"name", text(1)},
                            {"version", version_number()},
                            {"primaryLocale", described("Of the project.", text())},
                            {"definition", described("As bundles have it.", free_object())}});
  return {.summary = "Show a version of a Flow",
          .parameters = {query_parameter("version", "Default: the newest.", version_number())},
          .answers = {json_answer("The version.", named("FlowDefinition", body))}};
}

Description describe_graph() {
  const auto node = object(
      {{"name", described("Within this answer.", text(1))},
       {"node", described("Its id, or its place in the Flow.", text(1))},
       {"type", text(1)},
       {"text", described("Its text or condition, cut to one line.", text())},
       {"sessions", described("That wait at it in this version.", integer(0))},
       {"runs", described("In how many events it ran in this version, among the last event of "
                          "each of the newest sessions.",
                          integer(0))},
       {"failures", described("In how many of these it ended in a dead letter, or in a call "
                              "that failed.",
                              integer(0))}});
  const auto arrow =
      object({{"from", described("A Node's name, or `start`.", text(1))},
              {"to", described("A Node's name, or `done`: the end of the Flow.", text(1))},
              {"way", described("Its branch. Empty: the Node that follows.", text())},
              {"waits", described("The Node waits before it goes this way.", boolean())}});
  const auto body = object(
      {{"_id", id()},
       {"name", text(1)},
       {"version", version_number()},
       {"nodes", list_of(node)},
       {"arrows", list_of(arrow)},
       {"isComplete", described("False: only the newest sessions were counted.", boolean())}});
  return {.summary = "Get a version of a Flow as a graph",
          .parameters = {query_parameter("version", "Default: the newest.", version_number())},
          .answers = {json_answer("The graph, with the sessions that stand at each Node, and its "
                                  "failures.",
                                  named("FlowGraph", body))}};
}

Description describe_diff() {
  const auto body = object({{"_id", id()},
                            {"name", text(1)},
                            {"from", version_number()},
                            {"to", version_number()},
                            {"changes", list_of(change_shape().schema())}});
  return {.summary = "Compare two versions of a Flow",
          .parameters = {query_parameter(
                             "from", "The older version; default: the one in effect before `to`.",
                             version_number()),
                         query_parameter("to", "The newer version; default: the newest.",
                                         version_number())},
          .answers = {
              json_answer("The changes from one version to the other.", named("FlowDiff", body))}};
}

Description describe_rollback() {
  const auto wanted = object({{"version", version_number()}});
  const auto body =
      object({{"_id", id()},
              {"name", text(1)},
              {"version", described("The version in effect after the rollback.", version_number())},
              {"restoredFrom", version_number()}});
  return {.summary = "Go back to an older version of a Flow",
          .details =
              "Makes a new version that is equal to the older one, unless the version in effect is "
              "equal already. Executions continue with the version that they began with. A 409: "
              "the Flow is in a ramp, or the older version names a Flow, Connection, lexicon or "
              "knowledge store that the project does not have.",
          .body = json_content(named("Rollback", with_example({{"version", 1}}, wanted))),
          .answers = {json_answer("The version in effect.", named("RolledBack", body))},
          .errors = {409}};
}

Description describe_set_ramp() {
  const auto wanted = object(
      {{"version", described("A kept version that is not in effect, such as one that was imported "
                             "with `hold`.",
                             version_number())},
       {"share",
        described("Of the sessions, in percent. A larger share keeps the sessions of a smaller "
                  "one. 0 stops the ramp, 100 finishes it.",
                  integer(0, 100))},
       {"maxErrors",
        described("The daemon takes the ramp back when more of 100 Turns of the version have "
                  "failed, from " +
                      std::to_string(store::least_ramp_turns) + " Turns on. Default: " +
                      std::to_string(store::usual_ramp_errors) + ", or as it is.",
                  nullable(integer(0, 100))),
        Need::optional}});
  return {
      .summary = "Give a version of a Flow to a share of the sessions",
      .details =
          "Begins a ramp, or changes the running one. A session keeps its version while "
          "the ramp runs. Executions continue with the version that they began with. A 409: the "
          "version names a Flow, Connection, lexicon or knowledge store that the project does not "
          "have, or another ramp runs.",
      .body = json_content(named("Ramp", with_example({{"version", 2}, {"share", 10}}, wanted))),
      .answers = {json_answer("The ramp.", ramp_shape().schema())},
      .errors = {409}};
}

Description describe_stop_ramp() {
  return {.summary = "Stop a ramp",
          .details = "All sessions run the stable version with their next input.",
          .parameters = {query_parameter(
              "version", "Only a ramp of this version. A ramp of another version gets 409.",
              version_number())},
          .answers = {json_answer("The ramp.", ramp_shape().schema())},
          .errors = {409}};
}

}  // namespace

Operations flows_operations() {
  static constexpr Operation rows[] = {
      for_operators("listFlows", Method::get, "/management/flows", Role::project_admin, list_flows,
                    describe_list_flows),
      for_operators("listFlowVersions", Method::get, "/management/flows/{flowId}/versions",
                    Role::project_admin, list_versions, describe_versions),
      for_operators("showFlowDefinition", Method::get, "/management/flows/{flowId}/definition",
                    Role::project_admin, show_definition, describe_definition),
      for_operators("showFlowGraph", Method::get, "/management/flows/{flowId}/graph",
                    Role::project_admin, show_graph, describe_graph),
      for_operators("diffFlow", Method::get, "/management/flows/{flowId}/diff", Role::project_admin,
                    diff, describe_diff),
      for_operators("rollBackFlow", Method::post, "/management/flows/{flowId}/rollback",
                    Role::project_admin, roll_back, describe_rollback),
      for_operators("setFlowRamp", Method::post, "/management/flows/{flowId}/ramp",
                    Role::project_admin, set_ramp, describe_set_ramp),
      for_operators("stopFlowRamp", Method::delete_, "/management/flows/{flowId}/ramp",
                    Role::project_admin, stop_ramp, describe_stop_ramp),
  };
  return rows;
}

}  // namespace conversed::api

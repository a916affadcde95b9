// POST /management/import: imports a whole project bundle, or lists all its problems. Body:
// {"file": its name, "text": its text, "environment": {NAME: value}, "prune": whether parts that
// the bundle does not name are deleted, "hold": whether new versions of Flows are not in effect}.
// `?dryRun=true` changes nothing: it lists the problems or, if there are none, the changes. Both
// list warnings. One import runs at a time, because it takes much memory.
//
// GET /management/projects: the projects of the organisation that the user is a member of.
//
// GET /management/projects/{projectId}/export: a project as a bundle that makes the same project.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/http/error_reply.h"
#include "api/live/blocking_pool.h"
#include "api/openapi/description.h"
#include "api/operations/import_plan.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/operations/usages.h"
#include "api/replies.h"
#include "flows/bundle/loader.h"
#include "flows/journey.h"
#include "flows/tools/check.h"
#include "store/jobs/proactive.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;
using namespace openapi;

const Shape<flows::Problem>& problem_shape() {
  using flows::Problem;
  static const Shape<Problem> shape(
      "", {{"file", text(), &Problem::file},
           {"line", integer(0), [](const Problem& problem) { return problem.place.line; }},
           {"column", integer(0), [](const Problem& problem) { return problem.place.column; }},
           {"path", text(), &Problem::path},
           {"message", text(1), &Problem::message}});
  return shape;
}

const Shape<PlannedPart>& plan_shape() {
  const auto waiting =
      object({{"node", described("Its id, or its place in the Flow.", text(1))},
              {"sessions", integer(1)},
              {"stays", described("False: these sessions start the Flow again, because the "
                                  "imported version lacks the Node, or does not wait there.",
                                  boolean())}});
  static const Shape<PlannedPart> shape(
      "PlannedPart",
      {{"part", text(1), &PlannedPart::part},
       {"name", text(1), &PlannedPart::name},
       {"change",
        described("`leftOver`: the project has it, the bundle does not; the import keeps it. "
                  "`deleted`: the import deletes it.",
                  one_of({"new", "changed", "unchanged", "leftOver", "deleted"})),
        [](const PlannedPart& part) { return to_string(part.change); }},
       {"waiting",
        described("The sessions that wait in a changed or left over Flow.", list_of(waiting)),
        [](const PlannedPart& part) {
          json list = json::array();
          for (const auto& each : part.waiting) {
            list.push_back(
                {{"node", each.node}, {"sessions", each.sessions}, {"stays", each.stays}});
          }
          return list;
        }}});
  return shape;
}

const Shape<store::RemovedPart>& removed_shape() {
  using store::RemovedPart;
  static const Shape<RemovedPart> shape(
      "", {{"part", text(1), &RemovedPart::part}, {"name", text(1), &RemovedPart::name}});
  return shape;
}

// The loader's own limit is 16 MiB of text. As JSON the text may take more bytes.
constexpr std::size_t max_body = std::size_t{24} << 20;

struct Source {
  std::string file;
  std::string text;
  json environment = json::object();
  bool prune = false;
  bool hold = false;
};

Result<Source> read_source(const Request& request) {
  Source source;
  auto body = read_object(request, {{"file", &source.file},
                                    {"text", &source.text},
                                    {"environment", &source.environment},
                                    {"prune", &source.prune},
                                    {"hold", &source.hold}});
  if (!body) return model::fail(body.error());
  if (source.text.empty()) return model::fail(Errc::invalid_argument, "text is required");
  if (source.prune && source.hold) {
    return model::fail(Errc::invalid_argument,
                       "prune and hold exclude each other: the versions in effect may use the parts"
                       " that prune deletes");
  }
  if (source.file.empty()) source.file = "bundle.yaml";
  for (const auto& [name, value] : source.environment.items()) {
    if (!value.is_string()) {
      return model::fail(Errc::invalid_argument, "environment." + name + " must be a string");
    }
  }
  return source;
}

struct Loaded {
  flows::Checked<model::Bundle> bundle;
  flows::Problems warnings{};
};

Loaded load(const flows::Located& located, const std::string& file,
            const flows::Environment& environment, flows::Variables variables,
            const ApiOptions& options) {
  using flows::tools::Scripts;
  auto bundle = flows::load_bundle(located, file, environment, {.variables = variables});
  auto warnings =
      flows::tools::warnings_of(located, file, bundle ? flows::Problems() : bundle.error(),
                                options.runs_scripts ? Scripts::run : Scripts::no_scripts);
  return {std::move(bundle), std::move(warnings)};
}

// The importing user gives the values of the environment, because a project must not read the
// daemon's environment.
Loaded load(const flows::Located& located, const Source& source, const ApiOptions& options) {
  const auto value_of = [&](std::string_view name) -> std::optional<std::string> {
    const auto value = source.environment.find(name);
    if (value == source.environment.end()) return std::nullopt;
    return value->get<std::string>();
  };
  return load(located, source.file, value_of, flows::Variables::needed, options);
}

// The name of the bundle's project. Empty if there is none; loading reports that.
std::string project_named_in(const flows::Located& located) {
  const auto* project = located.find("project");
  const auto* name = project == nullptr ? nullptr : project->find("name");
  return name != nullptr && name->is_text() ? name->text() : std::string();
}

// An existing project requires the role in the project, a new one the role in the organisation.
Result<void> check_role(ProjectServices& services, const Principal& principal,
                        const std::string& project_name) {
  if (principal.has(Role::project_admin)) return {};
  auto projects = services.store.assets().projects(principal.organisation_id);
  if (!projects) return model::fail(store_error(projects.error()));
  for (const store::ProjectInfo& project : *projects) {
    if (project.name != project_name) continue;
    if (principal.access(project.organisation_id, project.id, Role::project_admin) ==
        Access::granted) {
      return {};
    }
    break;  // same refusal as for a new name, so the name stays hidden
  }
  return model::fail(Errc::permission_denied, "the role projectAdmin is needed");
}

struct ImportMode {
  bool prune = false;
  bool hold = false;
  bool dry_run = false;
};

// The changes of an import, made or planned.
struct Imported {
  json report{};
  store::Removal removal{};  // of the parts that the bundle does not name
  bool undone = false;       // a dry run, or something uses such a part
};

// Empty if the organisation has no such project.
Result<std::string> id_of_project(ProjectServices& services, const Principal& principal,
                                  const std::string& name) {
  auto projects = services.store.assets().projects(principal.organisation_id);
  if (!projects) return model::fail(projects.error());
  const auto found = std::ranges::find(*projects, name, &store::ProjectInfo::name);
  return found == projects->end() ? std::string() : found->id;
}

// Writes the bundle's parts, and its journey if the project is set up already. Returns the report.
Result<json> import_parts(store::Writer& writer, ProjectServices& services,
                          const Principal& principal, const model::Bundle& bundle,
                          const ImportMode& mode) {
  auto report = services.store.assets().import_bundle(
      writer, principal.organisation_id, bundle, {.tokens = services.options.quota.get().tokens},
      principal.user_id, mode.hold ? store::NewVersions::held : store::NewVersions::in_effect);
  if (!report || bundle.proactive.is_null()) return report;
  const auto replaced =
      store::Proactive::replace_journey(writer, (*report)["project"]["_id"].get<std::string>(),
                                        flows::complete_journey(bundle.proactive, ""));
  if (!replaced) return model::fail(replaced.error());
  return report;
}

// Imports the bundle in one transaction. If `prune`, it deletes the parts that the bundle does not
// name. A dry run rolls the transaction back. It locks the store as an import does.
Result<Imported> import_all(ProjectServices& services, const Principal& principal,
                            const model::Bundle& bundle, const ImportMode& mode) {
  const auto present = id_of_project(services, principal, bundle.project_name);
  if (!present) return model::fail(present.error());
  auto left_over = Result<store::PartsToDelete>();
  if (mode.prune) {
    left_over =
        services.store.removals().left_over(*present, bundle, flow_reader(), services.clock.now());
    if (!left_over) return model::fail(left_over.error());
  }
  Imported all;
  const auto done =
      services.store.committer().write_and_wait([&](store::Writer& writer) -> Result<void> {
        all = {};  // the transaction may run again
        const auto import = [&]() -> Result<void> {
          auto report = import_parts(writer, services, principal, bundle, mode);
          if (!report) return model::fail(report.error());
          all.report = *std::move(report);
          return {};
        };
        if (mode.prune) {
          using Mode = store::Removals::Mode;
          auto removal = store::Removals::prune(writer, *left_over, bundle,
                                                mode.dry_run ? Mode::dry_run : Mode::real, import);
          if (!removal) return model::fail(removal.error());
          all.removal = *std::move(removal);
        } else if (auto imported = import(); !imported) {
          return imported;
        }
        all.undone = mode.dry_run || !all.removal.usages.empty();
        if (all.undone) return model::fail(Errc::conflict, "nothing is imported");
        return {};
      });
  if (!done && !all.undone) return model::fail(done.error());
  return all;
}

// Puts the secrets, which an export leaves out, into the exported bundle. A secret that can't be
// read, or whose part was deleted meanwhile, equals no other one.
Result<void> add_secrets(store::Assets& assets, const std::string& project, model::Bundle& bundle) {
  const auto connections = assets.connections(project);
  if (!connections) return model::fail(connections.error());
  for (const auto& each : *connections) {
    const auto part =
        std::ranges::find(bundle.connections, each.name, &model::BundleConnection::name);
    if (part == bundle.connections.end()) continue;
    const auto secrets = assets.connection_secrets(each.id);
    if (!secrets && secrets.error().code == Errc::unavailable) return model::fail(secrets.error());
    part->fields = secrets ? json::parse(secrets->fields, nullptr, false) : json();
  }
  const auto endpoints = assets.endpoints(project);
  if (!endpoints) return model::fail(endpoints.error());
  for (const auto& each : *endpoints) {
    const auto part = std::ranges::find(bundle.endpoints, each.name, &model::BundleEndpoint::name);
    if (part == bundle.endpoints.end() || part->webhook.empty()) continue;
    const auto secrets = assets.webhook_secrets(each.id);
    if (!secrets && secrets.error().code == Errc::unavailable) return model::fail(secrets.error());
    part->webhook.front().secret = secrets ? secrets->current.value_or("") : "unreadable";
  }
  return {};
}

// The changes that an import would make, and whether all sessions were counted.
Result<json> planned(ProjectServices& services, const Principal& principal,
                     const model::Bundle& bundle, const store::Removal& removal) {
  model::Bundle present;
  StandingSessions sessions;
  auto& assets = services.store.assets();
  const auto found = id_of_project(services, principal, bundle.project_name);
  if (!found) return model::fail(found.error());
  if (!found->empty()) {
    auto exported = assets.export_bundle(*found);
    if (!exported) return model::fail(exported.error());
    if (auto added = add_secrets(assets, *found, *exported); !added) {
      return model::fail(added.error());
    }
    auto standing = StandingSessions::of(*found, services);
    if (!standing) return model::fail(standing.error());
    present = *std::move(exported);
    sessions = *std::move(standing);
  }
  return json{{"problems", json::array()},
              {"plan", plan_shape()(import_plan(present, bundle, sessions, removal.parts))},
              {"usages", usage_shape()(removal.usages)},
              {"isComplete", sessions.is_complete()}};
}

// Runs on the pool of imports. Frees the request as soon as it is read, because the request may
// take as much memory as its import.
Result<Response> import_bundle(Call& call, ProjectServices& services,
                               const ExchangeContext& exchange) {
  const auto dry_run = read_dry_run(call.request);
  if (!dry_run) return model::fail(dry_run.error());
  auto source = read_source(call.request);
  if (!source) return model::fail(source.error());
  call.request = {};
  const ImportMode mode{source->prune, source->hold, *dry_run};
  const auto& principal = *call.principal;
  auto located = flows::read_source(source->text, source->file, {});
  // A caller without the role does not learn what the bundle's problems are.
  if (const auto name = located ? project_named_in(*located) : std::string(); !name.empty()) {
    if (auto may = check_role(services, principal, name); !may) return model::fail(may.error());
  }
  auto [bundle, warnings] =
      located ? load(*located, *source, services.options) : Loaded{tl::unexpected(located.error())};
  located = flows::Located();
  source = {};
  if (!bundle) {
    const json details{{"problems", problem_shape()(bundle.error())},
                       {"warnings", problem_shape()(warnings)}};
    return error_response(400, "the bundle has problems; nothing was imported", exchange,
                          services.clock.now(), ErrorShape::problem, &details);
  }
  if (auto may = check_role(services, principal, bundle->project_name); !may) {
    return model::fail(may.error());
  }
  auto all = import_all(services, principal, *bundle, mode);
  if (!all) return model::fail(store_error(all.error()));
  if (all->undone && !*dry_run) {
    return still_used("nothing was imported", all->removal.usages, exchange, services.clock.now());
  }
  auto report = std::move(all->report);
  if (*dry_run) {
    auto plan = planned(services, principal, *bundle, all->removal);
    if (!plan) return model::fail(store_error(plan.error()));
    report = *std::move(plan);
  } else {
    report["deleted"] = removed_shape()(all->removal.parts);
  }
  report["warnings"] = problem_shape()(warnings);
  return ok(report);
}

void import(Call call, ProjectServices& services, Reply reply) {
  // Checks the role before it reads the body, because parsing takes memory.
  if (!call.principal->has_anywhere(Role::project_admin)) {
    return reply.fail({Errc::permission_denied, "the role projectAdmin is needed"});
  }
  struct Waiting {
    Call call;
    Reply reply;
  };
  const auto waiting = std::make_shared<Waiting>(Waiting{std::move(call), std::move(reply)});
  const bool posted = services.imports.post(
      waiting->call.principal->organisation_id, BlockingPool::Line::others, [waiting, &services] {
        auto answer = import_bundle(waiting->call, services, waiting->reply.context());
        answer ? waiting->reply.send(*std::move(answer)) : waiting->reply.fail(answer.error());
      });
  if (posted) return;
  waiting->reply.fail({Errc::unavailable, "too many imports wait for their turn; try again later"});
}

Property warnings_property() {
  return {"warnings",
          described("Places at which a Flow runs, but probably not as intended. `path` names the "
                    "Flow and the Node.",
                    list_of(problem_shape().schema()))};
}

Schema report_schema() {
  const auto name = Property{"name", text()};
  const auto named_part = list_of(object({{"_id", id()}, name}));
  const auto tokens = list_of(object({{"_id", id()}, {"label", text()}}));
  const auto members = list_of(object({{"_id", id()}, {"email", text()}}));
  const auto lexicons = list_of(object({{"_id", id()}, name, {"slots", named_part}}));
  const auto stores = list_of(object({{"_id", id()}, name, {"sources", named_part}}));
  const auto flows = list_of(object({{"_id", id()}, name, {"version", integer(1)}}));
  const auto endpoints = list_of(object({{"_id", id()}, name, {"urlToken", url_token()}}));
  return named("ImportReport",
               object({{"project", object({{"_id", id()}, name, {"locales", named_part}})},
                       {"members", members},
                       {"tokens", tokens},
                       {"connections", named_part},
                       {"lexicons", lexicons},
                       {"knowledgeStores", stores},
                       {"flows", flows},
                       {"endpoints", endpoints},
                       {"deleted", described("The parts that `prune` deleted.",
                                             list_of(removed_shape().schema()))},
                       warnings_property()}));
}

Description describe_import() {
  auto body =
      object({{"text", described("The bundle, in YAML or JSON.", text(1))},
              {"file", described("Its name, for problems.", nullable(text())), Need::optional},
              {"environment", described("The values of `${NAME}`.", nullable(map_of(text()))),
               Need::optional},
              {"prune",
               described("Deletes all parts of the project that the bundle does not name. Members "
                         "and locales stay. Not with `hold`.",
                         with_default(false, nullable(boolean()))),
               Need::optional},
              {"hold",
               described("Stores new versions of the project's Flows without giving them to "
                         "sessions. `setFlowRamp` does that.",
                         with_default(false, nullable(boolean()))),
               Need::optional}});
  body = with_condition(std::move(body), object({{"prune", constant(true)}}),
                        object({{"hold", nullable(constant(false)), Need::optional}}), anything());
  const Value example{{"file", "shop.yaml"},
                      {"text",
                       "conversed: 1\n"
                       "project: {name: Example, locales: [en]}\n"
                       "flows:\n"
                       "  - {name: Echo, nodes: [{say: \"{{input.text}}\"}]}\n"
                       "endpoints:\n"
                       "  - {name: web, flow: Echo}\n"}};
  const auto no_problems = object(
      {{"problems", list_of(anything(), 0)},
       warnings_property(),
       {"plan", described("Each part of the bundle and of the present project.",
                          list_of(plan_shape().schema()))},
       {"usages",
        described("Of parts that `prune` would delete. If there are any, the import would "
                  "be refused.",
                  list_of(usage_shape().schema()))},
       {"isComplete", described("False: only the newest sessions were counted.", boolean())}});
  return {.summary = "Import a project bundle",
          .details =
              "Imports the whole bundle or nothing. A 400 has all problems, with their places, in "
              "`details.problems`, and warnings in `details.warnings`. With `prune` a 409 has what "
              "still uses the parts that would be deleted, in `details.usages`. Without "
              "`hold` a Flow in a ramp takes no third version (409).",
          .parameters = {query_parameter("dryRun", "Only checks the bundle, and lists the changes.",
                                         with_default(false, boolean()))},
          .body = json_content(named("Bundle", with_example(example, body))),
          .answers = {json_answer("The project's parts after the import. For a dry run the "
                                  "changes that it would make.",
                                  any_of({report_schema(), no_problems}))},
          .errors = {402, 409}};
}

const Shape<store::ProjectInfo>& project_shape() {
  using store::ProjectInfo;
  static const Shape<ProjectInfo> shape(
      "Project", {{"_id", id(), &ProjectInfo::id}, {"name", text(1), &ProjectInfo::name}});
  return shape;
}

Result<Response> list_projects(const Call& call, ProjectServices& services) {
  auto projects = projects_with(services.store, *call.principal, Role::member);
  return items_response(std::move(projects), project_shape());
}

// Makes a file name of the project's name, which may have any characters.
std::string file_name(const std::string& project) {
  std::string name;
  for (const char c : project) {
    const bool stays = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (stays) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (name.ends_with('-')) name.pop_back();
  return (name.empty() ? "project" : name) + ".yaml";
}

Result<Response> export_project(const Call& call, ProjectServices& services) {
  auto project = path_project(services.store, call);
  if (!project) return model::fail(project.error());
  auto bundle = services.store.assets().export_bundle(project->id);
  if (!bundle) return model::fail(store_error(bundle.error()));
  auto written = flows::write_bundle(*bundle);
  const std::string file = file_name(project->name);
  // An import of the text would report them, such as a deleted Connection.
  constexpr auto variables = flows::Variables::may_be_missing;
  const auto located = flows::read_source(written.text, file, {.variables = variables});
  const auto read = located ? load(*located, file, {}, variables, services.options)
                            : Loaded{tl::unexpected(located.error())};
  json problems = read.bundle ? json::array() : json(problem_shape()(read.bundle.error()));
  return ok({{"file", file},
             {"text", std::move(written.text)},
             {"variables", std::move(written.variables)},
             {"problems", std::move(problems)},
             {"warnings", problem_shape()(read.warnings)}});
}

Description describe_list_projects() {
  return {.summary = "List projects",
          .details = "The projects that you are a member of.",
          .answers = {json_answer("The projects, by name.", items_of(project_shape().schema()))}};
}

Description describe_export() {
  const auto body = object(
      {{"file", described("A file name for the bundle.", text(1))},
       {"text", described("The bundle, in YAML.", text(1))},
       {"variables", described("The names in its `${NAME}` references, which stand for secrets.",
                               list_of(text(1)))},
       {"problems", described("Reasons for which an import would refuse the bundle, such as "
                              "a Flow that names a deleted Connection.",
                              list_of(problem_shape().schema()))},
       warnings_property()});
  return {.summary = "Export a project as a bundle",
          .details = "An import of the bundle makes the same project. It contains no secrets.",
          .answers = {json_answer("The bundle.", named("ExportedBundle", body))}};
}

constexpr Operation with_large_body(Operation row) {
  row.max_body_bytes = max_body;
  return row;
}

}  // namespace

Operations bundles_operations() {
  static constexpr Operation rows[] = {
      with_large_body(for_operators("importProject", Method::post, "/management/import",
                                    Role::project_admin, import, describe_import)),
      for_operators("listProjects", Method::get, "/management/projects", Role::member,
                    list_projects, describe_list_projects),
      for_operators("exportProject", Method::get, "/management/projects/{projectId}/export",
                    Role::project_admin, export_project, describe_export, Audited::always),
  };
  return rows;
}

}  // namespace conversed::api

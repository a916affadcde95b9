// POST /management/import: takes a project bundle whole, or says everything that is wrong with it.
// `?dryRun=true` only says. Body: {"file": its name, "text": its text, "environment": {NAME:
// value}}. One runs at a time: it takes memory.
// GET /management/projects: the projects of the organisation that one is a member of.
// GET /management/projects/{projectId}/export: a project as the bundle that it could have come
// from.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "api/http/error_reply.h"
#include "api/live/blocking_pool.h"
#include "api/openapi/description.h"
#include "api/openapi/lists.h"
#include "api/operations/management.h"
#include "api/operations/objects.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "flows/bundle/loader.h"
#include "flows/journey.h"
#include "store/jobs/journeys.h"
#include "store/store.h"

namespace conversed::api {

namespace {

using model::Errc;
using model::Result;
using nlohmann::json;

json to_json(const flows::Problems& problems) {
  json list = json::array();
  for (const flows::Problem& problem : problems) {
    list.push_back({{"file", problem.file},
                    {"line", problem.place.line},
                    {"column", problem.place.column},
                    {"path", problem.path},
                    {"message", problem.message}});
  }
  return list;
}

// The loader's own bound is 16 MiB of text; as JSON it may take more bytes.
constexpr std::size_t max_body = std::size_t{24} << 20;

struct Source {
  std::string file;
  std::string text;
  json environment = json::object();
};

Result<Source> read_source(const Request& request) {
  auto body = read_object(request);
  if (!body) return model::fail(body.error());
  Source source;
  auto file = text_member(*body, "file");
  if (!file) return model::fail(file.error());
  source.file = file->empty() ? "bundle.yaml" : std::move(*file);
  auto text = text_member(*body, "text");
  if (!text) return model::fail(text.error());
  if (text->empty()) return model::fail(Errc::invalid_argument, "text is required");
  source.text = std::move(*text);
  if (const auto names = body->find("environment"); names != body->end() && !names->is_null()) {
    if (!names->is_object()) {
      return model::fail(Errc::invalid_argument, "environment must be an object");
    }
    for (const auto& [name, value] : names->items()) {
      if (!value.is_string()) {
        return model::fail(Errc::invalid_argument, "environment." + name + " must be a string");
      }
    }
    source.environment = std::move(*names);
  }
  return source;
}

// The values of the environment come from whoever imports: the daemon's own is none of a project's
// business.
flows::Checked<model::Bundle> load(const Source& source) {
  return flows::load_bundle(source.text, source.file,
                            [&](std::string_view name) -> std::optional<std::string> {
                              const auto value = source.environment.find(name);
                              if (value == source.environment.end()) return std::nullopt;
                              return value->get<std::string>();
                            });
}

// Its own projects take a projectAdmin of the project, new ones one of the organisation.
Result<std::optional<store::ProjectInfo>> check_role(ProjectServices& services,
                                                     const Principal& principal,
                                                     const std::string& project_name) {
  auto projects = services.store.assets().projects(principal.organisation_id);
  if (!projects) return model::fail(store_error(projects.error()));
  for (store::ProjectInfo& project : *projects) {
    if (project.name != project_name) continue;
    if (principal.access(project.organisation_id, project.id, Role::project_admin) ==
        Access::granted) {
      return std::move(project);
    }
    break;  // refused as a new one would be: its name is not to be found out
  }
  if (!principal.has(Role::project_admin)) {
    return model::fail(Errc::permission_denied, "the role projectAdmin is needed");
  }
  return std::nullopt;
}

// For a dry run, which writes nothing: what the import itself finds out inside its transaction.
Result<void> check_tokens(ProjectServices& services, const Principal& principal,
                          const std::optional<store::ProjectInfo>& project,
                          const model::Bundle& bundle) {
  const auto quota = services.options.quota.get().tokens;
  if (quota == 0 || bundle.tokens.empty()) return {};
  auto used = services.store.assets().count_tokens(principal.organisation_id);
  if (!used) return model::fail(store_error(used.error()));
  std::set<std::string> added;
  for (const model::BundleToken& token : bundle.tokens) added.insert(token.label);
  if (project) {
    auto known = services.store.assets().project_assets(project->id);
    if (!known) return model::fail(store_error(known.error()));
    for (const auto& [label, script] : known->tokens) added.erase(label);
  }
  if (added.empty() || static_cast<std::uint64_t>(*used) + added.size() <= quota) return {};
  return model::fail(Errc::quota_exhausted,
                     "the plan's quota of Tokens does not suffice; nothing was imported");
}

// With the journey that the bundle has, should its project be set up already: one transaction.
model::Result<json> import_all(ProjectServices& services, const Principal& principal,
                               const model::Bundle& bundle) {
  model::Result<json> report;
  auto written =
      services.store.committer().write_and_wait([&](store::Writer& writer) -> model::Result<void> {
        report = services.store.assets().import_bundle(
            writer, principal.organisation_id, bundle,
            {.tokens = services.options.quota.get().tokens}, principal.user_id);
        if (!report) return model::fail(report.error());
        if (bundle.proactive.is_null()) return {};
        return store::replace_journey(writer, report->at("project").at("_id").get<std::string>(),
                                      flows::complete_journey(bundle.proactive, ""));
      });
  if (!written) return model::fail(written.error());
  return report;
}

// On the pool of imports. The request goes as soon as it is read: it may have as many bytes as all
// that is made of it.
Result<Response> import_bundle(Call& call, ProjectServices& services,
                               const ExchangeContext& exchange) {
  const auto dry_run = read_dry_run(call.request);
  if (!dry_run) return model::fail(dry_run.error());
  auto source = read_source(call.request);
  if (!source) return model::fail(source.error());
  call.request = {};
  auto bundle = load(*source);
  source = {};
  if (!bundle) {
    const json details{{"problems", to_json(bundle.error())}};
    return error_response(400, "the bundle has problems; nothing was imported", exchange,
                          services.clock.now(), ErrorShape::problem, &details);
  }
  auto project = check_role(services, *call.principal, bundle->project_name);
  if (!project) return model::fail(project.error());
  if (*dry_run) {
    auto room = check_tokens(services, *call.principal, *project, *bundle);
    if (!room) return model::fail(room.error());
    return ok({{"problems", json::array()}});
  }
  auto report = import_all(services, *call.principal, *bundle);
  if (!report) return model::fail(store_error(report.error()));
  return ok(*report);
}

void import(Call call, ProjectServices& services, Reply reply) {
  // Told before anything is read: parsing costs memory.
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

openapi::Schema report_schema() {
  using namespace openapi;
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
                       {"endpoints", endpoints}}));
}

Value example_bundle() {
  return {{"file", "shop.yaml"},
          {"text",
           "conversed: 1\n"
           "project: {name: Example, locales: [en]}\n"
           "flows:\n"
           "  - {name: Echo, nodes: [{say: \"{{input.text}}\"}]}\n"
           "endpoints:\n"
           "  - {name: web, flow: Echo}\n"}};
}

openapi::Description describe_import() {
  using namespace openapi;
  const auto body =
      object({{"text", described("The bundle, in YAML or JSON.", text(1))},
              {"file", described("Its name, for problems.", nullable(text())), Need::optional},
              {"environment", described("What `${NAME}` stands for.", nullable(map_of(text()))),
               Need::optional}});
  const auto no_problems = object({{"problems", list_of(anything(), 0)}});
  return {.summary = "Import a project bundle",
          .details =
              "Taken whole or not at all; a 400 has all problems, with their places, in "
              "`details.problems`.",
          .parameters = {query_parameter("dryRun", "It is only checked.",
                                         with_default(false, boolean()))},
          .body = json_content(named("Bundle", with_example(example_bundle(), body))),
          .answers = {{.description = "What there is of the project now; of a dry run, nothing.",
                       .content = json_content(any_of({report_schema(), no_problems}))}},
          .errors = {402, 409}};
}

Result<Response> list_projects(const Call& call, ProjectServices& services) {
  auto projects = projects_with(services.store, *call.principal, Role::member);
  if (!projects) return model::fail(projects.error());
  json items = json::array();
  for (const store::ProjectInfo& project : *projects) {
    items.push_back({{"_id", project.id}, {"name", project.name}});
  }
  return ok({{"items", std::move(items)}});
}

// What an import of the text would object to: a Flow that names a deleted Connection, say.
json problems_of(const std::string& text, const std::string& file) {
  auto bundle = flows::load_bundle(text, file, {}, {.variables = flows::Variables::may_be_missing});
  return bundle ? json::array() : to_json(bundle.error());
}

// A name for a file, whatever characters the project's name has.
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
  json problems = problems_of(written.text, file);
  return ok({{"file", file},
             {"text", std::move(written.text)},
             {"variables", std::move(written.variables)},
             {"problems", std::move(problems)}});
}

openapi::Schema problem_in_file() {
  using namespace openapi;
  return object({{"file", text()},
                 {"line", integer(0)},
                 {"column", integer(0)},
                 {"path", text()},
                 {"message", text(1)}});
}

openapi::Description describe_list_projects() {
  using namespace openapi;
  return {.summary = "List projects",
          .details = "Those that one is a member of.",
          .answers = {{.description = "The projects, by name.",
                       .content = json_content(items_of(
                           named("Project", object({{"_id", id()}, {"name", text(1)}}))))}}};
}

openapi::Description describe_export() {
  using namespace openapi;
  const auto body =
      object({{"file", described("A name for it.", text(1))},
              {"text", described("The bundle, in YAML.", text(1))},
              {"variables", described("The names of the `${NAME}` in it, which stand for secrets.",
                                      list_of(text(1)))},
              {"problems", described("What an import of it would refuse, such as a Flow that names "
                                     "a deleted Connection.",
                                     list_of(problem_in_file()))}});
  return {.summary = "Export a project as a bundle",
          .details = "Imported, it makes the same project. No secret is in it.",
          .answers = {{.description = "The bundle.",
                       .content = json_content(named("ExportedBundle", body))}},
          .errors = {404}};
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

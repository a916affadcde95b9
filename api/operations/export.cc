// GET /management/projects: the projects of the organisation that one is a member of.
// GET /management/projects/{projectId}/export: a project as the bundle that it could have come
// from.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/lists.h"
#include "api/operations/management.h"
#include "api/operations/objects.h"
#include "api/operations/operations.h"
#include "api/operations/problems.h"
#include "api/replies.h"
#include "flows/bundle/bundle_writer.h"
#include "flows/bundle/loader.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Result;
using nlohmann::json;

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
  auto id = id_of(call, "projectId");
  if (!id) return model::fail(id.error());
  auto project = open_project(services.store, *call.principal, *id, export_operation.role);
  if (!project) return model::fail(project.error());
  auto bundle = services.store.assets().export_bundle(*id);
  if (!bundle) return model::fail(store_error(bundle.error()));
  auto written = flows::write_bundle(*bundle);
  const std::string file = file_name(project->name);
  json problems = problems_of(written.text, file);
  return ok({{"file", file},
             {"text", std::move(written.text)},
             {"variables", std::move(written.variables)},
             {"problems", std::move(problems)}});
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
          .parameters = {path_parameter("projectId", "The project.", id())},
          .answers = {{.description = "The bundle.",
                       .content = json_content(named("ExportedBundle", body))}},
          .errors = {404}};
}

}  // namespace

constinit const Operation list_projects_operation =
    for_operators("listProjects", Method::get, "/management/projects", Role::member, list_projects,
                  describe_list_projects);

constinit const Operation export_operation =
    for_operators("exportProject", Method::get, "/management/projects/{projectId}/export",
                  Role::project_admin, export_project, describe_export, Audited::always);

}  // namespace conversed::api

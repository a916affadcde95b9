// DELETE /management/flows/{flowId}, /management/endpoints/{endpointId} and
// /management/projects/{projectId}: deletes it, or lists what still uses it. `?dryRun=true` only
// lists.
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/operations/usages.h"
#include "api/replies.h"
#include "store/assets/project_removal.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using namespace openapi;

Result<Response> deleted(const Call& call, ProjectServices& services, bool dry_run,
                         const store::PartsToDelete::Part& what,
                         const Result<std::vector<store::PartUsage>>& usages) {
  if (!usages) return model::fail(store_error(usages.error()));
  if (!dry_run && !usages->empty()) {
    return still_used("nothing was deleted", *usages, call.exchange, services.clock.now());
  }
  return ok({{"_id", what.id}, {"name", what.name}, {"usages", usage_shape()(*usages)}});
}

Result<Response> delete_part(const Call& call, ProjectServices& services,
                             const Result<store::PartsToDelete>& parts) {
  if (!parts) return model::fail(store_error(parts.error()));
  const auto dry_run = read_dry_run(call.request);
  if (!dry_run) return model::fail(dry_run.error());
  auto usages = Result<std::vector<store::PartUsage>>(parts->usages);
  if (!*dry_run && usages->empty()) {
    usages = services.store.committer().write_and_wait([&](store::Writer& writer) {
      services.store.assets().grow(writer);
      return store::Removals::remove(writer, *parts);
    });
  }
  const auto& part = parts->flows.empty() ? parts->endpoints.front() : parts->flows.front();
  return deleted(call, services, *dry_run, part, usages);
}

Result<Response> delete_flow(const Call& call, ProjectServices& services) {
  auto flow = path_flow(services.store, call);
  if (!flow) return model::fail(flow.error());
  return delete_part(call, services,
                     services.store.removals().flow(flow->id, flow_reader(), services.clock.now()));
}

Result<Response> delete_endpoint(const Call& call, ProjectServices& services) {
  auto id = id_of(call, "endpointId");
  if (!id) return model::fail(id.error());
  auto endpoint = services.store.assets().endpoint(*id);
  if (!endpoint) return model::fail(store_error(endpoint.error()));
  constexpr std::string_view missing = "there is no such Endpoint";
  const auto owner = *endpoint
                         ? Result<std::string>((*endpoint)->project_id)
                         : Result<std::string>(model::fail(Errc::not_found, std::string(missing)));
  auto project = open_owner(services.store, *call.principal, owner, call.operation.role, missing);
  if (!project) return model::fail(project.error());
  return delete_part(call, services,
                     services.store.removals().endpoint(*id, flow_reader(), services.clock.now()));
}

Result<Response> delete_project(const Call& call, ProjectServices& services) {
  auto project = path_project(services.store, call);
  if (!project) return model::fail(project.error());
  const auto dry_run = read_dry_run(call.request);
  if (!dry_run) return model::fail(dry_run.error());
  auto& store = services.store;
  const auto parts =
      parts_of_project(store.removals(), project->id, flow_reader(), services.clock.now());
  if (!parts) return model::fail(store_error(parts.error()));
  auto usages = store.committer().write_and_wait([&](store::Writer& writer) {
    if (!*dry_run) store.assets().grow(writer);
    return remove_project(writer, *parts,
                          *dry_run ? store::Removals::Mode::dry_run : store::Removals::Mode::real);
  });
  return deleted(call, services, *dry_run, {project->id, project->name}, usages);
}

Description describe_deletion(std::string summary, std::string details) {
  const auto body = object({{"_id", id()},
                            {"name", text(1)},
                            {"usages", described("For a dry run: what would refuse the deletion.",
                                                 list_of(usage_shape().schema()))}});
  return {
      .summary = std::move(summary),
      .details = std::move(details) +
                 " A 409 lists in `details.usages` what still uses it; nothing is deleted then.",
      .parameters = {query_parameter("dryRun", "Only lists what uses it.",
                                     with_default(false, boolean()))},
      .answers = {json_answer("What was deleted.", named("Deleted", body))},
      .errors = {409}};
}

Description describe_delete_flow() {
  return describe_deletion(
      "Delete a Flow with all its versions",
      "Sessions that wait in one of its Nodes, until they expire, refuse the deletion.");
}

Description describe_delete_endpoint() {
  return describe_deletion(
      "Delete an Endpoint",
      "Its URLToken is not known any more. Its sessions stay until the retention "
      "removes them. Events that are still in the log become dead letters.");
}

Description describe_delete_project() {
  return describe_deletion(
      "Delete a project with all its parts",
      "Its name and its URLTokens are free at once. The conversations, the profiles of their users "
      "and the dead letters are erased in the background. Events that are still in the log have no "
      "effects. Sessions that wait at an Endpoint, until they expire, refuse the deletion, and so "
      "do jobs that have not ended.");
}

}  // namespace

Operations deletions_operations() {
  static constexpr Operation rows[] = {
      for_operators("deleteFlow", Method::delete_, "/management/flows/{flowId}",
                    Role::project_admin, delete_flow, describe_delete_flow),
      for_operators("deleteEndpoint", Method::delete_, "/management/endpoints/{endpointId}",
                    Role::project_admin, delete_endpoint, describe_delete_endpoint),
      for_operators("deleteProject", Method::delete_, "/management/projects/{projectId}",
                    Role::project_admin, delete_project, describe_delete_project),
  };
  return rows;
}

}  // namespace conversed::api

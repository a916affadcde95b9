#include "api/operations/objects.h"

#include "api/replies.h"
#include "store/model/ids.h"
#include "store/store.h"

namespace conversed::api {

using model::Errc;
using model::Result;

Result<std::string> checked_id(std::string_view parameter, std::string_view value) {
  if (model::is_id(value)) return std::string(value);
  return model::fail(Errc::invalid_argument,
                     std::string(parameter) + " must have 24 characters of a-z and 0-9");
}

Result<std::string> id_of(const Call& call, std::string_view parameter) {
  return checked_id(parameter, call.parameters[parameter]);
}

Result<store::ProjectInfo> open_project(store::Store& store, const Principal& principal,
                                        const std::string& project_id, Role role,
                                        std::string_view missing) {
  auto project = store.assets().project(project_id);
  if (!project && project.error().code != Errc::not_found) {
    return model::fail(store_error(project.error()));
  }
  const bool visible = project && principal.access(project->organisation_id, project->id,
                                                   Role::none) == Access::granted;
  if (!visible) return model::fail(Errc::not_found, std::string(missing));
  if (auto held = require_role(principal, *project, role); !held) return model::fail(held.error());
  return project;
}

Result<store::ProjectInfo> path_project(store::Store& store, const Call& call) {
  auto id = id_of(call, "projectId");
  if (!id) return model::fail(id.error());
  return open_project(store, *call.principal, *id, call.operation.role);
}

Result<void> require_role(const Principal& principal, const store::ProjectInfo& project,
                          Role role) {
  if (principal.access(project.organisation_id, project.id, role) == Access::granted) return {};
  return model::fail(Errc::permission_denied,
                     "the role " + std::string(to_string(role)) + " is needed in the project");
}

Result<store::ProjectInfo> open_owner(store::Store& store, const Principal& principal,
                                      const Result<std::string>& found, Role role,
                                      std::string_view missing) {
  if (found) return open_project(store, principal, *found, role, missing);
  if (found.error().code != Errc::not_found) return model::fail(store_error(found.error()));
  return model::fail(Errc::not_found, std::string(missing));
}

}  // namespace conversed::api

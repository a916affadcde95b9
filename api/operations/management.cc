#include "api/operations/management.h"

#include <limits>
#include <utility>

#include "api/operations/accept.h"
#include "store/accounts/passwords.h"
#include "store/model/ids.h"
#include "store/store.h"
#include "store/text/joined.h"
#include "store/text/quantity.h"

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

Result<PathFlow> path_flow(store::Store& store, const Call& call) {
  auto id = id_of(call, "flowId");
  if (!id) return model::fail(id.error());
  auto project = open_owner(store, *call.principal, store.assets().project_of_flow(*id),
                            call.operation.role, missing_flow);
  if (!project) return model::fail(project.error());
  return PathFlow{*std::move(id), *std::move(project)};
}

Result<void> may_manage(const Principal& principal, const store::User& user) {
  const bool is_platform_admin = holds(user.roles, Role::platform_admin);
  if (!is_platform_admin || principal.has(Role::platform_admin)) return {};
  return model::fail(Errc::permission_denied,
                     "the role platformAdmin is needed to manage a user who has it");
}

Result<store::User> user_to_manage(store::Store& store, const Principal& principal,
                                   const std::string& email) {
  auto& accounts = store.accounts();
  auto user = email.empty() ? accounts.user(principal.organisation_id, principal.user_id)
                            : accounts.user_by_email(principal.organisation_id, email);
  const bool own = user && user->id == principal.user_id;
  if (!own && !principal.has(Role::user_admin)) {
    return model::fail(Errc::permission_denied, "the role userAdmin is needed");
  }
  if (!user) return model::fail(store_error(user.error()));
  if (own) return user;
  if (auto may = may_manage(principal, *user); !may) return model::fail(may.error());
  return user;
}

openapi::Schema new_password_schema() {
  using namespace openapi;
  return described("At most " + std::to_string(store::max_password_bytes) +
                       " bytes in UTF-8; not one of the most common passwords.",
                   text(store::min_password_characters, store::max_password_bytes));
}

openapi::Schema duration_schema() {
  return openapi::text_like("^" + std::string(text::duration_expression) + "$");
}

openapi::Schema duration_or_empty_schema() {
  return openapi::text_like("^(" + std::string(text::duration_expression) + ")?$");
}

Result<std::vector<store::ProjectInfo>> projects_with(store::Store& store,
                                                      const Principal& principal, Role role) {
  auto projects = store.assets().projects(principal.organisation_id);
  if (!projects) return model::fail(store_error(projects.error()));
  std::erase_if(*projects, [&](const store::ProjectInfo& project) {
    return principal.access(project.organisation_id, project.id, role) != Access::granted;
  });
  return std::move(*projects);
}

namespace {

// Why a project has to be named. `projects`: those with the role.
std::string missing_project(const std::vector<store::ProjectInfo>& projects, Role role) {
  if (projects.empty()) {
    const auto name = to_string(role);
    return "there is no project " +
           (name.empty() ? "of which you are a member"
                         : "in which you have the role " + std::string(name)) +
           ": an admin can give you the role, or `conversectl import` makes a project of a bundle";
  }
  constexpr std::size_t most_names = 20;
  std::vector<std::string> names;
  names.reserve(projects.size());
  for (const auto& project : projects) names.push_back(project.name);
  const bool is_long = names.size() > most_names;
  if (is_long) names.resize(most_names);
  return "the query parameter projectId is required, since there are several projects: " +
         text::joined(names) + (is_long ? ", …" : "");
}

}  // namespace

Result<store::ProjectInfo> project_of(store::Store& store, const Call& call, Role role) {
  const auto id = call.request.parameter("projectId");
  if (!id) {
    auto projects = projects_with(store, *call.principal, role);
    if (!projects) return model::fail(projects.error());
    if (projects->size() == 1) return std::move(projects->front());
    return model::fail(Errc::invalid_argument, missing_project(*projects, role));
  }
  return open_project(store, *call.principal, std::string(*id), role);
}

Result<model::SessionKey> session_of(AssetsCache& assets, const Principal& principal,
                                     std::string_view url_token, std::string_view user_id,
                                     std::string_view session_id) {
  auto token = normal_url_token(url_token);
  if (!token) return model::fail(token.error());
  if (auto checked = check_name("userId", user_id); !checked) return model::fail(checked.error());
  if (auto checked = check_name("sessionId", session_id); !checked) {
    return model::fail(checked.error());
  }
  auto endpoint = find_endpoint_for(assets, principal, *token);
  if (!endpoint) return model::fail(endpoint.error());
  return model::SessionKey{(*endpoint)->project_id, (*endpoint)->id, std::string(user_id),
                           std::string(session_id)};
}

Result<void> check_display_name(std::string_view name) {
  if (!name.empty() && name.size() <= max_display_name_bytes) return {};
  return model::fail(Errc::invalid_argument, "name must have 1 to 200 bytes");
}

Result<PageQuery> page_query(const Request& request) {
  auto limit = limit_parameter(request);
  if (!limit) return model::fail(limit.error());
  auto after = number_parameter(request, "after", 0, std::numeric_limits<std::int64_t>::max(), 0);
  if (!after) return model::fail(after.error());
  return PageQuery{static_cast<std::size_t>(*limit), *after};
}

}  // namespace conversed::api

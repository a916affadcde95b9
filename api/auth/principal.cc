#include "api/auth/principal.h"

#include <algorithm>
#include <array>
#include <utility>

namespace conversed::api {
namespace {

constexpr std::array<std::pair<Role, std::string_view>, 8> role_names{{
    {Role::project_admin, "projectAdmin"},
    {Role::token_admin, "tokenAdmin"},
    {Role::member_manager, "memberManager"},
    {Role::conversation_admin, "conversationAdmin"},
    {Role::proactive_admin, "proactiveAdmin"},
    {Role::connection_admin, "connectionAdmin"},
    {Role::user_admin, "userAdmin"},
    {Role::platform_admin, "platformAdmin"},
}};

bool any_in_project(Roles roles) {
  for (const auto& [role, name] : role_names) {
    if (!is_of_organisation(role) && roles.has(role)) return true;
  }
  return false;
}

}  // namespace

std::string_view to_string(Role role) {
  for (const auto& [known, name] : role_names) {
    if (known == role) return name;
  }
  return {};
}

bool is_of_organisation(Role role) {
  return role == Role::user_admin || role == Role::platform_admin;
}

std::optional<Role> role_from(std::string_view name) {
  for (const auto& [role, known] : role_names) {
    if (known == name) return role;
  }
  return std::nullopt;
}

std::vector<std::string_view> names_of_roles() {
  std::vector<std::string_view> names;
  for (const auto& [role, name] : role_names) names.push_back(name);
  return names;
}

Access Principal::access(std::string_view organisation, std::string_view project, Role role) const {
  if (organisation != organisation_id) return Access::hidden;
  Roles roles = organisation_roles;
  const auto in_project = project_roles.find(project);
  if (in_project != project_roles.end()) roles.add(in_project->second);
  // A plain member of the project has a row there, if without a role.
  const bool visible = in_project != project_roles.end() || any_in_project(roles);
  if (!visible) return Access::hidden;
  if (role == Role::none || role == Role::member) return Access::granted;
  if (is_of_organisation(role)) return roles.has(role) ? Access::granted : Access::denied;
  return roles.has(role) || roles.has(Role::project_admin) ? Access::granted : Access::denied;
}

bool Principal::has_anywhere(Role role) const {
  const auto grants = [&](Roles roles) {
    return roles.has(role) || (!is_of_organisation(role) && roles.has(Role::project_admin));
  };
  return grants(organisation_roles) ||
         std::any_of(project_roles.begin(), project_roles.end(),
                     [&](const auto& project) { return grants(project.second); });
}

bool Principal::is_member() const {
  return !project_roles.empty() || any_in_project(organisation_roles);
}

}  // namespace conversed::api

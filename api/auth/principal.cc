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

bool holds_any_of_project(const std::vector<std::string>& roles) {
  return std::ranges::any_of(roles, [](const std::string& name) {
    const auto role = role_from(name);
    return role && !is_of_organisation(*role);
  });
}

bool grants(const std::vector<std::string>& roles, Role role) {
  return holds(roles, role) || (!is_of_organisation(role) && holds(roles, Role::project_admin));
}

// `all` stands for every role.
bool names_a_role(const std::vector<std::string>& scopes) {
  if (std::ranges::find(scopes, scope_of_all) != scopes.end()) return false;
  return std::ranges::any_of(scopes,
                             [](const auto& scope) { return role_from(scope).has_value(); });
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

bool holds(const std::vector<std::string>& roles, Role role) {
  return std::ranges::find(roles, to_string(role)) != roles.end();
}

std::vector<std::string_view> names_of_scopes() {
  auto names = names_of_roles();
  names.insert(names.begin(), {scope_of_all, scope_of_reading});
  return names;
}

bool covers(const std::vector<std::string>& scopes, Role role) {
  return !names_a_role(scopes) || grants(scopes, role);
}

void Principal::keep_scopes() {
  if (!names_a_role(scopes)) return;
  const auto keep = [&](std::vector<std::string>& roles) {
    std::vector<std::string> kept;
    for (const std::string& scope : scopes) {
      const auto role = role_from(scope);
      if (role && grants(roles, *role)) kept.push_back(scope);
    }
    roles = std::move(kept);
  };
  keep(organisation_roles);
  for (auto& [project, roles] : project_roles) keep(roles);
}

Access Principal::access(std::string_view organisation, std::string_view project, Role role) const {
  if (organisation != organisation_id) return Access::hidden;
  // A plain member of the project has an entry, maybe without a role.
  const auto here = project_roles.find(project);
  const bool is_member_here = here != project_roles.end();
  if (!is_member_here && !holds_any_of_project(organisation_roles)) return Access::hidden;
  if (role == Role::none || role == Role::member) return Access::granted;
  const bool granted =
      grants(organisation_roles, role) || (is_member_here && grants(here->second, role));
  return granted ? Access::granted : Access::denied;
}

bool Principal::has_anywhere(Role role) const {
  return grants(organisation_roles, role) ||
         std::ranges::any_of(project_roles,
                             [&](const auto& project) { return grants(project.second, role); });
}

bool Principal::is_member() const {
  return !project_roles.empty() || holds_any_of_project(organisation_roles);
}

}  // namespace conversed::api

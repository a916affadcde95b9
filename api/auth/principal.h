#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/accounts/accounts.h"

namespace conversed::api {

// Rights in a project. The last two are rights in the organisation and the installation.
enum class Role : std::uint8_t {
  none,    // no role is required
  member,  // any role in the project is enough
  project_admin,
  token_admin,
  member_manager,
  conversation_admin,
  proactive_admin,
  connection_admin,
  user_admin,
  platform_admin,
};

// The role's name in the API, such as "projectAdmin". Empty for `none` and `member`.
[[nodiscard]] std::string_view to_string(Role role);
// Whether the role belongs to the organisation or the installation, not to a project.
[[nodiscard]] bool is_of_organisation(Role role);
[[nodiscard]] std::optional<Role> role_from(std::string_view name);
[[nodiscard]] std::vector<std::string_view> names_of_roles();

// The scope of a management token: the roles that it acts with, or `all` of the user's roles.
// With `read` it changes nothing.
inline constexpr std::string_view scope_of_all = "all";
inline constexpr std::string_view scope_of_reading = "read";
[[nodiscard]] std::vector<std::string_view> names_of_scopes();
// Whether scopes name a role that covers this one. They do if they name no role.
[[nodiscard]] bool covers(const std::vector<std::string>& scopes, Role role);

[[nodiscard]] bool holds(const std::vector<std::string>& roles, Role role);

// Whether a role opens an object. A missing and a foreign object are both `hidden`.
enum class Access : std::uint8_t { granted, denied, hidden };

// The user of a request, with its roles. A request with an API key acts as the key's user.
struct Principal : store::Principal {
  // Whether the user holds the role in a project. projectAdmin holds every role of its project.
  // `hidden` if the project belongs to another organisation, or the user has no role in it.
  [[nodiscard]] Access access(std::string_view organisation, std::string_view project,
                              Role role) const;

  // Whether the user is a member of any project.
  [[nodiscard]] bool is_member() const;

  // Whether the user holds the role in any project or in the whole organisation.
  [[nodiscard]] bool has_anywhere(Role role) const;

  // Takes away the roles that the scopes of the user's management token do not name.
  void keep_scopes();

  // Whether the user holds the role in the whole organisation.
  [[nodiscard]] bool has(Role role) const { return holds(organisation_roles, role); }
};

}  // namespace conversed::api

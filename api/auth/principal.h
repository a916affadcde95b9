#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/accounts/accounts.h"

namespace conversed::api {

// What a user may do in a project, or, of the last two, in the organisation and the installation.
enum class Role : std::uint8_t {
  none,    // no role is needed
  member,  // any role in the project will do
  project_admin,
  token_admin,
  member_manager,
  conversation_admin,
  proactive_admin,
  connection_admin,
  user_admin,
  platform_admin,
};

// The name that members and users are given the role by: "projectAdmin". Empty for none and member.
[[nodiscard]] std::string_view to_string(Role role);
// A role in the organisation or the installation, not in a project.
[[nodiscard]] bool is_of_organisation(Role role);
[[nodiscard]] std::optional<Role> role_from(std::string_view name);
[[nodiscard]] std::vector<std::string_view> names_of_roles();

[[nodiscard]] bool holds(const std::vector<std::string>& roles, Role role);

// Whether a role opens an object. Missing and foreign objects are the same: `hidden`.
enum class Access : std::uint8_t { granted, denied, hidden };

// Who a request acts for. A value; an API key acts as its user.
struct Principal : store::Principal {
  // Whether the role is held in a project. projectAdmin holds every role of its project.
  // `hidden` when the project is another organisation's, or the user has no role in it at all.
  [[nodiscard]] Access access(std::string_view organisation, std::string_view project,
                              Role role) const;

  // Whether the user is a member of any project.
  [[nodiscard]] bool is_member() const;

  // Whether the role is held in any project, or in the organisation as a whole.
  [[nodiscard]] bool has_anywhere(Role role) const;

  // Whether the role is held in the organisation as a whole.
  [[nodiscard]] bool has(Role role) const { return holds(organisation_roles, role); }
};

}  // namespace conversed::api

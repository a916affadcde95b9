#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
// All of those names.
[[nodiscard]] std::vector<std::string_view> names_of_roles();

// A set of roles. A value.
class Roles {
 public:
  void add(Role role) { bits_ |= bit(role); }
  [[nodiscard]] bool empty() const { return bits_ == 0; }
  [[nodiscard]] bool has(Role role) const { return (bits_ & bit(role)) != 0; }
  void add(Roles others) { bits_ |= others.bits_; }
  bool operator==(const Roles&) const = default;

 private:
  static std::uint32_t bit(Role role) { return 1U << static_cast<unsigned>(role); }
  std::uint32_t bits_ = 0;
};

// What a role and an object come to. Missing and foreign objects are the same: `hidden`.
enum class Access : std::uint8_t { granted, denied, hidden };

// Who a request acts for. A value; an API key acts as its user.
struct Principal {
  std::string user_id;
  std::string organisation_id;
  std::string key_id;        // of the API key; empty for Basic
  Roles organisation_roles;  // hold in every project of the organisation
  std::map<std::string, Roles, std::less<>> project_roles;  // by project id

  // Whether the role is held in a project. projectAdmin holds every role of its project.
  // `hidden` when the project is another organisation's, or the user has no role in it at all.
  [[nodiscard]] Access access(std::string_view organisation, std::string_view project,
                              Role role) const;

  // Whether the user is a member of any project.
  [[nodiscard]] bool is_member() const;

  // Whether the role is held in any project, or in the organisation as a whole.
  [[nodiscard]] bool has_anywhere(Role role) const;

  // Whether the role is held in the organisation as a whole.
  [[nodiscard]] bool has(Role role) const { return organisation_roles.has(role); }
};

}  // namespace conversed::api

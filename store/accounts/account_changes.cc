// The part of Accounts that changes and removes users. An installation never loses its last
// platform administrator: no other user could make a new one.
#include <algorithm>

#include "store/accounts/accounts.h"
#include "store/accounts/passwords.h"
#include "store/accounts/people.h"
#include "store/commit/row_writes.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

constexpr std::string_view platform_admin = "platformAdmin";

bool has_platform_admin(const std::vector<std::string>& roles) {
  return std::ranges::find(roles, platform_admin) != roles.end();
}

// `conflict` if this user is the only one who can administer the platform, which takes a password.
Result<void> check_is_dispensable(Connection& connection, const std::string& user_id) {
  bool is_one = false;
  bool is_another = false;
  connection.rows(
      [&](const std::string& id, const std::vector<std::string>& roles) {
        if (has_platform_admin(roles)) (id == user_id ? is_one : is_another) = true;
      },
      "SELECT id, roles FROM users WHERE password_hash IS NOT NULL"
      " AND roles LIKE '%platformAdmin%'");
  if (!is_one || is_another) return {};
  return fail(Errc::conflict,
              "this is the only user who can administer the platform; give the role platformAdmin "
              "to another one with a password first");
}

}  // namespace

Result<void> Accounts::set_password(const std::string& organisation_id, const std::string& user_id,
                                    const std::string& password) {
  auto hash = hash_password(password);
  if (!hash) return fail(hash.error());
  return change_password(organisation_id, user_id, *std::move(hash));
}

Result<void> Accounts::deprecate_password(const std::string& organisation_id,
                                          const std::string& user_id) {
  return change_password(organisation_id, user_id, std::nullopt);
}

Result<void> Accounts::change_password(const std::string& organisation_id,
                                       const std::string& user_id,
                                       const std::optional<std::string>& hash) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    if (!hash) {
      if (auto may = check_is_dispensable(writer.connection(), user_id); !may) return may;
    }
    end_oauth_grants_of_user(writer.connection(), user_id);
    grow(writer);
    return change_one(writer.connection(), "there is no such user",
                      "UPDATE users SET password_hash = :h WHERE id = :i AND organisation_id = :o",
                      hash, user_id, organisation_id);
  });
}

Result<void> Accounts::set_roles(const std::string& organisation_id, const std::string& user_id,
                                 const std::vector<std::string>& roles) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    const auto before = connection.value<std::vector<std::string>>(
        "SELECT roles FROM users WHERE id = :i AND organisation_id = :o", user_id, organisation_id);
    if (!before) return fail(Errc::not_found, "there is no such user");
    if (has_platform_admin(roles) && !has_platform_admin(*before)) {
      // A userAdmin may have made them, and would get the new role by them.
      connection.run("DELETE FROM api_keys WHERE user_id = :u", user_id);
      end_oauth_grants_of_user(connection, user_id);
    }
    if (!has_platform_admin(roles)) {
      if (auto may = check_is_dispensable(connection, user_id); !may) return may;
    }
    connection.run("UPDATE users SET roles = :r WHERE id = :i", roles, user_id);
    grow(writer);
    return {};
  });
}

Result<void> Accounts::remove_user(const std::string& organisation_id, const std::string& user_id) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    if (!connection.exists("SELECT 1 FROM users WHERE id = :i AND organisation_id = :o", user_id,
                           organisation_id)) {
      return fail(Errc::not_found, "there is no such user");
    }
    if (auto may = check_is_dispensable(connection, user_id); !may) return may;
    end_oauth_grants_of_user(connection, user_id);
    connection.run("DELETE FROM api_keys WHERE user_id = :u", user_id);
    connection.run("DELETE FROM members WHERE user_id = :u", user_id);
    connection.run("DELETE FROM sign_ins WHERE user_id = :u", user_id);
    connection.run("DELETE FROM users WHERE id = :u", user_id);
    grow(writer);
    return {};
  });
}

}  // namespace conversed::store

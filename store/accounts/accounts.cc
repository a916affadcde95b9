#include "store/accounts/accounts.h"

#include <algorithm>

#include "store/accounts/passwords.h"
#include "store/accounts/people.h"
#include "store/model/ids.h"
#include "store/sql/read.h"

namespace conversed::store {

std::string fold_ascii(std::string_view email) {
  std::string folded(email);
  for (char& c : folded) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return folded;
}

bool is_email(std::string_view text) {
  const auto at = text.find('@');
  return at != 0 && at != std::string_view::npos && at + 1 != text.size() &&
         text.size() <= max_email_bytes &&
         std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c <= ' ' || c == 0x7F; });
}

Result<std::string> insert_user(Connection& connection, const UserRow& user, model::Timestamp now) {
  if (!is_email(user.email)) {
    return fail(Errc::invalid_argument, "this is no e-mail address: " + user.email);
  }
  const auto folded = fold_ascii(user.email);
  const auto owner = connection.value<std::string>(
      "SELECT organisation_id FROM organisation_domains WHERE domain = :d",
      folded.substr(folded.rfind('@') + 1));
  if (owner && *owner != user.organisation_id) {
    return fail(Errc::conflict, "the address " + user.email +
                                    " is of a domain that belongs to another organisation");
  }
  if (connection.value<std::string>("SELECT id FROM users WHERE email_folded = :e", folded)) {
    return fail(Errc::conflict, "the address " + user.email + " is taken");
  }
  auto id = model::new_id();
  connection.run(
      "INSERT INTO users (id, organisation_id, email, email_folded, name, roles, password_hash,"
      " created_at) VALUES (:i, :o, :e, :f, :n, :r, :p, :c)",
      id, user.organisation_id, user.email, folded, user.name, user.roles, user.password_hash, now);
  return id;
}

Result<std::optional<std::string>> hash_if_set(const std::optional<std::string>& password) {
  if (!password) return std::nullopt;
  auto hash = hash_password(*password);
  if (!hash) return fail(hash.error());
  return *std::move(hash);
}

namespace {

constexpr std::string_view select_users =
    "SELECT id, organisation_id, email, name, roles,"
    " CASE WHEN password_hash IS NULL THEN 0 ELSE 1 END, created_at FROM users WHERE ";
constexpr auto user_row = row_of<&User::id, &User::organisation_id, &User::email, &User::name,
                                 &User::roles, &User::has_password, &User::created_at>;

std::string users_where(std::string_view condition) {
  return std::string(select_users).append(condition);
}

template <typename... In>
Result<User> find_user(Connection& connection, std::string_view condition, const In&... in) {
  auto user = connection.first(user_row, users_where(condition), in...);
  if (!user) return fail(Errc::not_found, "there is no such user");
  return *std::move(user);
}

template <typename... In>
std::vector<Member> load_members(Connection& connection, std::string_view condition,
                                 const In&... in) {
  return connection.all(
      [](std::string id, std::string organisation, std::string email, std::string name,
         std::vector<std::string> roles, bool has_password, model::Timestamp created,
         std::string project, std::vector<std::string> member_roles,
         std::vector<std::string> locales) {
        return Member{.user = user_row(std::move(id), std::move(organisation), std::move(email),
                                       std::move(name), std::move(roles), has_password, created),
                      .project_id = std::move(project),
                      .roles = std::move(member_roles),
                      .allowed_locales = std::move(locales)};
      },
      std::string("SELECT u.id, u.organisation_id, u.email, u.name, u.roles,"
                  " CASE WHEN u.password_hash IS NULL THEN 0 ELSE 1 END, u.created_at,"
                  " m.project_id, m.roles, m.allowed_locales"
                  " FROM members m JOIN users u ON u.id = m.user_id WHERE ")
          .append(condition),
      in...);
}

Result<Member> find_member(Connection& connection, const std::string& project_id,
                           const std::string& user_id) {
  auto members =
      load_members(connection, "m.project_id = :p AND m.user_id = :u", project_id, user_id);
  if (members.empty()) return fail(Errc::not_found, "there is no such member");
  return std::move(members.front());
}

Result<void> join_project(Connection& connection, const std::string& user_id,
                          const Accounts::NewMembership& membership) {
  // One organisation for both, or the project is not this user's to see.
  if (!connection.value<std::string>(
          "SELECT p.id FROM projects p JOIN users u ON u.organisation_id = p.organisation_id"
          " WHERE p.id = :p AND u.id = :u",
          membership.project_id, user_id)) {
    return fail(Errc::not_found, "there is no such project or user");
  }
  connection.run(
      "INSERT INTO members (project_id, user_id, roles, allowed_locales) VALUES (:p, :u, :r,"
      " '[]') ON CONFLICT (project_id, user_id) DO UPDATE SET roles = excluded.roles",
      membership.project_id, user_id, membership.roles);
  return {};
}

}  // namespace

void Accounts::grow(Writer& writer) {
  writer.on_commit([this] { generation_.fetch_add(1); });
}

Result<User> Accounts::create_user(const std::string& organisation_id, const NewUser& user) {
  auto hash = hash_if_set(user.password);
  if (!hash) return fail(hash.error());
  return committer_.write_and_wait([&](Writer& writer) -> Result<User> {
    if (!writer.connection().value<std::string>("SELECT id FROM organisations WHERE id = :i",
                                                organisation_id)) {
      return fail(Errc::not_found, "there is no such organisation");
    }
    auto id = insert_user(writer.connection(),
                          {.organisation_id = organisation_id,
                           .email = user.email,
                           .name = user.name,
                           .roles = user.roles,
                           .password_hash = *hash},
                          writer.now());
    if (!id) return fail(id.error());
    if (user.membership) {
      auto joined = join_project(writer.connection(), *id, *user.membership);
      if (!joined) return fail(joined.error());
    }
    grow(writer);
    return find_user(writer.connection(), "id = :i", *id);
  });
}

Result<std::vector<User>> Accounts::users(const std::string& organisation_id) const {
  return read_all(database_, user_row, users_where("organisation_id = :o ORDER BY email_folded"),
                  organisation_id);
}

Result<User> Accounts::user_by_email(const std::string& organisation_id,
                                     std::string_view email) const {
  return read(database_, [&](Connection& connection) {
    return find_user(connection, "email_folded = :e AND organisation_id = :o", fold_ascii(email),
                     organisation_id);
  });
}

Result<User> Accounts::user(const std::string& organisation_id, const std::string& user_id) const {
  return read(database_, [&](Connection& connection) {
    return find_user(connection, "id = :i AND organisation_id = :o", user_id, organisation_id);
  });
}

Result<Member> Accounts::member(const std::string& project_id, const std::string& user_id) const {
  return read(database_,
              [&](Connection& connection) { return find_member(connection, project_id, user_id); });
}

Result<std::vector<Member>> Accounts::members(const std::string& project_id) const {
  return read(database_, [&](Connection& connection) {
    return load_members(connection, "m.project_id = :p ORDER BY u.email_folded", project_id);
  });
}

Result<void> Accounts::set_member(const std::string& project_id, const std::string& user_id,
                                  const std::vector<std::string>& roles) {
  return committer_.write_and_wait([&](Writer& writer) {
    grow(writer);
    return join_project(writer.connection(), user_id, {project_id, roles});
  });
}

Result<Member> Accounts::set_allowed_locales(const std::string& project_id,
                                             const std::string& user_id,
                                             const std::vector<std::string>& locales) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<Member> {
    Connection& connection = writer.connection();
    auto member = find_member(connection, project_id, user_id);
    if (!member) return member;
    for (const auto& id : locales) {
      if (!connection.value<std::string>("SELECT id FROM locales WHERE id = :i AND project_id = :p",
                                         id, project_id)) {
        return fail(Errc::invalid_argument, "the project has no locale " + id);
      }
    }
    connection.run("UPDATE members SET allowed_locales = :l WHERE project_id = :p AND user_id = :u",
                   locales, project_id, user_id);
    member->allowed_locales = locales;
    return member;
  });
}

}  // namespace conversed::store

#include "store/accounts/accounts.h"

#include <algorithm>

#include "store/accounts/passwords.h"
#include "store/accounts/people.h"
#include "store/commit/row_writes.h"
#include "store/model/ids.h"
#include "store/secrets/secrets.h"
#include "store/sql/read.h"
#include "store/text/ascii.h"

namespace conversed::store {

Result<std::string> insert_user(Connection& connection, const std::string& organisation_id,
                                const Accounts::NewUser& user,
                                const std::optional<std::string>& password_hash,
                                model::Timestamp now) {
  if (!text::is_email(user.email)) {
    return fail(Errc::invalid_argument, "this is not an e-mail address: " + user.email);
  }
  const auto folded = text::lower_case(user.email);
  const auto owner = connection.value<std::string>(
      "SELECT organisation_id FROM organisation_domains WHERE domain = :d",
      folded.substr(folded.rfind('@') + 1));
  if (owner && *owner != organisation_id) {
    return fail(Errc::conflict, "the address " + user.email +
                                    " is of a domain that belongs to another organisation");
  }
  if (connection.exists("SELECT 1 FROM users WHERE email_folded = :e", folded)) {
    return fail(Errc::conflict, "the address " + user.email + " is taken");
  }
  auto id = model::new_id();
  connection.run(
      "INSERT INTO users (id, organisation_id, email, email_folded, name, roles, password_hash,"
      " created_at) VALUES (:i, :o, :e, :f, :n, :r, :p, :c)",
      id, organisation_id, user.email, folded, user.name, user.roles, password_hash, now);
  return id;
}

namespace {

Result<std::optional<std::string>> hash_if_set(const std::optional<std::string>& password) {
  if (!password) return std::nullopt;
  auto hash = hash_password(*password);
  if (!hash) return fail(hash.error());
  return *std::move(hash);
}

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

Result<Member> find_member(Connection& connection, const std::string& project_id,
                           const std::string& user_id) {
  auto row = connection.row<std::vector<std::string>, std::vector<std::string>>(
      "SELECT roles, allowed_locales FROM members WHERE project_id = :p AND user_id = :u",
      project_id, user_id);
  if (!row) return fail(Errc::not_found, "there is no such member");
  auto user = find_user(connection, "id = :i", user_id);
  if (!user) return fail(user.error());
  return Member{.user = *std::move(user),
                .roles = std::move(std::get<0>(*row)),
                .allowed_locales = std::move(std::get<1>(*row))};
}

Result<void> join_project(Connection& connection, const std::string& user_id,
                          const Accounts::NewMembership& membership) {
  // Project and user must have one organisation. Else the user may not see the project.
  if (!connection.exists(
          "SELECT 1 FROM projects p JOIN users u ON u.organisation_id = p.organisation_id"
          " WHERE p.id = :p AND u.id = :u",
          membership.project_id, user_id)) {
    return fail(Errc::not_found, "there is no such project or user");
  }
  connection.run(
      "INSERT INTO members (project_id, user_id, roles, allowed_locales) VALUES (:p, :u, :r, '[]')",
      membership.project_id, user_id, membership.roles);
  return {};
}

bool has_platform_admin(const std::vector<std::string>& roles) {
  return std::ranges::find(roles, "platformAdmin") != roles.end();
}

// `conflict` if this user is the only one who can administer the platform, which takes a password.
Result<void> check_is_dispensable(Connection& connection, const std::string& user_id) {
  const std::string administrators =
      "SELECT 1 FROM users WHERE password_hash IS NOT NULL AND roles LIKE '%\"platformAdmin\"%'";
  if (!connection.exists(administrators + " AND id = :i", user_id) ||
      connection.exists(administrators + " AND id <> :i", user_id)) {
    return {};
  }
  return fail(Errc::conflict,
              "this is the only user who can administer the platform; give the role platformAdmin "
              "to another user with a password first");
}

// The domains as they are stored: in lower case, without repetitions.
Result<std::vector<std::string>> normal_domains(const std::vector<std::string>& domains) {
  std::vector<std::string> normal;
  for (const std::string& domain : domains) {
    if (!text::is_email("a@" + domain)) {
      return fail(Errc::invalid_argument, "this is not an e-mail domain: " + domain);
    }
    normal.push_back(text::lower_case(domain));
  }
  std::sort(normal.begin(), normal.end());
  normal.erase(std::unique(normal.begin(), normal.end()), normal.end());
  return normal;
}

// The addresses in the domains that users of other organisations have.
std::vector<std::string> find_strangers(Connection& connection, const std::string& organisation_id,
                                        const std::vector<std::string>& domains) {
  std::vector<std::string> strangers;
  connection.rows(
      [&](std::string email, const std::string& folded) {
        const auto domain = folded.substr(folded.rfind('@') + 1);
        if (std::ranges::binary_search(domains, domain)) strangers.push_back(std::move(email));
      },
      "SELECT email, email_folded FROM users WHERE organisation_id <> :o ORDER BY email_folded",
      organisation_id);
  return strangers;
}

constexpr std::string_view key_prefix = "cvk_";
constexpr std::size_t key_length = key_prefix.size() + model::id_length + 1 + random_secret_length;

// The id of the organisation with this id or name. For an empty text: the id of the only
// organisation. None if several fit: one organisation's name may be another's id.
std::optional<std::string> find_organisation(Connection& connection, std::string_view wanted) {
  auto found = wanted.empty()
                   ? connection.values<std::string>("SELECT id FROM organisations LIMIT 2")
                   : connection.values<std::string>(
                         "SELECT id FROM organisations WHERE id = :i OR name = :n", wanted, wanted);
  if (found.size() != 1) return std::nullopt;
  return std::move(found.front());
}

}  // namespace

Result<Principal> load_principal(Connection& connection, const std::string& user_id) {
  auto principal = connection.first(
      row_of<&Principal::user_id, &Principal::organisation_id, &Principal::organisation_roles>,
      "SELECT id, organisation_id, roles FROM users WHERE id = :i", user_id);
  if (!principal) return fail(Errc::not_found, "there is no such user");
  connection.rows(
      [&](std::string project, std::vector<std::string> roles) {
        principal->project_roles.emplace(std::move(project), std::move(roles));
      },
      "SELECT project_id, roles FROM members WHERE user_id = :u", user_id);
  return *std::move(principal);
}

bool has_password(Connection& connection, const SignIn& sign_in) {
  const auto hash = connection.value<std::string>(
      "SELECT password_hash FROM users WHERE id = :i AND password_hash IS NOT NULL",
      sign_in.user_id);
  return hash && same_secret(hash_of_secret(*hash), sign_in.password_mark);
}

Result<Organisation> Accounts::add_organisation(const std::string& name, const NewUser& admin,
                                                Which which) {
  auto hash = hash_if_set(admin.password);
  if (!hash) return fail(hash.error());
  return committer_.write_and_wait([&](Writer& writer) -> Result<Organisation> {
    Connection& connection = writer.connection();
    if (which == Which::first && connection.exists("SELECT 1 FROM organisations LIMIT 1")) {
      return fail(Errc::conflict, "the installation has an organisation already");
    }
    if (name.empty()) return fail(Errc::invalid_argument, "an organisation needs a name");
    if (connection.exists("SELECT 1 FROM organisations WHERE name = :n", name)) {
      return fail(Errc::conflict, "there is an organisation named " + name + " already");
    }
    Organisation organisation{.id = model::new_id(), .name = name};
    connection.run("INSERT INTO organisations (id, name) VALUES (:i, :n)", organisation.id, name);
    auto user = insert_user(connection, organisation.id, admin, *hash, writer.now());
    if (!user) return fail(user.error());
    grow(writer);
    return organisation;
  });
}

Result<std::vector<Organisation>> Accounts::organisations() const {
  return read(database_, [](Connection& connection) -> Result<std::vector<Organisation>> {
    auto list = connection.all(row_of<&Organisation::id, &Organisation::name>,
                               "SELECT id, name FROM organisations ORDER BY name");
    connection.rows(
        [&](const std::string& organisation, std::string domain) {
          const auto owner =
              std::ranges::find_if(list, [&](const auto& each) { return each.id == organisation; });
          if (owner != list.end()) owner->domains.push_back(std::move(domain));
        },
        "SELECT organisation_id, domain FROM organisation_domains ORDER BY domain");
    return list;
  });
}

Result<DomainsSet> Accounts::set_domains(const std::string& organisation_id,
                                         const std::vector<std::string>& domains) {
  auto normal = normal_domains(domains);
  if (!normal) return fail(normal.error());
  return committer_.write_and_wait([&](Writer& writer) -> Result<DomainsSet> {
    Connection& connection = writer.connection();
    auto name = connection.value<std::string>("SELECT name FROM organisations WHERE id = :i",
                                              organisation_id);
    if (!name) return fail(Errc::not_found, "there is no such organisation");
    DomainsSet set{
        .organisation = {.id = organisation_id, .name = *std::move(name), .domains = *normal}};
    connection.run("DELETE FROM organisation_domains WHERE organisation_id = :o", organisation_id);
    for (const std::string& domain : *normal) {
      if (connection.exists("SELECT 1 FROM organisation_domains WHERE domain = :d", domain)) {
        return fail(Errc::conflict, "the domain " + domain + " belongs to another organisation");
      }
      connection.run("INSERT INTO organisation_domains (domain, organisation_id) VALUES (:d, :o)",
                     domain, organisation_id);
    }
    set.strangers = find_strangers(connection, organisation_id, *normal);
    return set;
  });
}

Result<User> Accounts::create_user(const std::string& organisation_id, const NewUser& user) {
  auto hash = hash_if_set(user.password);
  if (!hash) return fail(hash.error());
  return committer_.write_and_wait([&](Writer& writer) -> Result<User> {
    if (!writer.connection().exists("SELECT 1 FROM organisations WHERE id = :i", organisation_id)) {
      return fail(Errc::not_found, "there is no such organisation");
    }
    auto id = insert_user(writer.connection(), organisation_id, user, *hash, writer.now());
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
    return find_user(connection, "email_folded = :e AND organisation_id = :o",
                     text::lower_case(email), organisation_id);
  });
}

Result<User> Accounts::user(const std::string& organisation_id, const std::string& user_id) const {
  return read(database_, [&](Connection& connection) {
    return find_user(connection, "id = :i AND organisation_id = :o", user_id, organisation_id);
  });
}

Result<void> Accounts::set_password(const std::string& organisation_id, const std::string& user_id,
                                    const std::optional<std::string>& password) {
  auto hash = hash_if_set(password);
  if (!hash) return fail(hash.error());
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    if (!*hash) {
      if (auto may = check_is_dispensable(writer.connection(), user_id); !may) return may;
    }
    end_oauth_grants_of_user(writer.connection(), user_id);
    writer.connection().run("DELETE FROM management_tokens WHERE user_id = :u", user_id);
    grow(writer);
    return change_one(writer.connection(), "there is no such user",
                      "UPDATE users SET password_hash = :h WHERE id = :i AND organisation_id = :o",
                      *hash, user_id, organisation_id);
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
      // A userAdmin may have made these keys and would get the new role through them.
      connection.run("DELETE FROM api_keys WHERE user_id = :u", user_id);
      connection.run("DELETE FROM management_tokens WHERE user_id = :u", user_id);
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
    connection.run("DELETE FROM users WHERE id = :u", user_id);
    grow(writer);
    return {};
  });
}

Result<Member> Accounts::member(const std::string& project_id, const std::string& user_id) const {
  return read(database_,
              [&](Connection& connection) { return find_member(connection, project_id, user_id); });
}

Result<Member> Accounts::set_allowed_locales(const std::string& project_id,
                                             const std::string& user_id,
                                             const std::vector<std::string>& locales) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<Member> {
    Connection& connection = writer.connection();
    auto member = find_member(connection, project_id, user_id);
    if (!member) return member;
    for (const auto& id : locales) {
      if (!connection.exists("SELECT 1 FROM locales WHERE id = :i AND project_id = :p", id,
                             project_id)) {
        return fail(Errc::invalid_argument, "the project has no locale " + id);
      }
    }
    connection.run("UPDATE members SET allowed_locales = :l WHERE project_id = :p AND user_id = :u",
                   locales, project_id, user_id);
    member->allowed_locales = locales;
    return member;
  });
}

Result<Principal> Accounts::principal_in(std::string_view organisation,
                                         std::string_view user) const {
  return read(database_, [&](Connection& connection) -> Result<Principal> {
    const auto id = find_organisation(connection, organisation);
    if (!id) return fail(Errc::not_found, "there is no such organisation");
    const auto user_id =
        model::is_id(user) ? std::string(user)
                           : connection
                                 .value<std::string>("SELECT id FROM users WHERE email_folded = :e",
                                                     text::lower_case(user))
                                 .value_or("");
    auto principal = load_principal(connection, user_id);
    if (!principal || principal->organisation_id != *id) {
      return fail(Errc::not_found, "there is no such user");
    }
    return principal;
  });
}

Result<SignedIn> Accounts::authenticate(std::string_view email, std::string_view password) const {
  std::string user_id;
  std::optional<std::string> hash;
  auto found = read(database_, [&](Connection& connection) {
    if (auto row = connection.row<std::string, std::optional<std::string>>(
            "SELECT id, password_hash FROM users WHERE email_folded = :e",
            text::lower_case(email))) {
      std::tie(user_id, hash) = *row;
    }
  });
  if (!found) return fail(found.error());
  // The check of the password holds no connection.
  if (!verify_password(hash, password)) {
    return fail(Errc::unauthenticated, "address or password is wrong");
  }
  auto signed_in =
      read(database_, [&](Connection& connection) { return load_principal(connection, user_id); });
  if (!signed_in) return fail(signed_in.error());
  return SignedIn{*std::move(signed_in), {user_id, hash_of_secret(hash.value_or(""))}};
}

Result<NewApiKey> Accounts::create_api_key(const std::string& organisation_id,
                                           const std::string& user_id, const std::string& name) {
  const auto random = model::random_hex(random_secret_bytes);
  NewApiKey made{.key = {.id = model::new_id(), .name = name, .user_id = user_id}, .secret = {}};
  made.secret = std::string(key_prefix) + made.key.id + '_' + random;
  return committer_.write_and_wait([&](Writer& writer) -> Result<NewApiKey> {
    Connection& connection = writer.connection();
    if (!connection.exists("SELECT 1 FROM users WHERE id = :u AND organisation_id = :o", user_id,
                           organisation_id)) {
      return fail(Errc::not_found, "there is no such user");
    }
    made.key.created_at = writer.now();
    connection.run(
        "INSERT INTO api_keys (id, user_id, name, secret_hash, created_at)"
        " VALUES (:i, :u, :n, :h, :c)",
        made.key.id, user_id, name, hash_of_secret(random), writer.now());
    return made;
  });
}

Result<std::vector<ApiKey>> Accounts::api_keys(const std::string& organisation_id) const {
  return read_all(database_,
                  row_of<&ApiKey::id, &ApiKey::name, &ApiKey::user_id, &ApiKey::created_at>,
                  "SELECT k.id, k.name, k.user_id, k.created_at FROM api_keys k"
                  " JOIN users u ON u.id = k.user_id WHERE u.organisation_id = :o"
                  " ORDER BY k.created_at, k.id",
                  organisation_id);
}

Result<void> Accounts::revoke_api_key(const std::string& organisation_id,
                                      const std::string& key_id) {
  return committer_.write_and_wait([&](Writer& writer) {
    grow(writer);
    return change_one(writer.connection(), "there is no such key",
                      "DELETE FROM api_keys WHERE id = :i AND user_id IN"
                      " (SELECT id FROM users WHERE organisation_id = :o)",
                      key_id, organisation_id);
  });
}

Result<Principal> Accounts::verify_api_key(std::string_view secret) const {
  const auto refused = [] { return fail(Errc::unauthenticated, "the API key is not valid"); };
  if (secret.size() != key_length || !secret.starts_with(key_prefix)) return refused();
  const std::string id(secret.substr(key_prefix.size(), model::id_length));
  const auto random = secret.substr(key_length - random_secret_length);
  const auto hash = hash_of_secret(random);
  return read(database_, [&](Connection& connection) -> Result<Principal> {
    auto row = connection.row<std::string, std::string>(
        "SELECT user_id, secret_hash FROM api_keys WHERE id = :i", id);
    if (!row || !same_secret(std::get<1>(*row), hash)) return refused();
    auto principal = load_principal(connection, std::get<0>(*row));
    if (principal) principal->key_id = id;
    return principal;
  });
}

}  // namespace conversed::store

// The part of Accounts that says who acts: passwords, API keys, roles.
#include "store/accounts/accounts.h"
#include "store/accounts/passwords.h"
#include "store/accounts/people.h"
#include "store/commit/row_writes.h"
#include "store/model/ids.h"
#include "store/secrets/secrets.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

constexpr std::string_view prefix = "cvk_";
constexpr std::size_t secret_length = 2 * random_secret_bytes;  // in hex
constexpr std::size_t key_length = prefix.size() + model::id_length + 1 + secret_length;

// The id of the organisation with this id or name; of the only one, if that is empty.
std::optional<std::string> find_organisation(Connection& connection, const std::string& wanted) {
  std::vector<std::string> found;
  const auto add = [&](std::string id) { found.push_back(std::move(id)); };
  if (wanted.empty()) {
    connection.rows(add, "SELECT id FROM organisations LIMIT 2");
  } else {
    connection.rows(add, "SELECT id FROM organisations WHERE id = :i OR name = :n", wanted, wanted);
  }
  // Two: the only one is not to be told, or one has the other's id for a name.
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

Result<Principal> Accounts::principal_in(std::string_view organisation,
                                         std::string_view user) const {
  return read(database_, [&](Connection& connection) -> Result<Principal> {
    const auto id = find_organisation(connection, std::string(organisation));
    if (!id) return fail(Errc::not_found, "there is no such organisation");
    const auto user_id =
        model::is_id(user) ? std::string(user)
                           : connection
                                 .value<std::string>("SELECT id FROM users WHERE email_folded = :e",
                                                     fold_ascii(user))
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
  auto found = read(database_, [&](Connection& connection) -> Result<void> {
    if (auto row = connection.row<std::string, std::optional<std::string>>(
            "SELECT id, password_hash FROM users WHERE email_folded = :e", fold_ascii(email))) {
      std::tie(user_id, hash) = *row;
    }
    return {};
  });
  if (!found) return fail(found.error());
  // No connection is held while the password is checked.
  if (!verify_password(hash, password)) {
    return fail(Errc::unauthenticated, "address or password is wrong");
  }
  auto signed_in =
      read(database_, [&](Connection& connection) { return load_principal(connection, user_id); });
  if (!signed_in) return fail(signed_in.error());
  return SignedIn{*std::move(signed_in), {user_id, mark_of_password(hash.value_or(""))}};
}

std::string mark_of_password(const std::string& password_hash) {
  return hash_of_secret(password_hash);
}

bool has_password(Connection& connection, const SignIn& sign_in) {
  const auto hash = connection.value<std::string>(
      "SELECT password_hash FROM users WHERE id = :i AND password_hash IS NOT NULL",
      sign_in.user_id);
  return hash && same_secret(mark_of_password(*hash), sign_in.password_mark);
}

Result<NewApiKey> Accounts::create_api_key(const std::string& organisation_id,
                                           const std::string& user_id, const std::string& name) {
  const auto random = model::random_hex(secret_length / 2);
  NewApiKey made{.key = {.id = model::new_id(), .name = name, .user_id = user_id}, .secret = {}};
  made.secret = std::string(prefix) + made.key.id + '_' + random;
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
  if (secret.size() != key_length || !secret.starts_with(prefix)) return refused();
  const std::string id(secret.substr(prefix.size(), model::id_length));
  const auto random = secret.substr(key_length - secret_length);
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

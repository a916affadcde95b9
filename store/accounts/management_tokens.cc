// The part of Accounts for management tokens.
#include "store/accounts/accounts.h"
#include "store/accounts/people.h"
#include "store/commit/row_writes.h"
#include "store/model/ids.h"
#include "store/secrets/secrets.h"
#include "store/sql/read.h"
#include "store/text/ascii.h"

namespace conversed::store {
namespace {

constexpr std::string_view prefix = "cvm_";
constexpr std::size_t length = prefix.size() + model::id_length + 1 + random_secret_length;

}  // namespace

bool Accounts::is_management_token(std::string_view secret) {
  return secret.size() == length && secret.starts_with(prefix);
}

Result<NewManagementToken> Accounts::create_management_token(const std::string& organisation_id,
                                                             ManagementToken wanted) {
  NewManagementToken made{.token = std::move(wanted), .secret = {}};
  made.token.id = model::new_id();
  const auto random = model::random_hex(random_secret_bytes);
  made.secret = std::string(prefix) + made.token.id + '_' + random;
  return committer_.write_and_wait([&](Writer& writer) -> Result<NewManagementToken> {
    Connection& connection = writer.connection();
    ManagementToken& token = made.token;
    if (!connection.exists("SELECT 1 FROM users WHERE id = :u AND organisation_id = :o",
                           token.user_id, organisation_id)) {
      return fail(Errc::not_found, "there is no such user");
    }
    token.created_at = writer.now();
    connection.run("DELETE FROM management_tokens WHERE user_id = :u AND expires_at <= :n",
                   token.user_id, token.created_at);
    if (connection.number("SELECT COUNT(*) FROM management_tokens WHERE user_id = :u",
                          token.user_id) >= max_tokens_of_user) {
      return fail(Errc::conflict, "you have " + std::to_string(max_tokens_of_user) +
                                      " tokens already; revoke one that is not needed");
    }
    connection.run(
        "INSERT INTO management_tokens (id, user_id, name, secret_hash, scopes, created_at,"
        " expires_at) VALUES (:i, :u, :n, :h, :s, :c, :e)",
        token.id, token.user_id, token.name, hash_of_secret(random), token.scopes, token.created_at,
        token.expires_at);
    return made;
  });
}

Result<std::vector<ManagementToken>> Accounts::management_tokens(
    const std::string& organisation_id) const {
  using Row = ManagementToken;
  return read_all(
      database_,
      row_of<&Row::id, &Row::name, &Row::user_id, &Row::scopes, &Row::created_at, &Row::expires_at>,
      "SELECT t.id, t.name, t.user_id, t.scopes, t.created_at, t.expires_at"
      " FROM management_tokens t JOIN users u ON u.id = t.user_id"
      " WHERE u.organisation_id = :o ORDER BY t.created_at, t.id",
      organisation_id);
}

Result<void> Accounts::revoke_management_token(const std::string& organisation_id,
                                               const std::string& token_id) {
  return committer_.write_and_wait([&](Writer& writer) {
    grow(writer);
    return change_one(writer.connection(), "there is no such token",
                      "DELETE FROM management_tokens WHERE id = :i AND user_id IN"
                      " (SELECT id FROM users WHERE organisation_id = :o)",
                      token_id, organisation_id);
  });
}

Result<VerifiedToken> Accounts::verify_management_token(std::string_view email,
                                                        std::string_view secret,
                                                        model::Timestamp now) const {
  const auto refused = [] { return fail(Errc::unauthenticated, "the token is not valid"); };
  if (!is_management_token(secret)) return refused();
  const std::string id(secret.substr(prefix.size(), model::id_length));
  const auto hash = hash_of_secret(secret.substr(length - random_secret_length));
  return read(database_, [&](Connection& connection) -> Result<VerifiedToken> {
    using Scopes = std::vector<std::string>;
    auto row = connection.row<std::string, std::string, std::string, Scopes, model::Timestamp>(
        "SELECT t.user_id, u.email_folded, t.secret_hash, t.scopes, t.expires_at"
        " FROM management_tokens t JOIN users u ON u.id = t.user_id WHERE t.id = :i",
        id);
    if (!row) return refused();
    const auto& [user_id, folded, stored_hash, scopes, expires_at] = *row;
    if (!same_secret(stored_hash, hash) || folded != text::lower_case(email) || expires_at <= now) {
      return refused();
    }
    auto principal = load_principal(connection, user_id);
    if (!principal) return fail(principal.error());
    principal->key_id = id;
    principal->scopes = scopes;
    return VerifiedToken{*std::move(principal), expires_at};
  });
}

}  // namespace conversed::store

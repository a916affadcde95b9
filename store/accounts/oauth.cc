#include "store/accounts/oauth.h"

#include "store/accounts/people.h"
#include "store/commit/row_writes.h"
#include "store/model/ids.h"
#include "store/secrets/sealer.h"
#include "store/secrets/secrets.h"
#include "store/sql/read.h"

namespace conversed::store {

using std::chrono::milliseconds;

namespace {

constexpr std::string_view access_prefix = "cva_";
constexpr std::string_view refresh_prefix = "cvr_";
constexpr std::string_view code_prefix = "cvc_";
constexpr std::string_view client_secret_prefix = "cvs_";
// The place of sealed texts. They are not rows, so all of them share this place.
constexpr std::string_view sealed_place = "oauth/sealed/request";
// Writes that add rows remove up to this many expired rows of each kind: more than a write adds, so
// that expired rows do not accumulate, and few enough for a quick write.
constexpr int prune_at_once = 16;

constexpr std::string_view select_code = "SELECT 1 FROM oauth_codes WHERE hash = :h";
constexpr std::string_view select_token = "SELECT 1 FROM oauth_tokens WHERE hash = :h";

tl::unexpected<model::Error> not_good() {
  return fail(Errc::invalid_argument, "it is unknown, expired, used up or another client's");
}

std::string new_secret(std::string_view prefix) {
  return std::string(prefix) + model::random_hex(random_secret_bytes);
}

void prune(Connection& connection, model::Timestamp now) {
  connection.run(
      "DELETE FROM oauth_codes WHERE hash IN (SELECT hash FROM oauth_codes"
      " WHERE expires_at <= :n ORDER BY expires_at LIMIT :l)",
      now, prune_at_once);
  connection.run(
      "DELETE FROM oauth_tokens WHERE hash IN (SELECT hash FROM oauth_tokens"
      " WHERE expires_at <= :n ORDER BY expires_at LIMIT :l)",
      now, prune_at_once);
  // A grant's codes and tokens do not outlive it, but may not have been removed yet.
  connection.run(
      "DELETE FROM oauth_grants WHERE id IN (SELECT g.id FROM oauth_grants g"
      " WHERE g.expires_at <= :n"
      " AND NOT EXISTS (SELECT 1 FROM oauth_tokens t WHERE t.grant_id = g.id)"
      " AND NOT EXISTS (SELECT 1 FROM oauth_codes c WHERE c.grant_id = g.id)"
      " ORDER BY g.expires_at LIMIT :l)",
      now, prune_at_once);
}

void end_grant(Connection& connection, const std::string& id) {
  connection.run("DELETE FROM oauth_grants WHERE id = :g", id);
}

void insert_token(Connection& connection, const std::string& grant_id, std::string_view type,
                  const std::string& token, model::Timestamp expires_at) {
  connection.run(
      "INSERT INTO oauth_tokens (hash, grant_id, type, used, expires_at)"
      " VALUES (:h, :g, :t, 0, :e)",
      hash_of_secret(token), grant_id, type, expires_at);
}

// The password may have changed, and the client may be gone, since the sign-in.
Result<void> check_sign_in(Connection& connection, const std::string& client_id,
                           const SignIn& sign_in) {
  if (!has_password(connection, sign_in)) {
    return fail(Errc::unauthenticated, "the user's password was changed or removed");
  }
  if (!connection.exists("SELECT 1 FROM oauth_clients WHERE id = :c", client_id)) return not_good();
  return {};
}

// Issues new tokens of a grant. The grant expires with its last token.
IssuedTokens issue(Writer& writer, const std::string& grant_id, const TokenLifetimes& lifetimes) {
  IssuedTokens tokens{new_secret(access_prefix), new_secret(refresh_prefix)};
  const auto now = writer.timer_now();
  const auto until = now + std::max(lifetimes.access, lifetimes.refresh);
  Connection& connection = writer.connection();
  connection.run("UPDATE oauth_grants SET expires_at = :e WHERE id = :g", until, grant_id);
  connection.run("UPDATE oauth_codes SET expires_at = :e WHERE grant_id = :g", until, grant_id);
  insert_token(connection, grant_id, "access", tokens.access, now + lifetimes.access);
  insert_token(connection, grant_id, "refresh", tokens.refresh, now + lifetimes.refresh);
  prune(connection, now);
  return tokens;
}

std::string begin_grant(Writer& writer, const std::string& client_id, const std::string& user_id) {
  auto id = model::new_id();
  writer.connection().run(
      "INSERT INTO oauth_grants (id, client_id, user_id, created_at, expires_at)"
      " VALUES (:i, :c, :u, :n, :e)",
      id, client_id, user_id, writer.now(), writer.timer_now());
  return id;
}

// Issues tokens for the grant that `take` returns. Without a grant the code or token is refused,
// but the write is committed, since a second use ends a grant.
template <typename Take>
Result<IssuedTokens> issue_for(Committer& committer, const TokenLifetimes& lifetimes,
                               const Take& take) {
  using Tokens = std::optional<IssuedTokens>;
  auto issued = committer.write_and_wait([&](Writer& writer) {
    const std::optional<std::string> grant = take(writer);
    return grant ? Tokens(issue(writer, *grant, lifetimes)) : Tokens();
  });
  if (!issued) return fail(issued.error());
  if (!*issued) return not_good();
  return **std::move(issued);
}

struct StoredCode {
  std::string client_id;
  std::string user_id;
  std::string redirect_uri;
  bool redirect_uri_sent = false;
  std::optional<std::string> challenge;
  std::optional<std::string> grant_id;  // set once the code was exchanged
  model::Timestamp expires_at{};
};

std::optional<StoredCode> find_code(Connection& connection, const std::string& hash) {
  using Code = StoredCode;
  return connection.first(
      row_of<&Code::client_id, &Code::user_id, &Code::redirect_uri, &Code::redirect_uri_sent,
             &Code::challenge, &Code::grant_id, &Code::expires_at>,
      "SELECT client_id, user_id, redirect_uri, redirect_uri_sent, challenge, grant_id,"
      " expires_at FROM oauth_codes WHERE hash = :h",
      hash);
}

bool matches(const StoredCode& code, const CodeExchange& exchange, model::Timestamp now) {
  const bool same_uri = exchange.redirect_uri.empty() ? !code.redirect_uri_sent
                                                      : exchange.redirect_uri == code.redirect_uri;
  // A verifier without a challenge is also refused: an attacker may have removed the challenge from
  // the request (RFC 9700 §2.1.1).
  return code.expires_at > now && same_uri && code.challenge == exchange.challenge;
}

struct StoredRefresh {
  std::string grant_id;
  bool used = false;
  model::Timestamp expires_at{};
};

std::optional<StoredRefresh> find_refresh(Connection& connection, const std::string& client_id,
                                          const std::string& hash) {
  return connection.first(
      row_of<&StoredRefresh::grant_id, &StoredRefresh::used, &StoredRefresh::expires_at>,
      "SELECT t.grant_id, t.used, t.expires_at FROM oauth_tokens t"
      " JOIN oauth_grants g ON g.id = t.grant_id"
      " WHERE t.hash = :h AND t.type = 'refresh' AND g.client_id = :c",
      hash, client_id);
}

// An unknown code or token costs one select and no write.
Result<void> check_known(Database& database, std::string_view sql, const std::string& hash) {
  const auto known = read_exists(database, sql, hash);
  if (!known) return fail(known.error());
  return *known ? Result<void>() : not_good();
}

constexpr const char* missing_client = "there is no such client";
constexpr std::string_view select_clients =
    "SELECT id, organisation_id, name, CASE WHEN secret_hash IS NULL THEN 1 ELSE 0 END,"
    " redirect_uris, password_grant, created_at FROM oauth_clients WHERE ";
constexpr auto client_row =
    row_of<&OauthClient::id, &OauthClient::organisation_id, &OauthClient::name,
           &OauthClient::is_public, &OauthClient::redirect_uris, &OauthClient::password_grant,
           &OauthClient::created_at>;

Result<OauthClient> find_client(Connection& connection, const std::string& id) {
  auto found = connection.first(client_row, std::string(select_clients) + "id = :i", id);
  if (!found) return fail(Errc::not_found, missing_client);
  return *std::move(found);
}

}  // namespace

void end_oauth_grants_of_user(Connection& connection, const std::string& user_id) {
  connection.run("DELETE FROM oauth_codes WHERE user_id = :u", user_id);
  connection.run("DELETE FROM oauth_grants WHERE user_id = :u", user_id);
}

Result<NewOauthClient> Oauth::create_client(OauthClient wanted) {
  NewOauthClient made{.client = std::move(wanted), .secret = ""};
  made.client.id = model::new_id();
  std::optional<std::string> hash;
  if (!made.client.is_public) {
    made.secret = new_secret(client_secret_prefix);
    hash = hash_of_secret(made.secret);
  }
  return committer_.write_and_wait([&](Writer& writer) -> Result<NewOauthClient> {
    Connection& connection = writer.connection();
    if (!connection.exists("SELECT 1 FROM organisations WHERE id = :i",
                           made.client.organisation_id)) {
      return fail(Errc::not_found, "there is no such organisation");
    }
    made.client.created_at = writer.now();
    connection.run(
        "INSERT INTO oauth_clients (id, organisation_id, name, secret_hash, redirect_uris,"
        " password_grant, created_at) VALUES (:i, :o, :n, :s, :r, :p, :c)",
        made.client.id, made.client.organisation_id, made.client.name, hash,
        made.client.redirect_uris, made.client.password_grant, writer.now());
    return made;
  });
}

Result<std::vector<OauthClient>> Oauth::clients(const std::string& organisation_id) const {
  return read_all(database_, client_row,
                  std::string(select_clients) + "organisation_id = :o ORDER BY created_at, id",
                  organisation_id);
}

Result<void> Oauth::remove_client(const std::string& organisation_id,
                                  const std::string& client_id) {
  // Checked first, since even a write that changes no row costs a commit.
  const auto known =
      read_exists(database_, "SELECT 1 FROM oauth_clients WHERE id = :i AND organisation_id = :o",
                  client_id, organisation_id);
  if (!known) return fail(known.error());
  if (!*known) return fail(Errc::not_found, missing_client);
  return committer_.write_and_wait([&](Writer& writer) {
    grow(writer);
    return change_one(writer.connection(), missing_client,
                      "DELETE FROM oauth_clients WHERE id = :i", client_id);
  });
}

Result<OauthClient> Oauth::client(const std::string& client_id) const {
  return read(database_,
              [&](Connection& connection) { return find_client(connection, client_id); });
}

Result<OauthClient> Oauth::authenticate_client(const std::string& client_id,
                                               const std::optional<std::string>& secret) const {
  const auto hash = secret ? hash_of_secret(*secret) : std::string();
  return read(database_, [&](Connection& connection) -> Result<OauthClient> {
    const auto stored = connection.row<std::optional<std::string>>(
        "SELECT secret_hash FROM oauth_clients WHERE id = :i", client_id);
    const auto kept = stored ? std::get<0>(*stored) : std::nullopt;
    if (!stored || kept.has_value() != secret.has_value() || (kept && !same_secret(*kept, hash))) {
      return fail(Errc::unauthenticated, "the client or its secret is wrong");
    }
    return find_client(connection, client_id);
  });
}

Result<std::string> Oauth::create_code(const CodeRequest& request, milliseconds lifetime) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<std::string> {
    Connection& connection = writer.connection();
    if (auto good = check_sign_in(connection, request.client_id, request.sign_in); !good) {
      return fail(good.error());
    }
    auto code = new_secret(code_prefix);
    const auto now = writer.timer_now();
    prune(connection, now);
    connection.run(
        "INSERT INTO oauth_codes (hash, client_id, user_id, redirect_uri, redirect_uri_sent,"
        " challenge, grant_id, expires_at) VALUES (:h, :c, :u, :r, :s, :p, NULL, :e)",
        hash_of_secret(code), request.client_id, request.sign_in.user_id, request.redirect_uri,
        request.redirect_uri_sent, request.challenge, now + lifetime);
    return code;
  });
}

Result<IssuedTokens> Oauth::exchange_code(const CodeExchange& exchange,
                                          const TokenLifetimes& lifetimes) {
  const auto hash = hash_of_secret(exchange.code);
  if (auto known = check_known(database_, select_code, hash); !known) return fail(known.error());
  return issue_for(committer_, lifetimes, [&](Writer& writer) -> std::optional<std::string> {
    Connection& connection = writer.connection();
    const auto code = find_code(connection, hash);
    if (!code || code->client_id != exchange.client_id) return std::nullopt;
    if (code->grant_id) {
      end_grant(connection, *code->grant_id);
      grow(writer);
      return std::nullopt;
    }
    if (!matches(*code, exchange, writer.timer_now())) return std::nullopt;
    auto grant = begin_grant(writer, code->client_id, code->user_id);
    connection.run("UPDATE oauth_codes SET grant_id = :g WHERE hash = :h", grant, hash);
    return grant;
  });
}

Result<IssuedTokens> Oauth::refresh(const std::string& client_id, const std::string& token,
                                    const TokenLifetimes& lifetimes) {
  const auto hash = hash_of_secret(token);
  if (auto known = check_known(database_, select_token, hash); !known) return fail(known.error());
  return issue_for(committer_, lifetimes, [&](Writer& writer) -> std::optional<std::string> {
    Connection& connection = writer.connection();
    const auto stored = find_refresh(connection, client_id, hash);
    if (!stored) return std::nullopt;
    if (stored->used) {
      end_grant(connection, stored->grant_id);
      grow(writer);
      return std::nullopt;
    }
    if (stored->expires_at <= writer.timer_now()) return std::nullopt;
    connection.run("UPDATE oauth_tokens SET used = 1 WHERE hash = :h", hash);
    return stored->grant_id;
  });
}

Result<IssuedTokens> Oauth::grant(const std::string& client_id, const SignIn& sign_in,
                                  const TokenLifetimes& lifetimes) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<IssuedTokens> {
    if (auto good = check_sign_in(writer.connection(), client_id, sign_in); !good) {
      return fail(good.error());
    }
    return issue(writer, begin_grant(writer, client_id, sign_in.user_id), lifetimes);
  });
}

Result<void> Oauth::revoke(const std::string& client_id, const std::string& token) {
  const auto hash = hash_of_secret(token);
  const auto known = read_exists(database_, select_token, hash);
  if (!known) return fail(known.error());
  if (!*known) return {};
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    grow(writer);
    if (const auto refresh = find_refresh(connection, client_id, hash)) {
      end_grant(connection, refresh->grant_id);
      return {};
    }
    connection.run(
        "DELETE FROM oauth_tokens WHERE hash = :h"
        " AND grant_id IN (SELECT id FROM oauth_grants WHERE client_id = :c)",
        hash, client_id);
    return {};
  });
}

Result<AccessToken> Oauth::verify_access_token(std::string_view token, model::Timestamp now) const {
  if (!token.starts_with(access_prefix)) {
    return fail(Errc::unauthenticated, "this is not an access token");
  }
  const auto hash = hash_of_secret(token);
  return read(database_, [&](Connection& connection) -> Result<AccessToken> {
    auto row = connection.row<std::string, model::Timestamp>(
        "SELECT g.user_id, t.expires_at FROM oauth_tokens t"
        " JOIN oauth_grants g ON g.id = t.grant_id WHERE t.hash = :h AND t.type = 'access'",
        hash);
    if (!row || std::get<1>(*row) <= now) {
      return fail(Errc::unauthenticated, "the access token is not valid");
    }
    auto principal = load_principal(connection, std::get<0>(*row));
    if (!principal) return fail(principal.error());
    return AccessToken{std::move(*principal), std::get<1>(*row)};
  });
}

std::string Oauth::seal(std::string_view text) const {
  return sealer_.seal(sealed_place, text);
}

Result<std::string> Oauth::open_sealed(std::string_view sealed) const {
  auto text = sealer_.open_sealed(sealed_place, sealed);
  if (!text) return fail(Errc::invalid_argument, "the text was not sealed by this installation");
  return text;
}

}  // namespace conversed::store

// The part of Oauth that issues and ends tokens.
#include "store/accounts/oauth.h"

#include "store/accounts/people.h"
#include "store/model/ids.h"
#include "store/secrets/secrets.h"
#include "store/sql/read.h"

namespace conversed::store {

using std::chrono::milliseconds;

namespace {

constexpr std::string_view access_prefix = "cva_";
constexpr std::string_view refresh_prefix = "cvr_";
constexpr std::string_view code_prefix = "cvc_";
// Writes that add rows remove up to this many expired rows of each kind: more than a write adds, so
// that they don't pile up, and few enough that no write is slow.
constexpr int prune_at_once = 16;

constexpr std::string_view select_code = "SELECT hash FROM oauth_codes WHERE hash = :h";
constexpr std::string_view select_token = "SELECT hash FROM oauth_tokens WHERE hash = :h";

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
  connection.run("DELETE FROM oauth_codes WHERE grant_id = :g", id);
  connection.run("DELETE FROM oauth_tokens WHERE grant_id = :g", id);
  connection.run("DELETE FROM oauth_grants WHERE id = :g", id);
}

void insert_token(Connection& connection, const std::string& grant_id, std::string_view type,
                  const std::string& token, model::Timestamp expires_at) {
  connection.run(
      "INSERT INTO oauth_tokens (hash, grant_id, type, used, expires_at)"
      " VALUES (:h, :g, :t, 0, :e)",
      hash_of_secret(token), grant_id, type, expires_at);
}

tl::unexpected<model::Error> password_gone() {
  return fail(Errc::unauthenticated, "the user has another password by now, or none");
}

// New tokens of a grant, which lives as long as the longest of them.
void issue(Writer& writer, const std::string& grant_id, const IssuedTokens& tokens,
           const TokenLifetimes& lifetimes) {
  const auto now = writer.timer_now();
  const auto until = now + std::max(lifetimes.access, lifetimes.refresh);
  Connection& connection = writer.connection();
  connection.run("UPDATE oauth_grants SET expires_at = :e WHERE id = :g", until, grant_id);
  connection.run("UPDATE oauth_codes SET expires_at = :e WHERE grant_id = :g", until, grant_id);
  insert_token(connection, grant_id, "access", tokens.access, now + lifetimes.access);
  insert_token(connection, grant_id, "refresh", tokens.refresh, now + lifetimes.refresh);
  prune(connection, now);
}

std::string begin_grant(Writer& writer, const std::string& client_id, const std::string& user_id) {
  auto id = model::new_id();
  writer.connection().run(
      "INSERT INTO oauth_grants (id, client_id, user_id, created_at, expires_at)"
      " VALUES (:i, :c, :u, :n, :e)",
      id, client_id, user_id, writer.now(), writer.timer_now());
  return id;
}

IssuedTokens new_tokens() {
  return {new_secret(access_prefix), new_secret(refresh_prefix)};
}

struct StoredCode {
  std::string client_id;
  std::string user_id;
  std::string redirect_uri;
  bool redirect_uri_sent = false;
  std::optional<std::string> challenge;
  std::optional<std::string> grant_id;  // set once it was exchanged
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
  // A verifier without a challenge is refused, too: an attacker may have removed the challenge from
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

}  // namespace

void end_oauth_grants_of_user(Connection& connection, const std::string& user_id) {
  connection.run("DELETE FROM oauth_codes WHERE user_id = :u", user_id);
  connection.run(
      "DELETE FROM oauth_tokens WHERE grant_id IN (SELECT id FROM oauth_grants WHERE user_id = :u)",
      user_id);
  connection.run("DELETE FROM oauth_grants WHERE user_id = :u", user_id);
}

// An unknown code or token costs one select and no write.
Result<void> Oauth::known(std::string_view sql, const std::string& hash) const {
  return read(database_, [&](Connection& connection) -> Result<void> {
    return connection.value<std::string>(sql, hash) ? Result<void>() : not_good();
  });
}

void Oauth::grow(Writer& writer) {
  writer.on_commit([this] { generation_.fetch_add(1); });
}

Result<std::string> Oauth::create_code(const CodeRequest& request, milliseconds lifetime) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<std::string> {
    auto code = new_secret(code_prefix);
    if (!has_password(writer.connection(), request.sign_in)) return password_gone();
    if (!writer.connection().value<std::string>("SELECT id FROM oauth_clients WHERE id = :c",
                                                request.client_id)) {
      return not_good();
    }
    const auto now = writer.timer_now();
    prune(writer.connection(), now);
    writer.connection().run(
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
  if (auto there = known(select_code, hash); !there) return fail(there.error());
  const auto tokens = new_tokens();
  bool issued = false;
  auto written = committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    issued = false;
    Connection& connection = writer.connection();
    const auto code = find_code(connection, hash);
    if (!code || code->client_id != exchange.client_id) return {};
    if (code->grant_id) {
      end_grant(connection, *code->grant_id);
      grow(writer);
      return {};
    }
    if (!matches(*code, exchange, writer.timer_now())) return {};
    const auto grant = begin_grant(writer, code->client_id, code->user_id);
    connection.run("UPDATE oauth_codes SET grant_id = :g WHERE hash = :h", grant, hash);
    issue(writer, grant, tokens, lifetimes);
    issued = true;
    return {};
  });
  if (!written) return fail(written.error());
  if (!issued) return not_good();
  return tokens;
}

Result<IssuedTokens> Oauth::grant(const std::string& client_id, const SignIn& sign_in,
                                  const TokenLifetimes& lifetimes) {
  const auto tokens = new_tokens();
  return committer_.write_and_wait([&](Writer& writer) -> Result<IssuedTokens> {
    Connection& connection = writer.connection();
    if (!has_password(connection, sign_in)) return password_gone();
    if (!connection.value<std::string>("SELECT id FROM oauth_clients WHERE id = :c", client_id)) {
      return not_good();
    }
    issue(writer, begin_grant(writer, client_id, sign_in.user_id), tokens, lifetimes);
    return tokens;
  });
}

Result<IssuedTokens> Oauth::refresh(const std::string& client_id, const std::string& token,
                                    const TokenLifetimes& lifetimes) {
  const auto hash = hash_of_secret(token);
  if (auto there = known(select_token, hash); !there) return fail(there.error());
  const auto tokens = new_tokens();
  bool issued = false;
  auto written = committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    issued = false;
    Connection& connection = writer.connection();
    const auto stored = find_refresh(connection, client_id, hash);
    if (!stored) return {};
    if (stored->used) {
      end_grant(connection, stored->grant_id);
      grow(writer);
      return {};
    }
    if (stored->expires_at <= writer.timer_now()) return {};
    connection.run("UPDATE oauth_tokens SET used = 1 WHERE hash = :h", hash);
    issue(writer, stored->grant_id, tokens, lifetimes);
    issued = true;
    return {};
  });
  if (!written) return fail(written.error());
  if (!issued) return not_good();
  return tokens;
}

Result<void> Oauth::revoke(const std::string& client_id, const std::string& token) {
  const auto hash = hash_of_secret(token);
  if (auto there = known(select_token, hash); !there) {
    return there.error().code == Errc::invalid_argument ? Result<void>() : fail(there.error());
  }
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
    return fail(Errc::unauthenticated, "this is no access token");
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

}  // namespace conversed::store

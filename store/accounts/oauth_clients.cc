// The part of Oauth that keeps clients.
#include "store/accounts/oauth.h"
#include "store/accounts/people.h"
#include "store/model/ids.h"
#include "store/secrets/sealer.h"
#include "store/secrets/secrets.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

constexpr std::string_view secret_prefix = "cvs_";
// Sealed texts belong to no row.
constexpr std::string_view sealed_place = "oauth/sealed/request";

OauthClient client_from(std::string id, std::string organisation, std::string name, bool has_secret,
                        std::vector<std::string> uris, bool password_grant,
                        model::Timestamp created) {
  return {.id = std::move(id),
          .organisation_id = std::move(organisation),
          .name = std::move(name),
          .type = has_secret ? ClientType::confidential : ClientType::public_,
          .redirect_uris = std::move(uris),
          .password_grant = password_grant,
          .created_at = created};
}

std::string clients_where(std::string_view condition) {
  return std::string(
             "SELECT id, organisation_id, name,"
             " CASE WHEN secret_hash IS NULL THEN 0 ELSE 1 END, redirect_uris, password_grant,"
             " created_at FROM oauth_clients WHERE ")
      .append(condition);
}

Result<OauthClient> find_client(Connection& connection, const std::string& id) {
  auto found = connection.first(client_from, clients_where("id = :i"), id);
  if (!found) return fail(Errc::not_found, "there is no such client");
  return *std::move(found);
}

}  // namespace

Result<NewOauthClient> Oauth::create_client(OauthClient wanted) {
  NewOauthClient made{.client = std::move(wanted), .secret = ""};
  made.client.id = model::new_id();
  std::optional<std::string> hash;
  if (made.client.type == ClientType::confidential) {
    made.secret = std::string(secret_prefix) + model::random_hex(random_secret_bytes);
    hash = hash_of_secret(made.secret);
  }
  return committer_.write_and_wait([&](Writer& writer) -> Result<NewOauthClient> {
    Connection& connection = writer.connection();
    if (!connection.value<std::string>("SELECT id FROM organisations WHERE id = :i",
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
  return read_all(database_, client_from,
                  clients_where("organisation_id = :o ORDER BY created_at, id"), organisation_id);
}

Result<void> Oauth::remove_client(const std::string& organisation_id,
                                  const std::string& client_id) {
  const auto is_there = [&](Connection& connection) -> Result<void> {
    if (connection.value<std::string>(
            "SELECT id FROM oauth_clients WHERE id = :i AND organisation_id = :o", client_id,
            organisation_id)) {
      return {};
    }
    return fail(Errc::not_found, "there is no such client");
  };
  // Every transaction writes its marker, even one that finds nothing to do.
  if (auto found = read(database_, is_there); !found) return found;
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    grow(writer);
    if (auto found = is_there(connection); !found) return found;
    connection.run("DELETE FROM oauth_codes WHERE client_id = :c", client_id);
    connection.run(
        "DELETE FROM oauth_tokens WHERE grant_id IN"
        " (SELECT id FROM oauth_grants WHERE client_id = :c)",
        client_id);
    connection.run("DELETE FROM oauth_grants WHERE client_id = :c", client_id);
    connection.run("DELETE FROM oauth_clients WHERE id = :c", client_id);
    return {};
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
    const auto good = [&] {
      if (!stored) return false;
      const auto& kept = std::get<0>(*stored);
      return kept.has_value() == secret.has_value() && (!kept || same_secret(*kept, hash));
    };
    if (!good()) return fail(Errc::unauthenticated, "the client or its secret is wrong");
    return find_client(connection, client_id);
  });
}

std::string Oauth::seal(std::string_view text) const {
  return sealer_.seal(sealed_place, text);
}

Result<std::string> Oauth::open_sealed(std::string_view sealed) const {
  auto text = sealer_.open_sealed(sealed_place, sealed);
  if (!text) return fail(Errc::invalid_argument, "this was not sealed here");
  return text;
}

}  // namespace conversed::store

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/accounts/accounts.h"
#include "store/commit/committer.h"
#include "store/model/result.h"

namespace conversed::store {

class Sealer;

struct OauthClient {
  std::string id;
  std::string organisation_id;  // only its users sign in here
  std::string name;
  bool is_public = false;  // the client can't keep a secret (RFC 6749 §2.1)
  std::vector<std::string> redirect_uris{};
  bool password_grant = false;
  model::Timestamp created_at{};
};
struct NewOauthClient {
  OauthClient client;
  std::string secret;  // shown once, stored as a hash only; empty if public
};

struct TokenLifetimes {
  std::chrono::milliseconds access{};
  std::chrono::milliseconds refresh{};
};
struct IssuedTokens {
  std::string access;
  std::string refresh;
};

struct CodeRequest {
  std::string client_id;
  SignIn sign_in;
  std::string redirect_uri;        // where the code goes
  bool redirect_uri_sent = false;  // the request named it, so the exchange has to name it as well
  std::optional<std::string> challenge{};  // of PKCE: SHA-256 of the verifier, base64url
};
struct CodeExchange {
  std::string client_id;
  std::string code;
  std::string redirect_uri;                // empty: not sent
  std::optional<std::string> challenge{};  // made of the verifier in the request
};

struct AccessToken {
  Principal principal;
  model::Timestamp expires_at{};
};

// OAuth 2.0 clients and their users' grants. Tokens, codes and secrets are random; only hashes are
// stored.
//
// A grant is the family of all tokens of one sign-in, and outlives each of them. Used refresh
// tokens and exchanged codes stay as long as their grant: a second use ends the grant. Writes that
// add tokens or codes remove expired ones.
// Kept by: OauthTest.SecondUseIsNoticedLongAfterTheCodeHasExpired,
// OauthTest.ReusedRefreshTokenEndsItsFamilyAndNoOther,
// OauthTest.ExpiredRowsAreRemovedByLaterSignIns.
//
// Thread-safe; blocks on the disk. Further errors: `unavailable`, `internal`. `invalid_argument`:
// the code or token is unknown, expired, used or another client's. The message does not tell which.
class Oauth {
 public:
  // All must outlive it.
  Oauth(Database& database, Committer& committer, const Sealer& sealer)
      : database_(database), committer_(committer), sealer_(sealer) {}

  // Grows with each committed end of grants, tokens or clients by this object.
  [[nodiscard]] std::uint64_t generation() const { return generation_.load(); }

  // `id` and `created_at` of `wanted` are set here. `not_found` if there is no such organisation.
  [[nodiscard]] model::Result<NewOauthClient> create_client(OauthClient wanted);
  [[nodiscard]] model::Result<std::vector<OauthClient>> clients(
      const std::string& organisation_id) const;
  // Removes the client and its grants. `not_found` also for a client of another organisation.
  [[nodiscard]] model::Result<void> remove_client(const std::string& organisation_id,
                                                  const std::string& client_id);

  // `not_found` if there is no such client.
  [[nodiscard]] model::Result<OauthClient> client(const std::string& client_id) const;
  // The client, if the secret is right, or if the client is public and no secret is given. Else
  // `unauthenticated`.
  [[nodiscard]] model::Result<OauthClient> authenticate_client(
      const std::string& client_id, const std::optional<std::string>& secret) const;

  // Makes a code that is valid for `lifetime`. `unauthenticated` if the user's password has changed
  // since the sign-in.
  [[nodiscard]] model::Result<std::string> create_code(const CodeRequest& request,
                                                       std::chrono::milliseconds lifetime);
  // Exchanges a code, once. A second exchange ends the grant of the first.
  [[nodiscard]] model::Result<IssuedTokens> exchange_code(const CodeExchange& exchange,
                                                          const TokenLifetimes& lifetimes);
  // Makes a grant without a code. `unauthenticated` if the user's password has changed since the
  // sign-in.
  [[nodiscard]] model::Result<IssuedTokens> grant(const std::string& client_id,
                                                  const SignIn& sign_in,
                                                  const TokenLifetimes& lifetimes);
  // Exchanges a refresh token, once. A second exchange ends its family, since a thief must have
  // made one of the two.
  [[nodiscard]] model::Result<IssuedTokens> refresh(const std::string& client_id,
                                                    const std::string& token,
                                                    const TokenLifetimes& lifetimes);
  // Ends an access token, or the whole family of a refresh token. A token of another client, or an
  // unknown one, is no error.
  [[nodiscard]] model::Result<void> revoke(const std::string& client_id, const std::string& token);

  // `unauthenticated` if the token is unknown, expired or ended. Reads one row by its key.
  [[nodiscard]] model::Result<AccessToken> verify_access_token(std::string_view token,
                                                               model::Timestamp now) const;

  // Seals a text for a form that a browser sends back, to any daemon of the installation.
  // `open_sealed`: `invalid_argument` if `seal` did not make it.
  [[nodiscard]] std::string seal(std::string_view text) const;
  [[nodiscard]] model::Result<std::string> open_sealed(std::string_view sealed) const;

 private:
  // The generation grows once the Writer's transaction is durable.
  void grow(Writer& writer) {
    writer.on_commit([this] { generation_.fetch_add(1); });
  }

  Database& database_;
  Committer& committer_;
  const Sealer& sealer_;
  std::atomic<std::uint64_t> generation_{1};
};

}  // namespace conversed::store

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

// Whether a client can keep a secret (RFC 6749 §2.1).
enum class ClientType : std::uint8_t { confidential, public_ };

struct OauthClient {
  std::string id;
  std::string organisation_id;  // only its users sign in here
  std::string name;
  ClientType type = ClientType::confidential;
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

// What an authorization code stands for.
struct CodeRequest {
  std::string client_id;
  SignIn sign_in;
  std::string redirect_uri;        // where the code goes
  bool redirect_uri_sent = false;  // whether the request named it: the exchange then has to, too
  std::optional<std::string> challenge{};  // of PKCE: SHA-256 of the verifier, base64url
};
// What comes with a code that is to be exchanged.
struct CodeExchange {
  std::string client_id;
  std::string code;
  std::string redirect_uri;                // empty: not sent
  std::optional<std::string> challenge{};  // of the verifier that was sent
};

// Who an access token acts for, and how long.
struct AccessToken {
  Principal principal;
  model::Timestamp expires_at{};
};

// OAuth 2.0 clients, and what their users granted them. A sign-in begins a grant, the family of all
// tokens that come of it. Tokens, codes and secrets are random and stored as hashes only.
//
// Thread-safe; blocks on the disk. Errors beside those named: `unavailable`, `internal`.
// `invalid_argument` says that the code or token is not good: unknown, expired, used, another
// client's; it is not told which.
class Oauth {
 public:
  // All must outlive it.
  Oauth(Database& database, Committer& committer, const Sealer& sealer)
      : database_(database), committer_(committer), sealer_(sealer) {}

  // Grows with each committed end of grants, tokens or clients that was made here.
  [[nodiscard]] std::uint64_t generation() const { return generation_.load(); }

  // `id` and `created_at` of `wanted` are set here. `not_found` if there is no such organisation.
  [[nodiscard]] model::Result<NewOauthClient> create_client(OauthClient wanted);
  [[nodiscard]] model::Result<std::vector<OauthClient>> clients(
      const std::string& organisation_id) const;
  // With all that was granted to it. `not_found` also for another organisation's.
  [[nodiscard]] model::Result<void> remove_client(const std::string& organisation_id,
                                                  const std::string& client_id);

  // `not_found` if there is none.
  [[nodiscard]] model::Result<OauthClient> client(const std::string& client_id) const;
  // The client that a secret, or for a public one its absence, belongs to; else `unauthenticated`.
  [[nodiscard]] model::Result<OauthClient> authenticate_client(
      const std::string& client_id, const std::optional<std::string>& secret) const;

  // A code that is good for `lifetime`. `unauthenticated` if the password of the sign-in is not the
  // user's any more.
  [[nodiscard]] model::Result<std::string> create_code(const CodeRequest& request,
                                                       std::chrono::milliseconds lifetime);
  // Exchanges a code, once. A second time ends what the first one gave.
  [[nodiscard]] model::Result<IssuedTokens> exchange_code(const CodeExchange& exchange,
                                                          const TokenLifetimes& lifetimes);
  // A grant without a code. `unauthenticated` if the password of the sign-in is not the user's any
  // more.
  [[nodiscard]] model::Result<IssuedTokens> grant(const std::string& client_id,
                                                  const SignIn& sign_in,
                                                  const TokenLifetimes& lifetimes);
  // Exchanges a refresh token, once. A second time ends its family: one of the two was a thief.
  [[nodiscard]] model::Result<IssuedTokens> refresh(const std::string& client_id,
                                                    const std::string& token,
                                                    const TokenLifetimes& lifetimes);
  // Ends an access token, or with a refresh token its whole family. What the client does not have
  // is no error.
  [[nodiscard]] model::Result<void> revoke(const std::string& client_id, const std::string& token);

  // `unauthenticated` if it is unknown, expired or ended. A point select.
  [[nodiscard]] model::Result<AccessToken> verify_access_token(std::string_view token,
                                                               model::Timestamp now) const;

  // A text that goes through a stranger's hands and comes back unread and unchanged, to any daemon
  // of the installation. `invalid_argument` if it is not one that `seal` made.
  [[nodiscard]] std::string seal(std::string_view text) const;
  [[nodiscard]] model::Result<std::string> open_sealed(std::string_view sealed) const;

 private:
  // The generation grows once what is written here is durable.
  void grow(Writer& writer);
  [[nodiscard]] model::Result<void> known(std::string_view sql, const std::string& hash) const;

  Database& database_;
  Committer& committer_;
  const Sealer& sealer_;
  std::atomic<std::uint64_t> generation_{1};
};

}  // namespace conversed::store

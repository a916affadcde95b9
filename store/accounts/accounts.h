#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/result.h"

namespace conversed::store {

struct Organisation {
  std::string id;
  std::string name;
  // E-mail domains in lower case. Other organisations can't add users with addresses there.
  std::vector<std::string> domains{};
};

struct DomainsSet {
  Organisation organisation;
  std::vector<std::string> strangers{};  // addresses there of other organisations' users
};

struct User {
  std::string id;
  std::string organisation_id;
  std::string email;  // as it was given; unique without regard to ASCII case
  std::string name;
  std::vector<std::string> roles;  // of the organisation; valid in each of its projects
  bool has_password = false;
  model::Timestamp created_at{};
};

struct Member {
  User user;
  std::vector<std::string> roles;            // in this project
  std::vector<std::string> allowed_locales;  // ids
};

// The user of a request, with roles.
struct Principal {
  std::string user_id;
  std::string organisation_id;
  std::string key_id;                 // of the API key or management token; empty without one
  std::vector<std::string> scopes{};  // of the management token; empty without one
  std::vector<std::string> organisation_roles;
  std::map<std::string, std::vector<std::string>, std::less<>> project_roles;  // by project id
};

// A sign-in by password. The password may change before the sign-in's grant is written, so the
// writing transaction compares the mark again.
struct SignIn {
  std::string user_id;
  std::string password_mark;  // a hash of the stored hash: each set password has its own
};
struct SignedIn {
  Principal principal;
  SignIn sign_in;
};

struct ApiKey {
  std::string id;
  std::string name;
  std::string user_id;
  model::Timestamp created_at{};
};
struct NewApiKey {
  ApiKey key;
  std::string secret;  // `cvk_<id>_<64 hex digits>`; shown once; only its hash is stored
};

struct ManagementToken {
  std::string id;
  std::string name;
  std::string user_id;
  std::vector<std::string> scopes;  // what it is for; at least one
  model::Timestamp created_at{};
  model::Timestamp expires_at{};
};
struct NewManagementToken {
  ManagementToken token;
  std::string secret;  // `cvm_<id>_<64 hex digits>`; shown once; only its hash is stored
};
struct VerifiedToken {
  Principal principal;
  model::Timestamp expires_at{};
};

// Organisations, users, roles, API keys and management tokens. Thread-safe; blocks on the disk.
// `authenticate` and setting a password take some 20 ms of CPU. Further errors: `not_found` (also
// for rows of another organisation), `unavailable`, `internal`.
class Accounts : Rows {
 public:
  using Rows::Rows;

  // Grows with each committed change of users, roles or keys by this object. Imports change
  // members, too: a cache of principals is stale if this or `Assets::generation()` has grown.
  [[nodiscard]] std::uint64_t generation() const { return generation_.load(); }
  // Notes a change by another daemon.
  void bump_generation() { generation_.fetch_add(1); }

  struct NewMembership {
    std::string project_id;
    std::vector<std::string> roles;
  };
  struct NewUser {
    std::string email;
    std::string name{};
    std::vector<std::string> roles{};       // of the organisation
    std::optional<std::string> password{};  // none: the user can't sign in by password
    std::optional<NewMembership> membership{};
  };

  // The first organisation and its administrator. `conflict` if there is any organisation.
  [[nodiscard]] model::Result<Organisation> create_first_organisation(const std::string& name,
                                                                      const NewUser& admin) {
    return add_organisation(name, admin, Which::first);
  }
  // `conflict` if the name or the address is taken, or the domain belongs to another organisation.
  [[nodiscard]] model::Result<Organisation> create_organisation(const std::string& name,
                                                                const NewUser& admin) {
    return add_organisation(name, admin, Which::further);
  }
  [[nodiscard]] model::Result<std::vector<Organisation>> organisations() const;
  // Replaces the organisation's domains. `conflict` if another organisation has a domain of them,
  // `invalid_argument` if a text is not a domain.
  [[nodiscard]] model::Result<DomainsSet> set_domains(const std::string& organisation_id,
                                                      const std::vector<std::string>& domains);

  // `conflict` if the address is taken or its domain belongs to another organisation,
  // `invalid_argument` if it is not an address, `not_found` if there is no such project.
  [[nodiscard]] model::Result<User> create_user(const std::string& organisation_id,
                                                const NewUser& user);
  [[nodiscard]] model::Result<std::vector<User>> users(const std::string& organisation_id) const;
  [[nodiscard]] model::Result<User> user_by_email(const std::string& organisation_id,
                                                  std::string_view email) const;
  [[nodiscard]] model::Result<User> user(const std::string& organisation_id,
                                         const std::string& user_id) const;

  // Sets a new password, or removes it. The old password becomes invalid, and the user's OAuth
  // grants and management tokens end. This and the next two are a `conflict` if they would leave
  // the installation without a platformAdmin who has a password. Kept by:
  // AccountsTest.LastPlatformAdminWithAPasswordStays.
  [[nodiscard]] model::Result<void> set_password(const std::string& organisation_id,
                                                 const std::string& user_id,
                                                 const std::optional<std::string>& password);
  // Sets the roles of the organisation. The API keys, management tokens and OAuth grants of a user
  // who becomes a platformAdmin end: a userAdmin may have made them.
  // Kept by: AccountsTest.EarlierKeysDoNotBecomeThoseOfAPlatformAdmin.
  [[nodiscard]] model::Result<void> set_roles(const std::string& organisation_id,
                                              const std::string& user_id,
                                              const std::vector<std::string>& roles);
  // Also removes the user's API keys, management tokens, memberships and OAuth grants.
  [[nodiscard]] model::Result<void> remove_user(const std::string& organisation_id,
                                                const std::string& user_id);

  // `unauthenticated` for an unknown address, a wrong password and no password; all take the same
  // time.
  [[nodiscard]] model::Result<SignedIn> authenticate(std::string_view email,
                                                     std::string_view password) const;
  // The user's present rights, for tokens of an external issuer. `user` is an id or an address;
  // `organisation` is an id or a name, or empty for the installation's only organisation.
  // `not_found` if the user belongs to another organisation, or if `organisation` is empty and
  // there are several.
  [[nodiscard]] model::Result<Principal> principal_in(std::string_view organisation,
                                                      std::string_view user) const;

  [[nodiscard]] model::Result<Member> member(const std::string& project_id,
                                             const std::string& user_id) const;
  // `invalid_argument` if an id is not a locale of the project.
  [[nodiscard]] model::Result<Member> set_allowed_locales(const std::string& project_id,
                                                          const std::string& user_id,
                                                          const std::vector<std::string>& locales);

  [[nodiscard]] model::Result<NewApiKey> create_api_key(const std::string& organisation_id,
                                                        const std::string& user_id,
                                                        const std::string& name);
  [[nodiscard]] model::Result<std::vector<ApiKey>> api_keys(
      const std::string& organisation_id) const;
  [[nodiscard]] model::Result<void> revoke_api_key(const std::string& organisation_id,
                                                   const std::string& key_id);
  // `unauthenticated` if the key is unknown, revoked or wrong.
  [[nodiscard]] model::Result<Principal> verify_api_key(std::string_view secret) const;

  // `id`, `created_at` of `wanted` are set here. Also removes the user's expired tokens.
  // `conflict` beyond `max_tokens_of_user`.
  static constexpr std::int64_t max_tokens_of_user = 100;
  [[nodiscard]] model::Result<NewManagementToken> create_management_token(
      const std::string& organisation_id, ManagementToken wanted);
  [[nodiscard]] model::Result<std::vector<ManagementToken>> management_tokens(
      const std::string& organisation_id) const;
  [[nodiscard]] model::Result<void> revoke_management_token(const std::string& organisation_id,
                                                            const std::string& token_id);
  // Whether the text has the form of a management token. No password needs to be checked then.
  [[nodiscard]] static bool is_management_token(std::string_view secret);
  // `unauthenticated` if the token is unknown, revoked, expired, or of another user than `email`.
  [[nodiscard]] model::Result<VerifiedToken> verify_management_token(std::string_view email,
                                                                     std::string_view secret,
                                                                     model::Timestamp now) const;

 private:
  enum class Which : std::uint8_t { first, further };
  [[nodiscard]] model::Result<Organisation> add_organisation(const std::string& name,
                                                             const NewUser& admin, Which which);
  // The generation grows once the Writer's transaction is durable.
  void grow(Writer& writer) {
    writer.on_commit([this] { bump_generation(); });
  }

  std::atomic<std::uint64_t> generation_{1};
};

}  // namespace conversed::store

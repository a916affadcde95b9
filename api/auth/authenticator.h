#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "api/auth/credentials.h"
#include "api/auth/jwt.h"
#include "api/auth/lockout.h"
#include "api/auth/principal.h"
#include "api/live/digest.h"
#include "store/accounts/accounts.h"
#include "store/model/clock.h"
#include "store/model/result.h"
#include "store/runtime/guarded.h"

namespace conversed::store {
class Store;
}

namespace conversed::api {

class BlockingPool;

// Finds the user of a request by its credentials. Thread-safe.
//
// The Authenticator remembers verified credentials for a short time, by a keyed digest. A change of
// keys, passwords or roles by this daemon takes effect at once. A change by another daemon takes
// effect within the lifetimes below.
class Authenticator {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Verified = std::shared_ptr<const Principal>;

  static constexpr std::chrono::seconds client_lifetime{5};
  static constexpr std::chrono::seconds basic_lifetime{60};
  static constexpr std::size_t max_remembered = 16'384;  // of each kind

  // Receives each lock-out of an account or an address, with the address of the last wrong
  // password. Runs on the thread of the sign-in.
  using LockoutObserver = std::function<void(std::string_view what, std::string_view address)>;

  // Store and clock must outlive this. The clock tells when tokens expire.
  Authenticator(store::Store& store, const model::Clock& clock, const LockoutLimits& limits = {},
                JwtVerifier contact_center = {}, LockoutObserver on_lockout = {});

  // The user of an API key, an access token or a contact-center token. The token's `sub` is the id
  // or e-mail address of a user of its organisation. Costs a digest for a remembered credential,
  // otherwise point selects and the check of a signature. Errors: `unauthenticated`, `unavailable`.
  [[nodiscard]] model::Result<Verified> client(const PresentedCredential& credential,
                                               TimePoint now);

  // The user of an `Authorization: Basic` header that was verified lately. Never blocks.
  [[nodiscard]] Verified remembered_basic(std::string_view authorization, TimePoint now);

  // Verifies an `Authorization: Basic` header: a management token in place of a password by a point
  // select, a password as `password` does.
  [[nodiscard]] model::Result<Verified> basic(std::string_view authorization,
                                              std::string_view address, TimePoint now);

  // Whether the user has signed in from this address before. A point select.
  [[nodiscard]] bool knows(std::string_view email, std::string_view address) const;

  struct SignedIn {
    Verified principal;
    store::SignIn sign_in;
  };
  // Verifies the password of a user who asks from `peer`. Takes tens of milliseconds and much
  // memory (Argon2id), whether or not the user exists. Call it on the sign-in pool only. Errors:
  // `unauthenticated`, `too_many` while the account or the address is locked out, `unavailable`.
  [[nodiscard]] model::Result<SignedIn> password(std::string_view email, std::string_view password,
                                                 std::string_view peer, TimePoint now);

 private:
  struct Entry {
    Verified principal;
    std::uint64_t generation = 0;  // the store's, before it was asked
    TimePoint until;
  };
  using Entries = std::unordered_map<std::string, Entry>;

  struct Found {
    Verified principal;
    std::optional<std::chrono::milliseconds>
        left;  // until the credential ends; nothing: it does not
  };

  [[nodiscard]] model::Result<Verified> token(std::string_view authorization,
                                              const BasicCredentials& credentials, TimePoint now);
  [[nodiscard]] model::Result<Found> look_up(const PresentedCredential& credential,
                                             TimePoint now) const;
  [[nodiscard]] std::uint64_t generation() const;
  [[nodiscard]] Verified find(const model::Guarded<Entries>& cache, const std::string& name,
                              TimePoint now) const;
  static void remember(model::Guarded<Entries>& cache, std::string name, Entry entry,
                       TimePoint now);

  store::Store& store_;
  const model::Clock& clock_;
  const JwtVerifier contact_center_;
  Lockout lockout_;
  const LockoutObserver on_lockout_;
  const KeyedDigest digest_;
  model::Guarded<Entries> clients_;
  model::Guarded<Entries> basics_;
};

// Queues `work`, which verifies a password, on `pool`. The pool serves the waiting addresses in
// turn. Each address has a few places. An address that has signed in to the account before does not
// wait behind the others. False if no place is free. Costs a point select.
[[nodiscard]] bool post_sign_in(const Authenticator& authenticator, BlockingPool& pool,
                                std::string_view email, std::string_view peer,
                                std::function<void()> work);

}  // namespace conversed::api

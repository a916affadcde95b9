#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "api/auth/digest.h"
#include "api/auth/principal.h"
#include "store/model/guarded.h"
#include "store/model/result.h"

namespace conversed::store {
class Store;
}

namespace conversed::api {

// Who a request comes from. Thread-safe.
//
// What was verified is remembered for a short time by a keyed digest of the credentials, never by
// the credentials themselves. A change of keys, passwords or roles that was made through this
// process's store shows at once; one that another daemon made, within the lifetimes below.
class Authenticator {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Verified = std::shared_ptr<const Principal>;

  static constexpr std::chrono::seconds key_lifetime{5};
  static constexpr std::chrono::seconds basic_lifetime{60};
  static constexpr std::size_t max_remembered = 16'384;  // of each kind

  explicit Authenticator(store::Store& store);  // must outlive this

  // The user that an API key acts as. Costs a digest when it is remembered, else a point select.
  // Errors: `unauthenticated`, `unavailable`.
  [[nodiscard]] model::Result<Verified> api_key(std::string_view key, TimePoint now);

  // The user of an `Authorization: Basic` header, if that was verified lately. Never blocks.
  [[nodiscard]] Verified remembered_basic(std::string_view authorization, TimePoint now);

  // The same, verified: takes tens of milliseconds and much memory (Argon2id), whether or not the
  // user exists. For the management pool only. Errors: `unauthenticated`, `unavailable`.
  [[nodiscard]] model::Result<Verified> basic(std::string_view authorization, TimePoint now);

 private:
  struct Entry {
    Verified principal;
    std::uint64_t generation = 0;  // of the store, before it was asked
    TimePoint until;
  };
  using Entries = std::unordered_map<std::string, Entry>;

  [[nodiscard]] std::uint64_t generation() const;
  [[nodiscard]] Verified find(const model::Guarded<Entries>& cache, const std::string& name,
                              TimePoint now) const;
  static void remember(model::Guarded<Entries>& cache, std::string name, Entry entry,
                       TimePoint now);

  store::Store& store_;
  const KeyedDigest digest_;
  model::Guarded<Entries> keys_;
  model::Guarded<Entries> basics_;
};

// The e-mail address and password of `Basic <base64 of address:password>` (RFC 7617, UTF-8);
// nothing when it is anything else.
struct BasicCredentials {
  std::string email;
  std::string password;
};
[[nodiscard]] std::optional<BasicCredentials> parse_basic(std::string_view authorization);

}  // namespace conversed::api

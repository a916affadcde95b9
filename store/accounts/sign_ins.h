#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/secrets/sealer.h"

namespace conversed::store {

// The addresses of users' sign-ins by password, as hashes under the master key, so that the store
// reveals no address. A rotation of the key makes them unknown until the next sign-in. Thread-safe;
// blocks on the disk.
class SignIns {
 public:
  static constexpr std::size_t max_addresses = 32;  // of one user; only the newest are kept

  // All must outlive it.
  SignIns(Database& database, Committer& committer, const Sealer& sealer)
      : database_(database), committer_(committer), sealer_(sealer) {}

  // Whether the user with this e-mail address has signed in from the client address `address`.
  // False while the store can't be read.
  [[nodiscard]] bool knows(std::string_view email, std::string_view address) const;

  // Notes a sign-in. Written at most once a day, without waiting, and not while the store fails.
  void note(const std::string& user_id, std::string_view address, model::Timestamp now);

 private:
  Database& database_;
  Committer& committer_;
  const Sealer& sealer_;
};

}  // namespace conversed::store

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/model/result.h"
#include "store/secrets/sealer.h"

namespace conversed::store {

// The addresses that users have signed in from by password, as hashes under the master key: nobody
// reads an address out of them. After a rotation of that key they are forgotten until the next
// sign-in. Thread-safe; blocks on the disk.
class SignIns {
 public:
  static constexpr std::size_t max_addresses = 32;  // of one user; the newest stay

  // All must outlive it.
  SignIns(Database& database, Committer& committer, const Sealer& sealer)
      : database_(database), committer_(committer), sealer_(sealer) {}

  // Whether the user with this e-mail address has signed in from there. Nobody has while the store
  // can't tell.
  [[nodiscard]] bool knows(std::string_view email, std::string_view address) const;

  // The user has signed in from there. Written once a day at most, behind the caller,
  // and not at all while the store fails.
  void note(const std::string& user_id, std::string_view address, model::Timestamp now);

 private:
  Database& database_;
  Committer& committer_;
  const Sealer& sealer_;
};

}  // namespace conversed::store

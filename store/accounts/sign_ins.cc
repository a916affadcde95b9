#include "store/accounts/sign_ins.h"

#include <chrono>

#include "store/sql/read.h"
#include "store/text/ascii.h"

namespace conversed::store {

namespace {

constexpr std::chrono::hours renewed_after{24};

std::string hash_of(const Sealer& sealer, std::string_view address) {
  return sealer.keyed_hash("sign_ins/address", address);
}

}  // namespace

bool SignIns::knows(std::string_view email, std::string_view address) const {
  return read_exists(database_,
                     "SELECT 1 FROM users u JOIN sign_ins s ON s.user_id = u.id"
                     " WHERE u.email_folded = :e AND s.address = :a",
                     text::lower_case(email), hash_of(sealer_, address))
      .value_or(false);
}

void SignIns::note(const std::string& user_id, std::string_view address, model::Timestamp now) {
  const std::string hash = hash_of(sealer_, address);
  const auto seen = read_number(
      database_, "SELECT seen_at FROM sign_ins WHERE user_id = :u AND address = :a", user_id, hash);
  if (!seen || now - model::from_unix_ms(*seen) < renewed_after) return;
  const auto work = [user_id, hash](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    connection.run("DELETE FROM sign_ins WHERE user_id = :u AND address = :a", user_id, hash);
    // The user may have been removed meanwhile.
    connection.run(
        "INSERT INTO sign_ins (user_id, address, seen_at) SELECT id, :a, :n FROM users"
        " WHERE id = :u",
        hash, writer.now(), user_id);
    connection.run(
        "DELETE FROM sign_ins WHERE user_id = :u AND address NOT IN (SELECT address FROM sign_ins"
        " WHERE user_id = :v ORDER BY seen_at DESC, address LIMIT :l)",
        user_id, user_id, static_cast<std::int64_t>(max_addresses));
    return {};
  };
  committer_.write(
      work, [](const Result<void>&) {}, Committer::Patience::none);
}

}  // namespace conversed::store

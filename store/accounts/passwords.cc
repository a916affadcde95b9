#include "store/accounts/passwords.h"

#include <sodium.h>

#include <array>
#include <cstdlib>

#include "store/accounts/common_passwords.h"
#include "store/text/ascii.h"
#include "store/text/utf8.h"

namespace conversed::store {
namespace {

void ready() {
  if (sodium_init() < 0) std::abort();  // fails only without a random generator
}

// The work of argon2id.
struct Cost {
  unsigned long long passes = 2;
  std::size_t memory_bytes = 19 * 1024 * 1024;
};

Cost cost_of_hash() {
#ifdef CONVERSED_PLANTED_FAULTS
  const char* const cheap = std::getenv("CONVERSED_TEST_CHEAP_PASSWORDS");
  if (cheap != nullptr && std::string_view(cheap) == "1") {
    return {crypto_pwhash_OPSLIMIT_MIN, crypto_pwhash_MEMLIMIT_MIN};
  }
#endif
  return {};
}

std::optional<std::string> hash(std::string_view password) {
  ready();
  const auto cost = cost_of_hash();
  std::array<char, crypto_pwhash_STRBYTES> text{};
  if (crypto_pwhash_str_alg(text.data(), password.data(), password.size(), cost.passes,
                            cost.memory_bytes, crypto_pwhash_ALG_ARGON2ID13) != 0) {
    return std::nullopt;
  }
  return std::string(text.data());
}

// Unknown users are checked against this hash of a random password. A match with it does not count.
const std::string& dummy() {
  static const std::string made = hash("no user has this password").value_or("");
  return made;
}

}  // namespace

model::Result<void> check_new_password(std::string_view password) {
  if (text::count_characters(password) < min_password_characters ||
      password.size() > max_password_bytes) {
    return model::fail(model::Errc::invalid_argument,
                       "a password has at least " + std::to_string(min_password_characters) +
                           " characters and at most " + std::to_string(max_password_bytes) +
                           " bytes");
  }
  // The search takes some 10 µs, the hash 20 ms.
  if (common_passwords.find('\n' + text::lower_case(password) + '\n') != std::string_view::npos) {
    return model::fail(model::Errc::invalid_argument,
                       "this password is one of the most common; choose another, such as four "
                       "words that have nothing to do with each other");
  }
  return {};
}

model::Result<std::string> hash_password(std::string_view password) {
  if (auto good = check_new_password(password); !good) return model::fail(good.error());
  auto text = hash(password);
  if (!text) return model::fail(model::Errc::unavailable, "no memory to hash a password");
  return *std::move(text);
}

bool verify_password(const std::optional<std::string>& stored, std::string_view password) {
  ready();
  if (password.size() > max_password_bytes) return false;
  const std::string& decoy = dummy();  // made for known users, too: all calls take equally long
  const std::string& against = stored ? *stored : decoy;
  const bool matches =
      crypto_pwhash_str_verify(against.c_str(), password.data(), password.size()) == 0;
  return matches && stored.has_value();
}

}  // namespace conversed::store

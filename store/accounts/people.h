#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/accounts/accounts.h"
#include "store/model/clock.h"
#include "store/model/result.h"
#include "store/sql/sql.h"

// Users, for imports and accounts. For .cc files of store/ only.
namespace conversed::store {

// ASCII letters lowered: addresses and domains are unique without regard to their case.
[[nodiscard]] std::string fold_ascii(std::string_view email);

struct UserRow {
  std::string organisation_id;
  std::string email;
  std::string name;
  std::vector<std::string> roles;
  std::optional<std::string> password_hash;
};

// The user's present rights. `not_found` if there is no such user.
[[nodiscard]] model::Result<Principal> load_principal(Connection& connection,
                                                      const std::string& user_id);

// SignIn::password_mark of a stored hash.
[[nodiscard]] std::string mark_of_password(const std::string& password_hash);

// Whether the user still has the password of the sign-in.
[[nodiscard]] bool has_password(Connection& connection, const SignIn& sign_in);

// Ends all grants, tokens and codes of the user.
void end_oauth_grants_of_user(Connection& connection, const std::string& user_id);

// The hash of the password, if there is one: see `hash_password`.
[[nodiscard]] model::Result<std::optional<std::string>> hash_if_set(
    const std::optional<std::string>& password);

// Whether a text can be an e-mail address: it has no blanks, and an @ within.
[[nodiscard]] bool is_email(std::string_view text);

// Returns the new user's id. `conflict` if the address is taken or its domain is another
// organisation's, `invalid_argument` if it is not an address.
[[nodiscard]] model::Result<std::string> insert_user(Connection& connection, const UserRow& user,
                                                     model::Timestamp now);

}  // namespace conversed::store

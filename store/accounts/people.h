#pragma once

#include <optional>
#include <string>

#include "store/accounts/accounts.h"
#include "store/model/clock.h"
#include "store/model/result.h"
#include "store/sql/sql.h"

// Users, for imports and accounts. For .cc files of store/ only.
namespace conversed::store {

// The user's present rights. `not_found` if there is no such user.
[[nodiscard]] model::Result<Principal> load_principal(Connection& connection,
                                                      const std::string& user_id);

// Whether the user still has the password of the sign-in.
[[nodiscard]] bool has_password(Connection& connection, const SignIn& sign_in);

void end_oauth_grants_of_user(Connection& connection, const std::string& user_id);

// Returns the new user's id. `conflict` if the address is taken or its domain belongs to another
// organisation, `invalid_argument` if it is not an address.
[[nodiscard]] model::Result<std::string> insert_user(
    Connection& connection, const std::string& organisation_id, const Accounts::NewUser& user,
    const std::optional<std::string>& password_hash, model::Timestamp now);

}  // namespace conversed::store

#pragma once

#include <string>
#include <vector>

#include "api/auth/principal.h"
#include "api/openapi/schemas.h"
#include "api/services.h"
#include "store/accounts/accounts.h"
#include "store/model/error.h"
#include "store/model/result.h"

// What the operations on users and their credentials have in common.
namespace conversed::api {

// The user of the e-mail address, or of an empty one the principal: whose password or key is to be
// made. `permission_denied` unless the principal is that user, or manages users and may_manage this
// one. That is said before it is said whether there is such a user (`not_found`).
[[nodiscard]] model::Result<store::User> user_to_manage(store::Store& store,
                                                        const Principal& principal,
                                                        const std::string& email);

// Whether the principal, who may manage users, may manage this one: make a credential for the user,
// take one away, change the roles, or remove the user. A userAdmin gives every role of the
// organisation, so only platformAdmins have more rights than that; whoever holds a credential of
// one is one, and an installation without any can get none. `permission_denied` otherwise.
[[nodiscard]] model::Result<void> may_manage(const Principal& principal, const store::User& user);

// Whether these are roles of a project, or else of the organisation, that the principal may give.
// `invalid_argument` for an unknown role, `permission_denied` for platformAdmin from a principal
// without that role.
[[nodiscard]] model::Result<void> check_roles(const std::vector<std::string>& names,
                                              bool in_project, const Principal& principal);

// A password that is to be set.
[[nodiscard]] openapi::Schema new_password_schema();

}  // namespace conversed::api

// PUT /management/users/{userId}/roles and DELETE /management/users/{userId}: what a user may in
// the organisation, and the end of an account. Both take the role userAdmin.
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/lists.h"
#include "api/operations/management.h"
#include "api/operations/objects.h"
#include "api/operations/operations.h"
#include "api/operations/users.h"
#include "api/replies.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;

// The user of the path, if the principal may manage it.
Result<store::User> managed_user(const Call& call, AccountServices& services) {
  const Principal& principal = *call.principal;
  auto id = id_of(call, "userId");
  if (!id) return model::fail(id.error());
  auto user = services.store.accounts().user(principal.organisation_id, *id);
  if (!user) return model::fail(store_error(user.error()));
  if (auto may = may_manage(principal, *user); !may) return model::fail(may.error());
  return user;
}

Result<Response> set_roles(const Call& call, AccountServices& services) {
  auto user = managed_user(call, services);
  if (!user) return model::fail(user.error());
  auto body = read_object(call.request);
  if (!body) return model::fail(body.error());
  // Without the member every role would be lost by mistake.
  if (!body->contains("roles")) return model::fail(Errc::invalid_argument, "roles is required");
  auto roles = read_roles(*body, false, *call.principal);
  if (!roles) return model::fail(roles.error());
  auto changed = services.store.accounts().set_roles(user->organisation_id, user->id, *roles);
  if (!changed) return model::fail(store_error(changed.error()));
  return ok({{"_id", user->id}, {"email", user->email}, {"roles", *roles}});
}

Result<Response> remove_user(const Call& call, AccountServices& services) {
  auto user = managed_user(call, services);
  if (!user) return model::fail(user.error());
  auto removed = services.store.accounts().remove_user(user->organisation_id, user->id);
  if (!removed) return model::fail(store_error(removed.error()));
  return no_content();
}

openapi::Description describe_set_roles() {
  using namespace openapi;
  const auto roles = list_of(one_of(names_of_roles()));
  const auto body = object({{"roles", described("All that the user is to have.", roles)}});
  const auto user = object({{"_id", id()}, {"email", text(1)}, {"roles", roles}});
  return {.summary = "Set the roles of a user in the organisation",
          .details =
              "A 409 if nobody else could administer the platform. The API keys and tokens of a "
              "user who becomes a platformAdmin end.",
          .parameters = {path_parameter("userId", "The user.", id())},
          .body = json_content(named("UserRoles", body)),
          .answers = {{.description = "The user.",
                       .content = json_content(named("UserWithRoles", user))}},
          .errors = {404, 409}};
}

openapi::Description describe_remove_user() {
  using namespace openapi;
  return {.summary = "Remove a user",
          .details =
              "The user's API keys, tokens, sign-ins and memberships end. A 409 if nobody else "
              "could administer the platform.",
          .parameters = {path_parameter("userId", "The user.", id())},
          .answers = {{.status = status::no_content, .description = "The user is gone."}},
          .errors = {404, 409}};
}

}  // namespace

constinit const Operation set_user_roles_operation =
    for_operators("setUserRoles", Method::put, "/management/users/{userId}/roles", Role::user_admin,
                  set_roles, describe_set_roles);

constinit const Operation remove_user_operation =
    for_operators("removeUser", Method::delete_, "/management/users/{userId}", Role::user_admin,
                  remove_user, describe_remove_user);

}  // namespace conversed::api

// POST /v2.0/users/deprecatepassword: a user's password opens nothing any more, and the OAuth
// tokens that it has led to end. An unknown, foreign or malformed id is 400, which is the one error
// that the API documents here, and so is the password of the only platformAdmin.
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/lists.h"
#include "api/operations/documents.h"
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

Result<Response> deprecate_password(const Call& call, AccountServices& services) {
  auto body = read_object(call.request);
  if (!body) return model::fail(body.error());
  auto text = text_member(*body, "userId");
  if (!text) return model::fail(text.error());
  auto id = checked_id("userId", *text);
  if (!id) return model::fail(id.error());
  const Principal& principal = *call.principal;
  auto& accounts = services.store.accounts();
  const auto missing = [] { return model::fail(Errc::invalid_argument, "there is no such user"); };
  auto user = accounts.user(principal.organisation_id, *id);
  if (!user && user.error().code == Errc::not_found) return missing();
  if (!user) return model::fail(store_error(user.error()));
  if (!principal.has(Role::user_admin)) {
    return model::fail(Errc::permission_denied, "the role userAdmin is needed");
  }
  if (auto may = may_manage(principal, *user); !may) return model::fail(may.error());
  auto done = accounts.deprecate_password(principal.organisation_id, *id);
  if (!done && done.error().code == Errc::not_found) return missing();
  if (!done && done.error().code == Errc::conflict) {
    return model::fail(Errc::invalid_argument, done.error().message);
  }
  if (!done) return model::fail(store_error(done.error()));
  return document_response(
      call.request, call.exchange.instance, status::ok,
      {.name = "confirmation", .value = {{"deprecated", true}}, .list = std::nullopt});
}

openapi::Description describe_deprecate_password() {
  using namespace openapi;
  const auto done = object({{"deprecated", constant(true)}});
  return {.summary = "Deprecate the password of a user",
          .details =
              "It opens nothing any more, and the tokens that it led to end. An unknown user is a "
              "400, and so is the only one who can administer the platform.",
          .body = json_content(named("PasswordOwner", object({{"userId", id()}}))),
          .answers = {{.description = "It is deprecated.",
                       .content = representations("confirmation", named("Confirmation", done))}}};
}

}  // namespace

constinit const Operation deprecate_password_operation =
    for_clients("deprecatePassword_2_0", Method::post, "/v2.0/users/deprecatepassword",
                Role::user_admin, deprecate_password, describe_deprecate_password);

}  // namespace conversed::api

// POST /auth/oauth2/revoke: ends a token (RFC 7009), a refresh token with all that came of its
// sign-in. What the client does not have is answered in the same way: it is as good as ended.
#include <memory>
#include <utility>

#include "api/openapi/description.h"
#include "api/operations/oauth.h"
#include "api/operations/operations.h"
#include "store/store.h"

namespace conversed::api {
namespace {

void revoke_token(Call call, AccountServices& services, Reply reply) {
  auto form = Form::of_body(call.request);
  if (!form) return send_oauth_error(reply, services, form.error());
  auto client = authenticate_client(call.request, *form, services);
  if (!client) return send_oauth_error(reply, services, client.error());
  auto token = form->require("token");
  if (!token) return send_oauth_error(reply, services, token.error());
  const auto answer = std::make_shared<Reply>(std::move(reply));
  post_write(services, answer,
             [&services, answer, id = std::move(client->id), token = std::move(*token)] {
               auto revoked = services.store.oauth().revoke(id, token);
               if (!revoked) {
                 return send_oauth_error(*answer, services, oauth_error(revoked.error(), {}));
               }
               answer->send({.status = status::ok, .headers = {{"Cache-Control", "no-store"}}});
             });
}

openapi::Description describe_oauth_revoke() {
  using namespace openapi;
  const auto optional = [](std::string_view words) { return described(words, form_text()); };
  const auto form = object(
      {{"token", described("An access or a refresh token.", form_text(1))},
       {"token_type_hint", optional("Ignored: tokens say what they are."), Need::optional},
       {"client_id", optional("Unless HTTP Basic says it."), Need::optional},
       {"client_secret", optional("Of a confidential client; or in HTTP Basic."), Need::optional}});
  return {.summary = "Revoke a token",
          .details = "A refresh token with all that came of its sign-in (RFC 7009).",
          .body = form_content(form),
          .answers = {{.description = "It has ended, or was none of the client's."}},
          .errors = {401}};
}

}  // namespace

constinit const Operation oauth_revoke_operation{.id = "oauthRevoke",
                                                 .method = Method::post,
                                                 .path = "/auth/oauth2/revoke",
                                                 .credential = Credential::open,
                                                 .error_shape = ErrorShape::oauth,
                                                 .run = revoke_token,
                                                 .describe = describe_oauth_revoke};

}  // namespace conversed::api

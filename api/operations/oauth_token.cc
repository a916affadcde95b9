// POST /auth/oauth2/token: issues tokens for a password, an authorization code or a refresh token.
// POST /auth/oauth2/revoke: ends a token (RFC 7009). A refresh token ends with its whole grant. A
// token that does not belong to the client gets the same answer.
//
// GET /.well-known/oauth-authorization-server: the metadata for clients of OAuth 2.0 (RFC 8414).
// With the base path before or after it, the issuer is the one of that path.
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "api/auth/oauth_parameters.h"
#include "api/openapi/description.h"
#include "api/openapi/shape.h"
#include "api/operations/oauth.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "api/services.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Result;
using namespace openapi;

// A request of a known client on its way through the pools.
struct Exchange {
  AccountServices& services;
  Form form;
  store::OauthClient client;
  std::string address;
  const Operation& operation;
  std::shared_ptr<Reply> reply;

  [[nodiscard]] store::Oauth& oauth() const { return services.store.oauth(); }
  void refuse(const OauthError& error) { send_oauth_error(*reply, services, error); }
  [[nodiscard]] store::TokenLifetimes lifetimes() const {
    const auto& settings = services.options.oauth;
    return {settings.access_token_lifetime, settings.refresh_token_lifetime};
  }
  // `wrong` is the client's error message for a refused grant.
  void answer(const Result<store::IssuedTokens>& tokens, const char* wrong);
};
using ExchangePtr = std::shared_ptr<Exchange>;

void Exchange::answer(const Result<store::IssuedTokens>& tokens, const char* wrong) {
  if (!tokens) return refuse(oauth_error(tokens.error(), {400, "invalid_grant", wrong}));
  const auto lifetime = std::chrono::duration_cast<std::chrono::seconds>(lifetimes().access);
  reply->send(json_response(status::ok,
                            {{"access_token", tokens->access},
                             {"token_type", "Bearer"},
                             {"expires_in", lifetime.count()},
                             {"refresh_token", tokens->refresh}},
                            {{"Cache-Control", "no-store"}, {"Pragma", "no-cache"}}));
}

void by_password(const ExchangePtr& exchange) {
  if (!exchange->client.password_grant) {
    return exchange->refuse(
        {400, "unauthorized_client", "the client is not allowed to use the password grant"});
  }
  auto username = exchange->form.require("username");
  if (!username) return exchange->refuse(username.error());
  auto password = exchange->form.require("password");
  if (!password) return exchange->refuse(password.error());
  sign_in(
      {exchange->services, exchange->operation, exchange->reply, exchange->client.organisation_id,
       *std::move(username), *std::move(password), exchange->address},
      [exchange](const Result<store::SignIn>& signed_in) {
        const auto tokens = signed_in.and_then([&](const store::SignIn& by) {
          return exchange->oauth().grant(exchange->client.id, by, exchange->lifetimes());
        });
        exchange->answer(tokens, "the e-mail address or the password is wrong");
      });
}

void by_code(const ExchangePtr& exchange) {
  auto code = exchange->form.require("code");
  if (!code) return exchange->refuse(code.error());
  store::CodeExchange wanted{.client_id = exchange->client.id,
                             .code = std::move(*code),
                             .redirect_uri = exchange->form.get("redirect_uri")};
  if (const auto verifier = exchange->form.find("code_verifier")) {
    // No stored code has the empty challenge of a malformed verifier.
    wanted.challenge = pkce_challenge(*verifier).value_or("");
  }
  post_write(exchange->services, exchange->reply, [exchange, wanted = std::move(wanted)] {
    exchange->answer(exchange->oauth().exchange_code(wanted, exchange->lifetimes()),
                     "the code is not good: unknown, expired, used, or not this client's, "
                     "redirect_uri's or code_verifier's");
  });
}

void by_refresh_token(const ExchangePtr& exchange) {
  auto token = exchange->form.require("refresh_token");
  if (!token) return exchange->refuse(token.error());
  post_write(exchange->services, exchange->reply, [exchange, token = std::move(*token)] {
    exchange->answer(exchange->oauth().refresh(exchange->client.id, token, exchange->lifetimes()),
                     "the refresh token is not good: unknown, expired, used, or not this client's");
  });
}

using Grant = void (*)(const ExchangePtr&);

OauthResult<Grant> grant_of(const Form& form) {
  const auto type = form.require("grant_type");
  if (!type) return tl::unexpected(type.error());
  if (*type == "password") return by_password;
  if (*type == "authorization_code") return by_code;
  if (*type == "refresh_token") return by_refresh_token;
  return oauth_fail("unsupported_grant_type",
                    "grant_type is one of password, authorization_code and refresh_token");
}

void token(Call call, AccountServices& services, Reply reply) {
  auto form = Form::of_body(call.request);
  if (!form) return send_oauth_error(reply, services, form.error());
  const auto grant = grant_of(*form);
  if (!grant) return send_oauth_error(reply, services, grant.error());
  auto client = authenticate_client(call.request, *form, services);
  if (!client) return send_oauth_error(reply, services, client.error());
  (*grant)(std::make_shared<Exchange>(Exchange{services, std::move(*form), std::move(*client),
                                               std::move(call.request.peer), call.operation,
                                               std::make_shared<Reply>(std::move(reply))}));
}

Description describe_oauth_token() {
  const auto optional = [](std::string_view words) { return described(words, form_text()); };
  Schema form = object(
      {{"grant_type", one_of({"password", "authorization_code", "refresh_token"})},
       {"client_id", optional("Required without HTTP Basic."), Need::optional},
       {"client_secret", optional("For a confidential client without HTTP Basic."), Need::optional},
       {"username", optional("The user's e-mail address, for `password`."), Need::optional},
       {"password", optional("The user's, for `password`."), Need::optional},
       {"code", optional("For `authorization_code`."), Need::optional},
       {"redirect_uri", optional("For `authorization_code`, as sent before."), Need::optional},
       {"code_verifier", optional("For `authorization_code`, with PKCE."), Need::optional},
       {"refresh_token", optional("For `refresh_token`."), Need::optional},
       {"scope", optional("Ignored: there are none."), Need::optional}});
  const Schema credentials = object({{"username", form_text(1)}, {"password", form_text(1)}});
  form = with_condition(
      std::move(form), object({{"grant_type", constant("password")}}), credentials,
      with_condition(anything(), object({{"grant_type", constant("authorization_code")}}),
                     has_text("code"), has_text("refresh_token")));
  const auto tokens = object({{"access_token", text(1)},
                              {"token_type", constant("Bearer")},
                              {"expires_in", described("In seconds.", integer(1))},
                              {"refresh_token", text(1)}});
  return {.summary = "Get tokens",
          .details =
              "For a password, an authorization code or a refresh token, which is used up. "
              "Empty and unknown parameters are ignored.",
          .body = form_content(form),
          .answers = {{.description = "The tokens.",
                       .content = json_content(named("Tokens", tokens)),
                       .headers = {{"Cache-Control", "`no-store`.", constant("no-store")}}}},
          .errors = {401}};
}

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

Description describe_oauth_revoke() {
  const auto optional = [](std::string_view words) { return described(words, form_text()); };
  const auto form =
      object({{"token", described("An access or a refresh token.", form_text(1))},
              {"token_type_hint", optional("Ignored: the service recognizes the kind of a token."),
               Need::optional},
              {"client_id", optional("Required without HTTP Basic."), Need::optional},
              {"client_secret", optional("For a confidential client without HTTP Basic."),
               Need::optional}});
  return {.summary = "Revoke a token",
          .details = "A refresh token ends with all tokens of its sign-in (RFC 7009).",
          .body = form_content(form),
          .answers = {{.description = "The token has ended, or did not belong to the client."}},
          .errors = {401}};
}

// The issuer's metadata at this address (RFC 8414).
const Shape<std::string>& metadata_shape() {
  using Metadata = Shape<std::string>;
  const auto url = [](std::string_view name, const char* route) {
    const auto get = [route](const std::string& issuer) { return issuer + route; };
    return Metadata::Member(name, text_like("^https?://"), get);
  };
  const auto list = [](std::string_view name, const std::vector<std::string_view>& values) {
    const auto get = [values](const std::string& /*issuer*/) { return values; };
    return Metadata::Member(name, list_of(one_of(values)), get);
  };
  const std::vector<std::string_view> client_authentication{"client_secret_basic",
                                                            "client_secret_post", "none"};
  static const Metadata shape(
      "AuthorizationServer",
      {url("issuer", ""),
       url("authorization_endpoint", "/auth/oauth2/authorize"),
       url("token_endpoint", "/auth/oauth2/token"),
       url("revocation_endpoint", "/auth/oauth2/revoke"),
       list("response_types_supported", {"code"}),
       list("response_modes_supported", {"query"}),
       list("grant_types_supported", {"authorization_code", "password", "refresh_token"}),
       list("token_endpoint_auth_methods_supported", client_authentication),
       list("revocation_endpoint_auth_methods_supported", client_authentication),
       list("code_challenge_methods_supported", {"S256"}),
       {"authorization_response_iss_parameter_supported", constant(true),
        [](const std::string& /*issuer*/) { return true; }}});
  return shape;
}

Result<Response> show(const Call& call, DaemonServices& services) {
  const auto& options = services.options;
  const auto issuer = issuer_of(call.request, options.oauth.issuer, options.api.base_path);
  // The answer contains the address that the client has used, so shared caches must not keep it.
  return json_response(status::ok, metadata_shape()(issuer), {{"Cache-Control", "no-store"}});
}

Description describe_metadata() {
  return {.summary = "Get the authorization server's metadata",
          .details =
              "As of RFC 8414. The issuer is the setting `oauth.issuer`, or else the address that "
              "the client has used.",
          .answers = {{.description = "The metadata.",
                       .content = json_content(metadata_shape().schema()),
                       .headers = {{"Cache-Control", "`no-store`.", constant("no-store")}}}}};
}

}  // namespace

Operations oauth_token_operations() {
  static constexpr Operation rows[] = {
      for_oauth("oauthToken", Method::post, "/auth/oauth2/token", token, describe_oauth_token),
      for_oauth("oauthRevoke", Method::post, "/auth/oauth2/revoke", revoke_token,
                describe_oauth_revoke),
      for_all("oauthMetadata", Method::get, metadata_path, show, describe_metadata),
  };
  return rows;
}

}  // namespace conversed::api

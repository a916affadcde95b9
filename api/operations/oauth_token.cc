// POST /auth/oauth2/token: tokens for a password, an authorization code or a refresh token.
// POST /auth/oauth2/revoke: ends a token (RFC 7009), a refresh token with all that came of its
// sign-in. What the client does not have is answered in the same way: it is as good as ended.
// GET /.well-known/oauth-authorization-server: what clients have to know to use OAuth 2.0 here
// (RFC 8414). Below the base path, and with the base path behind it, it is of the issuer there.
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "api/audit_trail.h"
#include "api/auth/authenticator.h"
#include "api/auth/issuer.h"
#include "api/auth/pkce.h"
#include "api/openapi/description.h"
#include "api/operations/oauth.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "api/services.h"
#include "store/store.h"

namespace conversed::api {

namespace {

using model::Result;

// A request whose client is known, on its way through the pools.
struct Exchange {
  AccountServices& services;
  Form form;
  store::OauthClient client;
  std::string address;
  const Operation& operation;
  std::shared_ptr<Reply> reply;

  void refuse(const OauthError& error) { send_oauth_error(*reply, services, error); }
  [[nodiscard]] store::TokenLifetimes lifetimes() const {
    const auto& settings = services.options.oauth;
    return {settings.access_token_lifetime, settings.refresh_token_lifetime};
  }
  void answer(const Result<store::IssuedTokens>& tokens, const OauthError& refused);
};
using ExchangePtr = std::shared_ptr<Exchange>;

void Exchange::answer(const Result<store::IssuedTokens>& tokens, const OauthError& refused) {
  if (!tokens) return refuse(oauth_error(tokens.error(), refused));
  const auto lifetime = std::chrono::duration_cast<std::chrono::seconds>(
      services.options.oauth.access_token_lifetime);
  send_json(*reply, status::ok,
            {{"access_token", tokens->access},
             {"token_type", "Bearer"},
             {"expires_in", lifetime.count()},
             {"refresh_token", tokens->refresh}},
            {{"Cache-Control", "no-store"}, {"Pragma", "no-cache"}});
}

// On the sign-in pool. One answer for a wrong password and for a user of another organisation.
void check_password(const ExchangePtr& exchange, const std::string& username,
                    const std::string& password) {
  AccountServices& services = exchange->services;
  static const OauthError refused{400, "invalid_grant",
                                  "the e-mail address or the password is wrong"};
  auto user = services.authenticator.password(username, password, exchange->address,
                                              services.options.steady_now());
  services.audit.sign_in(
      {username, exchange->address, exchange->operation, exchange->reply->context().trace_id},
      user ? model::Result<const Principal*>(user->principal.get()) : model::fail(user.error()));
  if (!user) return exchange->refuse(oauth_error(user.error(), refused));
  if (user->principal->organisation_id != exchange->client.organisation_id) {
    return exchange->refuse(refused);
  }
  post_write(services, exchange->reply, [exchange, sign_in = std::move(user->sign_in)] {
    exchange->answer(
        exchange->services.store.oauth().grant(exchange->client.id, sign_in, exchange->lifetimes()),
        refused);
  });
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
  sign_in_or_refuse(exchange->services, exchange->reply, *username, exchange->address,
                    [exchange, username = *username, password = std::move(*password)] {
                      check_password(exchange, username, password);
                    });
}

void by_code(const ExchangePtr& exchange) {
  static const OauthError refused{400, "invalid_grant",
                                  "the code is not good: unknown, expired, used, or not this "
                                  "client's, redirect_uri's or code_verifier's"};
  auto code = exchange->form.require("code");
  if (!code) return exchange->refuse(code.error());
  store::CodeExchange wanted{.client_id = exchange->client.id,
                             .code = std::move(*code),
                             .redirect_uri = exchange->form.get("redirect_uri")};
  if (const auto verifier = exchange->form.find("code_verifier")) {
    // What is no verifier has a challenge that no code has.
    wanted.challenge = pkce_challenge(*verifier).value_or("");
  }
  post_write(exchange->services, exchange->reply, [exchange, wanted = std::move(wanted)] {
    exchange->answer(exchange->services.store.oauth().exchange_code(wanted, exchange->lifetimes()),
                     refused);
  });
}

void by_refresh_token(const ExchangePtr& exchange) {
  static const OauthError refused{400, "invalid_grant",
                                  "the refresh token is not good: unknown, expired, used, or not "
                                  "this client's"};
  auto token = exchange->form.require("refresh_token");
  if (!token) return exchange->refuse(token.error());
  post_write(exchange->services, exchange->reply, [exchange, token = std::move(*token)] {
    exchange->answer(
        exchange->services.store.oauth().refresh(exchange->client.id, token, exchange->lifetimes()),
        refused);
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

openapi::Description describe_oauth_token() {
  using namespace openapi;
  const auto optional = [](std::string_view words) { return described(words, form_text()); };
  Schema form = object(
      {{"grant_type", one_of({"password", "authorization_code", "refresh_token"})},
       {"client_id", optional("Unless HTTP Basic says it."), Need::optional},
       {"client_secret", optional("Of a confidential client; or in HTTP Basic."), Need::optional},
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

using nlohmann::json;

constexpr std::array<std::string_view, 3> grant_types{"authorization_code", "password",
                                                      "refresh_token"};
constexpr std::array<std::string_view, 3> client_authentication{"client_secret_basic",
                                                                "client_secret_post", "none"};

Result<Response> show(const Call& call, DaemonServices& services) {
  const auto& options = services.options;
  const auto issuer = issuer_of(call.request, options.oauth.issuer, options.api.base_path);
  const std::string routes = issuer + "/auth/oauth2/";
  // It names the address that the client has used: not for a cache that others share.
  return json_response(status::ok,
                       {{"issuer", issuer},
                        {"authorization_endpoint", routes + "authorize"},
                        {"token_endpoint", routes + "token"},
                        {"revocation_endpoint", routes + "revoke"},
                        {"response_types_supported", json::array({"code"})},
                        {"response_modes_supported", json::array({"query"})},
                        {"grant_types_supported", grant_types},
                        {"token_endpoint_auth_methods_supported", client_authentication},
                        {"revocation_endpoint_auth_methods_supported", client_authentication},
                        {"code_challenge_methods_supported", json::array({"S256"})},
                        {"authorization_response_iss_parameter_supported", true}},
                       {{"Cache-Control", "no-store"}});
}

openapi::Description describe_metadata() {
  using namespace openapi;
  const auto url = text_like("^https?://");
  const auto metadata = object(
      {{"issuer", described("As `iss` of the authorization answers (RFC 9207).", url)},
       {"authorization_endpoint", url},
       {"token_endpoint", url},
       {"revocation_endpoint", url},
       {"response_types_supported", list_of(constant("code"))},
       {"response_modes_supported", list_of(constant("query"))},
       {"grant_types_supported", list_of(one_of(grant_types))},
       {"token_endpoint_auth_methods_supported", list_of(one_of(client_authentication))},
       {"revocation_endpoint_auth_methods_supported", list_of(one_of(client_authentication))},
       {"code_challenge_methods_supported", list_of(constant("S256"))},
       {"authorization_response_iss_parameter_supported", constant(true)}});
  return {.summary = "Get the authorization server's metadata",
          .details =
              "As of RFC 8414. The issuer is the setting `oauth.issuer`, or else the address that "
              "the client has used.",
          .answers = {{.description = "The metadata.",
                       .content = json_content(named("AuthorizationServer", metadata)),
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

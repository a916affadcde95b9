// GET and POST /auth/oauth2/authorize: the sign-in page of the authorization code grant. The form
// contains its request, sealed, so a sign-in is valid only for the request of its page, and every
// daemon of the installation can take the form.
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/auth/credentials.h"
#include "api/auth/oauth_parameters.h"
#include "api/auth/sign_in_page.h"
#include "api/openapi/description.h"
#include "api/operations/oauth.h"
#include "api/operations/operations.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using nlohmann::json;
using std::chrono::milliseconds;
using namespace openapi;

constexpr milliseconds code_lifetime = std::chrono::seconds(60);
constexpr milliseconds page_lifetime = std::chrono::minutes(10);
constexpr int see_other = 303;  // the browser must not send the password again

// The checked request of a client.
struct AuthorizeRequest {
  std::string client_id;
  std::string redirect_uri;
  bool redirect_uri_sent = false;
  std::string state;
  std::string challenge;       // "" if none
  model::Timestamp made_at{};  // when the page with the form was made
};

void redirect(Reply& reply, std::string location) {
  reply.send({.status = see_other,
              .headers = {{"Location", std::move(location)},
                          {"Cache-Control", "no-store"},
                          {"Referrer-Policy", "no-referrer"}}});
}

std::string issuer_of(const Request& request, const AccountServices& services) {
  return issuer_of(request, services.options.oauth.issuer, services.options.api.base_path);
}

void redirect_error(Reply& reply, const AuthorizeRequest& request, const OauthError& error,
                    const std::string& issuer) {
  redirect(reply, with_query(request.redirect_uri, {{"error", error.code},
                                                    {"error_description", error.description},
                                                    {"state", request.state},
                                                    {"iss", issuer}}));
}

std::string sealed(const AuthorizeRequest& request, const AccountServices& services) {
  return services.store.oauth().seal(json{{"clientId", request.client_id},
                                          {"redirectUri", request.redirect_uri},
                                          {"redirectUriSent", request.redirect_uri_sent},
                                          {"state", request.state},
                                          {"challenge", request.challenge},
                                          {"madeAt", model::to_unix_ms(services.store.timer_now())}}
                                         .dump());
}

OauthResult<AuthorizeRequest> open_sealed(const std::string& text,
                                          const AccountServices& services) {
  const auto opened = services.store.oauth().open_sealed(text);
  const auto fields = json::parse(opened.value_or(""), nullptr, false);
  if (!fields.is_object()) {
    return oauth_fail("invalid_request", "the form is not one that this service made");
  }
  return AuthorizeRequest{.client_id = fields.value("clientId", ""),
                          .redirect_uri = fields.value("redirectUri", ""),
                          .redirect_uri_sent = fields.value("redirectUriSent", false),
                          .state = fields.value("state", ""),
                          .challenge = fields.value("challenge", ""),
                          .made_at = model::from_unix_ms(fields.value("madeAt", std::int64_t{0}))};
}

// The address that gets the answer. An error here is shown on a page. A redirect to an unregistered
// address would help the maker of a forged link.
OauthResult<std::string> redirect_uri_of(const Form& form, const store::OauthClient& client) {
  const auto given = form.find("redirect_uri");
  if (!given) {
    if (client.redirect_uris.size() == 1) return client.redirect_uris.front();
    return oauth_fail("invalid_request", "the parameter redirect_uri is missing");
  }
  for (const std::string& registered : client.redirect_uris) {
    if (same_redirect_uri(registered, *given)) return *given;
  }
  return oauth_fail("invalid_request", "redirect_uri is not registered for this client");
}

// Checks the rest of a request whose client and redirect URI are valid.
OauthResult<void> check_request(const Form& form, const store::OauthClient& client) {
  const auto type = form.require("response_type");
  if (!type) return tl::unexpected(type.error());
  if (*type != "code") {
    return oauth_fail("unsupported_response_type", "response_type has to be code");
  }
  if (const auto mode = form.find("response_mode"); mode && *mode != "query") {
    return oauth_fail("invalid_request", "response_mode has to be query");
  }
  const auto challenge = form.find("code_challenge");
  if (!challenge) {
    if (!client.is_public && !form.find("code_challenge_method")) return {};
    return oauth_fail("invalid_request",
                      "code_challenge is missing; PKCE is required of public clients");
  }
  if (form.get("code_challenge_method") != "S256") {
    return oauth_fail("invalid_request", "code_challenge_method has to be S256");
  }
  if (!is_pkce_challenge(*challenge)) {
    return oauth_fail("invalid_request", "code_challenge has to be 43 characters of base64url");
  }
  return {};
}

OauthResult<store::OauthClient> find_client(const std::string& id,
                                            const AccountServices& services) {
  auto client = services.store.oauth().client(id);
  if (client) return std::move(*client);
  return tl::unexpected(
      oauth_error(client.error(), {400, "invalid_request", "there is no such client"}));
}

void show_page(Reply& reply, const AccountServices& services, const AuthorizeRequest& request,
               const store::OauthClient& client, std::string_view username = {},
               std::string_view message = {}) {
  reply.send(sign_in_page({.client_name = client.name,
                           .request = sealed(request, services),
                           .redirect_scheme = scheme_of(request.redirect_uri),
                           .username = username,
                           .message = message}));
}

void authorize(Call call, AccountServices& services, Reply reply) {
  const auto form = Form::of(std::move(call.request.query));
  if (!form) return show_oauth_error(reply, services, call.request, form.error());
  const auto client_id = form->require("client_id");
  if (!client_id) return show_oauth_error(reply, services, call.request, client_id.error());
  const auto client = find_client(*client_id, services);
  if (!client) return show_oauth_error(reply, services, call.request, client.error());
  auto uri = redirect_uri_of(*form, *client);
  if (!uri) return show_oauth_error(reply, services, call.request, uri.error());

  const AuthorizeRequest request{.client_id = *client_id,
                                 .redirect_uri = std::move(*uri),
                                 .redirect_uri_sent = form->find("redirect_uri").has_value(),
                                 .state = form->get("state"),
                                 .challenge = form->get("code_challenge")};
  if (const auto good = check_request(*form, *client); !good) {
    return redirect_error(reply, request, good.error(), issuer_of(call.request, services));
  }
  show_page(reply, services, request, *client);
}

// A submitted form, until its sign-in ends.
struct SentForm {
  AccountServices& services;
  AuthorizeRequest request;
  store::OauthClient client;
  std::string username;
  std::string issuer;
  std::shared_ptr<Reply> reply;

  void ask_again(std::string_view message) {
    show_page(*reply, services, request, client, username, message);
  }
};

model::Result<std::string> create_code(const SentForm& form, const store::SignIn& signed_in) {
  store::CodeRequest wanted{.client_id = form.request.client_id,
                            .sign_in = signed_in,
                            .redirect_uri = form.request.redirect_uri,
                            .redirect_uri_sent = form.request.redirect_uri_sent};
  if (!form.request.challenge.empty()) wanted.challenge = form.request.challenge;
  return form.services.store.oauth().create_code(wanted, code_lifetime);
}

void answer_sign_in(SentForm& form, const model::Result<store::SignIn>& signed_in) {
  const auto code =
      signed_in.and_then([&](const store::SignIn& by) { return create_code(form, by); });
  if (code) {
    return redirect(
        *form.reply,
        with_query(form.request.redirect_uri,
                   {{"code", *code}, {"state", form.request.state}, {"iss", form.issuer}}));
  }
  switch (code.error().code) {
    case Errc::unauthenticated:  // also if the password changed after it was verified
      return form.ask_again("The e-mail address or the password is wrong.");
    case Errc::too_many:
      return form.ask_again("Too many wrong passwords. Try again later.");
    default:
      return send_oauth_error(
          *form.reply, form.services,
          oauth_error(code.error(), {400, "invalid_request",
                                     "the client was removed; sign in with another application"}));
  }
}

void take_form(Call call, AccountServices& services, Reply reply) {
  if (!is_from_own_site(call.request)) {
    return show_oauth_error(reply, services, call.request,
                            {403, "access_denied", "the form was sent from another site"});
  }
  const auto form = Form::of_body(call.request);
  if (!form) return show_oauth_error(reply, services, call.request, form.error());
  const auto text = form->require("request");
  if (!text) return show_oauth_error(reply, services, call.request, text.error());
  auto opened = open_sealed(*text, services);
  if (!opened) return show_oauth_error(reply, services, call.request, opened.error());
  auto client = find_client(opened->client_id, services);
  if (!client) return show_oauth_error(reply, services, call.request, client.error());

  const auto sent = std::make_shared<SentForm>(
      SentForm{services, *std::move(opened), std::move(*client), form->get("username"),
               issuer_of(call.request, services), std::make_shared<Reply>(std::move(reply))});
  std::string password = form->get("password");
  if (services.store.timer_now() - sent->request.made_at > page_lifetime) {
    return sent->ask_again("This page was open for too long. Try again.");
  }
  if (sent->username.empty() || password.empty()) {
    return sent->ask_again("Both the e-mail address and the password are needed.");
  }
  sign_in({services, call.operation, sent->reply, sent->client.organisation_id, sent->username,
           std::move(password), std::move(call.request.peer)},
          [sent](const auto& signed_in) { answer_sign_in(*sent, signed_in); });
}

Schema page_schema() {
  return described("The sign-in page.", text(1));
}

Success redirect_answer(std::string description) {
  return {.status = see_other,
          .description = std::move(description),
          .headers = {{"Location", "The redirect URI.", text(1)}}};
}

Description describe_authorize() {
  const auto parameter = [](const char* name, const char* description, Need need) {
    return query_parameter(name, description, form_text(), need);
  };
  return {
      .summary = "Show the sign-in page",
      .details =
          "The authorization code grant, with PKCE (S256) for public clients. Empty "
          "and unknown parameters are ignored.",
      .parameters = {parameter("response_type", "`code`.", Need::optional),
                     parameter("response_mode", "`query`, the default.", Need::optional),
                     query_parameter("client_id", "The client.", form_text(1), Need::required),
                     parameter("redirect_uri", "A registered one; required if there are several.",
                               Need::optional),
                     parameter("state", "Returned unchanged.", Need::optional),
                     parameter("scope", "Ignored: there are none.", Need::optional),
                     parameter("code_challenge", "43 characters of base64url.", Need::optional),
                     parameter("code_challenge_method", "`S256`.", Need::optional)},
      .answers = {{.description = "The page.", .content = {{"text/html", page_schema()}}},
                  redirect_answer("A redirect to the client with an error, `state` and `iss`.")},
      .has_error_page = true};
}

Description describe_sign_in() {
  const auto form = object({{"request", described("From the page.", form_text(1))},
                            {"username", form_text(), Need::optional},
                            {"password", form_text(), Need::optional}});
  return {
      .summary = "Sign in",
      .details = "The page's form sends it. For browsers.",
      .body = form_content(form),
      .answers = {{.description = "The page again, with the error.",
                   .content = {{"text/html", page_schema()}}},
                  redirect_answer("A redirect to the client with a `code`, `state` and `iss`.")},
      .errors = {403},
      .has_error_page = true};
}

}  // namespace

Operations oauth_authorize_operations() {
  static constexpr Operation rows[] = {
      for_oauth("oauthAuthorize", Method::get, "/auth/oauth2/authorize", authorize,
                describe_authorize),
      for_oauth("oauthSignIn", Method::post, "/auth/oauth2/authorize", take_form, describe_sign_in),
  };
  return rows;
}

}  // namespace conversed::api

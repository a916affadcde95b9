#include "api/operations/oauth.h"

#include <algorithm>
#include <utility>

#include "api/audit_trail.h"
#include "api/auth/authenticator.h"
#include "api/auth/credentials.h"
#include "api/auth/sign_in_page.h"
#include "api/http/error_reply.h"
#include "api/http/http_syntax.h"
#include "api/http/percent.h"
#include "api/live/blocking_pool.h"
#include "api/representation/media_type.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;

const OauthError busy{503, "temporarily_unavailable", "the service is busy; try again later"};

OauthError invalid_client(std::string description) {
  return {401, "invalid_client", std::move(description)};
}

bool is_form(const Request& request) {
  const auto type = request.header("content-type");
  if (!type) return true;
  return equals_ignoring_case(trim(type->substr(0, type->find(';'))),
                              "application/x-www-form-urlencoded");
}

// Decodes the form-encoded text in Basic credentials (RFC 6749 §2.3.1).
std::optional<std::string> form_decoded(const std::string& text) {
  auto decoded = parse_query("=" + text);
  // Only one value without a name: a bare '&' would begin another one.
  if (!decoded || decoded->size() != 1 || !decoded->front().first.empty()) return std::nullopt;
  return std::move(decoded->front().second);
}

struct ClientCredentials {
  std::string id;
  std::optional<std::string> secret;
};

OauthResult<ClientCredentials> client_credentials(const Request& request, const Form& form) {
  const auto header = request.header("authorization");
  auto id = form.find("client_id");
  auto secret = form.find("client_secret");
  if (!header) {
    if (!id)
      return tl::unexpected(
          invalid_client("the client is not named; send client_id or HTTP Basic"));
    return ClientCredentials{std::move(*id), std::move(secret)};
  }
  const auto basic = parse_basic(*header);
  if (!basic) return tl::unexpected(invalid_client("clients authenticate themselves by Basic"));
  auto name = form_decoded(basic->name);
  auto password = form_decoded(basic->password);
  if (!name || !password) return tl::unexpected(invalid_client("the client or secret is wrong"));
  if (secret || (id && *id != *name)) {
    return oauth_fail("invalid_request", "the client authenticates itself in two ways");
  }
  std::optional<std::string> given;
  if (!password->empty()) given = std::move(*password);
  return ClientCredentials{std::move(*name), std::move(given)};
}

Response response_to(const Reply& reply, const AccountServices& services, const OauthError& error) {
  return oauth_error_response(error.status, error.code, error.description, reply.context(),
                              services.clock.now());
}

// Runs on the sign-in pool.
void check_password(const PasswordSignIn& attempt,
                    const std::function<void(const model::Result<store::SignIn>&)>& then) {
  AccountServices& services = attempt.services;
  auto user = services.authenticator.password(attempt.username, attempt.password, attempt.address,
                                              services.options.steady_now());
  services.audit.sign_in(
      {attempt.username, attempt.address, attempt.operation, attempt.reply->context().trace_id},
      user ? model::Result<const Principal*>(user->principal.get()) : model::fail(user.error()));
  if (!user) return then(model::fail(user.error()));
  if (user->principal->organisation_id != attempt.organisation_id) {
    return then(model::fail(Errc::unauthenticated, "a user of another organisation"));
  }
  post_write(services, attempt.reply,
             [then, signed_in = std::move(user->sign_in)] { then(signed_in); });
}

}  // namespace

void send_oauth_error(Reply& reply, const AccountServices& services, const OauthError& error) {
  reply.send(response_to(reply, services, error));
}

void show_oauth_error(Reply& reply, const AccountServices& services, const Request& request,
                      const OauthError& error) {
  auto response = response_to(reply, services, error);
  if (prefers_html(request)) {
    response = error_page(std::move(response), error.description, reply.context().trace_id);
  }
  // One address has two answers, and caches tell them apart by Accept.
  response.headers.emplace_back("Vary", "Accept");
  reply.send(std::move(response));
}

OauthError oauth_error(const model::Error& error, const OauthError& refused) {
  switch (error.code) {
    case Errc::invalid_argument:
    case Errc::unauthenticated:
    case Errc::not_found:
      return refused;
    case Errc::too_many:
      return {429, "temporarily_unavailable", error.message};
    case Errc::unavailable:
    case Errc::timed_out:
      return {503, "temporarily_unavailable", "the store is not available; try again later"};
    default:
      return {500, "server_error", "The request could not be completed."};
  }
}

OauthResult<Form> Form::of(HeaderList parameters) {
  std::erase_if(parameters, [](const auto& parameter) { return parameter.second.empty(); });
  std::sort(parameters.begin(), parameters.end());
  const auto twice =
      std::adjacent_find(parameters.begin(), parameters.end(),
                         [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice != parameters.end()) return oauth_fail("invalid_request", "a parameter is given twice");
  return Form(std::move(parameters));
}

OauthResult<Form> Form::of_body(const Request& request) {
  if (!is_form(request)) {
    return oauth_fail("invalid_request", "the body must be application/x-www-form-urlencoded");
  }
  auto parameters = parse_query(request.body);
  if (!parameters) return oauth_fail("invalid_request", "the body is no form in UTF-8");
  return of(std::move(*parameters));
}

std::optional<std::string> Form::find(std::string_view name) const {
  const auto at = std::ranges::find(parameters_, name, &HeaderList::value_type::first);
  if (at == parameters_.end()) return std::nullopt;
  return at->second;
}

OauthResult<std::string> Form::require(std::string_view name) const {
  auto value = find(name);
  if (!value) {
    return oauth_fail("invalid_request", "the parameter " + std::string(name) + " is missing");
  }
  return std::move(*value);
}

OauthResult<store::OauthClient> authenticate_client(const Request& request, const Form& form,
                                                    const AccountServices& services) {
  auto credentials = client_credentials(request, form);
  if (!credentials) return tl::unexpected(credentials.error());
  auto client = services.store.oauth().authenticate_client(credentials->id, credentials->secret);
  if (!client) {
    return tl::unexpected(
        oauth_error(client.error(), invalid_client("the client or its secret is wrong")));
  }
  return std::move(*client);
}

void sign_in(PasswordSignIn attempt,
             std::function<void(const model::Result<store::SignIn>&)> then) {
  const auto kept = std::make_shared<const PasswordSignIn>(std::move(attempt));
  const bool posted =
      post_sign_in(kept->services.authenticator, kept->services.sign_ins, kept->username,
                   kept->address, [kept, then = std::move(then)] { check_password(*kept, then); });
  if (!posted) send_oauth_error(*kept->reply, kept->services, busy);
}

void post_write(AccountServices& services, const std::shared_ptr<Reply>& reply,
                std::function<void()> work) {
  if (!services.store.committer().healthy()) {
    return send_oauth_error(*reply, services, oauth_error({Errc::unavailable, ""}, {}));
  }
  if (!services.pool.post(std::move(work))) send_oauth_error(*reply, services, busy);
}

}  // namespace conversed::api

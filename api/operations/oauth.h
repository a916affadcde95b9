#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "api/http/http.h"
#include "api/operation.h"
#include "api/services.h"
#include "store/accounts/oauth.h"
#include "store/model/result.h"

// Shared by the routes of OAuth 2.0: forms, the authentication of clients, and RFC 6749's errors.
namespace conversed::api {

// An error of RFC 6749 (§5.2) with its HTTP status. The description is for developers of clients.
struct OauthError {
  int status = 400;
  std::string code;
  std::string description;
};
template <typename T>
using OauthResult = tl::expected<T, OauthError>;

[[nodiscard]] inline tl::unexpected<OauthError> oauth_fail(std::string code,
                                                           std::string description) {
  return tl::unexpected(OauthError{400, std::move(code), std::move(description)});
}

// A row of a route that is open to all and answers with RFC 6749's errors.
constexpr Operation for_oauth(std::string_view id, Method method, std::string_view path,
                              AnyHandler run, Describe describe) {
  Operation row = for_all(id, method, path, run, describe);
  row.error_shape = ErrorShape::oauth;
  return row;
}

void send_oauth_error(Reply& reply, const AccountServices& services, const OauthError& error);

// Answers with the error, as a page if the client prefers HTML.
void show_oauth_error(Reply& reply, const AccountServices& services, const Request& request,
                      const OauthError& error);

// An internal failure as an OauthError, without the store's message. `refused` replaces
// `invalid_argument` and `unauthenticated`.
[[nodiscard]] OauthError oauth_error(const model::Error& error, const OauthError& refused);

// The parameters of a request (RFC 6749 §3.1, §3.2). A parameter without a value counts as absent.
class Form {
 public:
  // `invalid_request` if a parameter is repeated.
  [[nodiscard]] static OauthResult<Form> of(HeaderList parameters);
  // Reads a body in application/x-www-form-urlencoded.
  [[nodiscard]] static OauthResult<Form> of_body(const Request& request);

  [[nodiscard]] std::optional<std::string> find(std::string_view name) const;
  [[nodiscard]] std::string get(std::string_view name) const { return find(name).value_or(""); }
  // `invalid_request` if absent.
  [[nodiscard]] OauthResult<std::string> require(std::string_view name) const;

 private:
  explicit Form(HeaderList parameters) : parameters_(std::move(parameters)) {}
  HeaderList parameters_;
};

// The client that sends the form. A confidential client shows its secret in HTTP Basic or in the
// form, a public client its id (RFC 6749 §2.3). Blocks for a point select.
[[nodiscard]] OauthResult<store::OauthClient> authenticate_client(const Request& request,
                                                                  const Form& form,
                                                                  const AccountServices& services);

// A sign-in by password for a client: by the page's form, or by the password grant.
struct PasswordSignIn {
  AccountServices& services;
  const Operation& operation;
  std::shared_ptr<Reply> reply;
  std::string organisation_id;  // the client's; only its users may sign in
  std::string username;
  std::string password;
  std::string address;  // the browser's or program's
};
// Queues the password among the sign-ins (api/auth/authenticator.h), verifies it, and audits the
// sign-in. Calls `then` on the pool for writes, with the sign-in or the error. A user of another
// organisation is `unauthenticated`, like a wrong password. If a pool has no free place or the
// store fails, it answers 503 by the Reply and does not call `then`.
void sign_in(PasswordSignIn attempt, std::function<void(const model::Result<store::SignIn>&)> then);

// Runs `work`, which owns the Reply, on the pool for writes. Answers 503 by the Reply if no place
// is free, or while the store fails, because a write would wait for it.
void post_write(AccountServices& services, const std::shared_ptr<Reply>& reply,
                std::function<void()> work);

}  // namespace conversed::api

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/auth/principal.h"
#include "api/http/http.h"
#include "store/model/result.h"

namespace conversed::api {

struct MessageServices;
struct SessionServices;
struct ProjectServices;
struct AccountServices;
struct DaemonServices;

namespace openapi {
struct Description;
}

// The kind of credential that an operation requires.
enum class Credential : std::uint8_t {
  open,    // no credential is required
  client,  // an API key, an access token or a contact-center token (auth/credentials.h)
  basic,   // HTTP Basic: exactly the management routes
};

// Which requests of an operation have an entry in the audit trail (audit_trail.h).
enum class Audited : std::uint8_t {
  changes,  // all requests, unless the operation is a GET or open to strangers
  always,
  views,  // reads; a read that repeats a recent one belongs to the same view
  never,
};

// The names of a path pattern with their values, percent-decoded.
struct PathParameters {
  std::vector<std::pair<std::string_view, std::string>> values;

  // Empty for a name that the pattern lacks.
  [[nodiscard]] std::string_view operator[](std::string_view name) const {
    for (const auto& [known, value] : values) {
      if (known == name) return value;
    }
    return {};
  }
};

struct Operation;

// A request on its way through its operation, with the router's findings.
struct Call {
  const Operation& operation;
  Request request;
  PathParameters parameters = {};
  std::shared_ptr<const Principal> principal = {};  // null exactly if the credential is `open`
  ExchangeContext exchange = {};                    // set for a Respond only
};

// An operation has one of two forms. Both take the services of its family (services.h).
//
// A Respond returns the answer, or the error that refuses the request. It runs on the management
// pool, where it may block. A Respond of an `open` operation runs on a thread of the HTTP server.
template <typename Family>
using Respond = model::Result<Response> (*)(const Call& call, Family& services);
// A Run answers exactly once by the Reply, at once or later, from any thread. A Run of a `basic`
// operation runs on the management pool. Any other runs on a thread of the HTTP server, where it
// may block for a point select at most.
template <typename Family>
using Run = void (*)(Call call, Family& services, Reply reply);

template <typename... Families>
using HandlerOf = std::variant<Respond<Families>..., Run<Families>...>;
using AnyHandler =
    HandlerOf<MessageServices, SessionServices, ProjectServices, AccountServices, DaemonServices>;

// One operation of the API: a constant row of the table in operations.cc. Its handler checks that
// the principal has `role` in the project (see Principal::has), because only the handler knows the
// project. For operators' operations with a role of the organisation, `dispatch` has checked it.
struct Operation {
  std::string_view id;  // the operationId of the OpenAPI document
  Method method = Method::get;
  std::string_view path;  // "/inject/{URLToken}"; a segment is literal or one {name}
  Credential credential = Credential::client;
  Role role = Role::none;  // `none` exactly for `open` operations
  // The role that some of its objects need instead. The handler checks which one.
  Role other_role = Role::none;
  ErrorShape error_shape = ErrorShape::problem;
  std::size_t max_body_bytes = 0;  // 0: the setting `api.max_body`
  bool is_inject = false;          // whether metrics count its answers as those of injects
  Audited audited = Audited::changes;
  // It makes a credential, which might outlive a management token: it takes the user's password.
  bool needs_password = false;
  AnyHandler run;
  openapi::Description (*describe)() = nullptr;  // for the OpenAPI document; pure

  [[nodiscard]] bool runs_on_pool() const {
    constexpr std::size_t responds = std::variant_size_v<AnyHandler> / 2;  // they come first
    return credential == Credential::basic ||
           (credential == Credential::client && run.index() < responds);
  }
};

// The usual kinds of rows: for operators, below /management; for clients; and for all.
using Describe = openapi::Description (*)();
constexpr Operation for_operators(std::string_view id, Method method, std::string_view path,
                                  Role role, AnyHandler run, Describe describe,
                                  Audited audited = Audited::changes) {
  return {.id = id,
          .method = method,
          .path = path,
          .credential = Credential::basic,
          .role = role,
          .audited = audited,
          .run = run,
          .describe = describe};
}
constexpr Operation or_with(Role other_role, Operation row) {
  row.other_role = other_role;
  return row;
}
constexpr Operation with_password(Operation row) {
  row.needs_password = true;
  return row;
}
constexpr Operation for_clients(std::string_view id, Method method, std::string_view path,
                                Role role, AnyHandler run, Describe describe) {
  return {.id = id, .method = method, .path = path, .role = role, .run = run, .describe = describe};
}
constexpr Operation for_all(std::string_view id, Method method, std::string_view path,
                            AnyHandler run, Describe describe) {
  return {.id = id,
          .method = method,
          .path = path,
          .credential = Credential::open,
          .run = run,
          .describe = describe};
}

}  // namespace conversed::api

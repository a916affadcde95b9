#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/auth/principal.h"
#include "api/http/http.h"

namespace conversed::api {

struct Services;

namespace openapi {
struct Description;
}

// How a client of an operation shows who it is.
enum class Credential : std::uint8_t {
  open,    // nobody is asked
  client,  // an API key, an access token or a contact-center token (auth/credentials.h)
  basic,   // HTTP Basic: the management routes, and only these
};

// Which requests of an operation have an entry in the audit trail (audit_trail.h).
enum class Audited : std::uint8_t {
  changes,  // all, unless it is a GET or open to strangers
  always,
  never,
};

// The values that a path pattern's {names} matched, percent-decoded.
class PathParameters {
 public:
  void add(std::string name, std::string value) {
    values_.emplace_back(std::move(name), std::move(value));
  }
  // Empty for a name that the pattern does not have.
  [[nodiscard]] std::string_view operator[](std::string_view name) const {
    for (const auto& [known, value] : values_) {
      if (known == name) return value;
    }
    return {};
  }

 private:
  std::vector<std::pair<std::string, std::string>> values_;
};

// A request on its way through its operation, with what the router found out about it.
struct Call {
  Request request;
  PathParameters parameters;
  std::shared_ptr<const Principal> principal;  // null exactly if the credential is `open`
};

// One operation of the API: a constant row of the table in operations.cc. `run` is called on a
// thread of the HTTP server for `open` and `client` operations, where it must not block on more
// than a point select; for `basic` ones on the management pool, where it may. It answers exactly
// once, from any thread, by the Reply. Whether the principal has `role` in the project at hand
// is for `run` to check (see Principal::has): only it knows the project.
struct Operation {
  std::string_view id;  // the operationId of the OpenAPI document
  Method method = Method::get;
  std::string_view path;  // "/inject/{URLToken}"; a segment is literal or one {name}
  Credential credential = Credential::client;
  Role role = Role::none;  // none exactly for `open` ones
  // `reduced` is for 400 and 404 alone, their other errors are problems (see error_shape_of).
  ErrorShape error_shape = ErrorShape::problem;
  std::size_t max_body_bytes = 0;  // 0: the setting `api.max_body`
  bool is_inject = false;          // its answers are measured as those of injects
  Audited audited = Audited::changes;
  void (*run)(Call call, Services& services, Reply reply) = nullptr;
  openapi::Description (*describe)() = nullptr;  // for the OpenAPI document; pure
};

}  // namespace conversed::api

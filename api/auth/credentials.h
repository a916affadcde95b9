#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/http.h"
#include "store/model/result.h"

namespace conversed::api {

enum class CredentialKind : std::uint8_t {
  api_key,         // `X-API-Key`, or the query parameter `api_key`
  contact_center,  // `x-contactcenter-authorization: Bearer <JWT>`
  access_token,    // `Authorization: Bearer <token>`
};

// What a client of the API shows to say who it is. The value belongs to the request.
struct PresentedCredential {
  CredentialKind kind = CredentialKind::api_key;
  std::string_view value;  // may be empty where a header has no token

  bool operator==(const PresentedCredential&) const = default;
};

// The credential of a request, if it has one. `invalid_argument` if it has several that differ:
// which of two users is meant is not for us to guess (RFC 6750 §2). An `Authorization` of another
// scheme than Bearer does not count: browsers send what they know of the management routes.
[[nodiscard]] model::Result<std::optional<PresentedCredential>> presented_credential(
    const Request& request);

// The token of `Bearer <token>` (the scheme in any case, one space or more); nothing when it is
// anything else.
[[nodiscard]] std::optional<std::string_view> bearer_token(std::string_view authorization);

// The two texts of `Basic <base64 of first:second>` (RFC 7617, UTF-8); nothing when it is anything
// else, or the first one is empty.
struct BasicCredentials {
  std::string name;
  std::string password;
};
[[nodiscard]] std::optional<BasicCredentials> parse_basic(std::string_view authorization);

// Whether a request may come from a page of our own. A page of another site could use the
// credentials that the browser remembers; the browser tells the site by `Sec-Fetch-Site`, or by
// `Origin` and `Host`. A client that sends none of them is no browser and may pass.
[[nodiscard]] bool is_from_own_site(const Request& request);

}  // namespace conversed::api

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

// The credential that a client of the API sends. The request owns the value.
struct PresentedCredential {
  CredentialKind kind = CredentialKind::api_key;
  std::string_view value;  // may be empty where a header has no token

  bool operator==(const PresentedCredential&) const = default;
};

// The credential of a request, if it has one. `invalid_argument` if it has several that differ,
// because two users are possible then (RFC 6750 §2). Ignores an `Authorization` of another scheme
// than Bearer: browsers send the Basic credentials of the management routes with every request.
[[nodiscard]] model::Result<std::optional<PresentedCredential>> presented_credential(
    const Request& request);

// The token of `Bearer <token>` (the scheme in any case, one space or more). Otherwise nothing.
[[nodiscard]] std::optional<std::string_view> bearer_token(std::string_view authorization);

// The two texts of `Basic <base64 of first:second>` (RFC 7617, UTF-8). Nothing for any other text,
// or if the first one is empty.
struct BasicCredentials {
  std::string name;
  std::string password;
};
[[nodiscard]] std::optional<BasicCredentials> parse_basic(std::string_view authorization);

// Whether a request may come from a page of this daemon. A page of another site could use the
// credentials that the browser remembers. The browser names the site in `Sec-Fetch-Site`, or in
// `Origin` and `Host`. A client that sends none of these headers is no browser and may pass.
[[nodiscard]] bool is_from_own_site(const Request& request);

}  // namespace conversed::api

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/http/http.h"

// OAuth parameters that have their own syntax: redirect URIs, PKCE, and the issuer.
namespace conversed::api {

// Whether a client may register the URI (RFC 6749 §3.1.2, RFC 8252 §7). It has to be absolute,
// without fragment and user information. Its scheme is https; http on the user's own machine
// (127.0.0.1, [::1], localhost); or the client's own, with a dot in its name.
[[nodiscard]] bool is_redirect_uri(std::string_view uri);

// The same rule as an ECMA-262 expression, for the OpenAPI document.
inline constexpr std::size_t max_redirect_uri_bytes = 2000;
inline constexpr std::string_view redirect_uri_expression =
    R"re(^((https://[A-Za-z0-9\-._~\[\]!$&'()*+,;=%][A-Za-z0-9\-._~:\[\]!$&'()*+,;=%]*|)re"
    R"re(http://(127\.0\.0\.1|\[::1\]|localhost)(:[0-9]*)?))re"
    R"re(([/?][A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=%]*)?|)re"
    R"re([A-Za-z][A-Za-z0-9+\-]*\.[A-Za-z0-9+\-.]*:[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=%]+)$)re";

// Whether the URI is the registered one, byte for byte. For `http://127.0.0.1` and `http://[::1]`
// the port may differ: a program on the user's machine listens on any free port (RFC 8252 §7.3).
[[nodiscard]] bool same_redirect_uri(std::string_view registered, std::string_view uri);

// Adds query parameters to the URI, percent-encoded. Leaves out parameters with an empty value.
[[nodiscard]] std::string with_query(
    std::string_view uri,
    const std::vector<std::pair<std::string_view, std::string_view>>& parameters);

// "https" of "https://client.example/". The URI has to be a registered one.
[[nodiscard]] std::string_view scheme_of(std::string_view uri);

// The S256 challenge of a PKCE verifier (RFC 7636 §4.2). Nothing if the text is not a verifier.
[[nodiscard]] std::optional<std::string> pkce_challenge(std::string_view verifier);

// Whether the text has the form of an S256 challenge: 32 bytes in base64url.
[[nodiscard]] bool is_pkce_challenge(std::string_view challenge);

// The path of the authorization server's metadata. The issuer's path follows it (RFC 8414 §3.1).
inline constexpr std::string_view metadata_path = "/.well-known/oauth-authorization-server";

// `base_path` if the path begins with it, otherwise empty.
[[nodiscard]] std::string_view base_of(std::string_view path, std::string_view base_path);

// The name of the authorization server (RFC 8414 §2): the setting, or the address that the client
// has used, base path included. A proxy that ends TLS sets X-Forwarded-Proto. A client that forges
// this header misleads only itself.
[[nodiscard]] std::string issuer_of(const Request& request, std::string_view configured,
                                    std::string_view base_path);

}  // namespace conversed::api

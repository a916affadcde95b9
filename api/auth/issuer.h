#pragma once

#include <string>
#include <string_view>

#include "api/http/http.h"

namespace conversed::api {

// Where the authorization server's metadata stand, before the path of the issuer (RFC 8414 §3.1).
inline constexpr std::string_view metadata_path = "/.well-known/oauth-authorization-server";

// What a path has of the base path: it, or nothing.
[[nodiscard]] std::string_view base_of(std::string_view path, std::string_view base_path);

// Who the authorization server is (RFC 8414 §2): the setting, or else the address that the client
// has used, base path included. A proxy that speaks TLS says so in X-Forwarded-Proto; whoever
// invents that header misleads itself alone.
[[nodiscard]] std::string issuer_of(const Request& request, std::string_view configured,
                                    std::string_view base_path);

}  // namespace conversed::api

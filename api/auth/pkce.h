#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace conversed::api {

// The S256 challenge of a PKCE verifier (RFC 7636 §4.2); nothing if the text is no verifier.
[[nodiscard]] std::optional<std::string> pkce_challenge(std::string_view verifier);

// Whether the text can be an S256 challenge: 32 bytes in base64url.
[[nodiscard]] bool is_pkce_challenge(std::string_view text);

}  // namespace conversed::api

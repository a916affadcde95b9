#pragma once

#include <string>
#include <string_view>

namespace conversed::model {

// Identifiers of everything that the API names: 24 characters of [a-z0-9].
inline constexpr std::size_t id_length = 24;

// A new random identifier: 124 bits from the kernel's generator. Thread-safe.
[[nodiscard]] std::string new_id();

[[nodiscard]] bool is_id(std::string_view text);

// A new W3C trace id: 32 lower-case hex digits, never all zero (W3C Trace Context §3.2.2.3).
// Thread-safe.
[[nodiscard]] std::string new_trace_id();

// `bytes` random bytes from the kernel as lower-case hex. Thread-safe.
[[nodiscard]] std::string random_hex(std::size_t bytes);

// The public address part of an Endpoint: 64 hex characters.
inline constexpr std::size_t url_token_length = 64;
[[nodiscard]] bool is_url_token(std::string_view text);

}  // namespace conversed::model

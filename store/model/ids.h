#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/model/clock.h"

namespace conversed::model {

// Identifiers of everything that the API names: 24 characters of [a-z0-9].
inline constexpr std::size_t id_length = 24;

// A new identifier: the time in milliseconds, in base 36 and with a fixed width, and 77 random bits
// from the kernel's generator. So rows keyed by ids append to the end of their table. An id is no
// secret. Without a time: of the system's clock. Thread-safe.
[[nodiscard]] std::string new_id();
[[nodiscard]] std::string new_id(Timestamp now);

// The beginning of all ids made at this time: ids made earlier are below it, ids made later above.
// Times before the epoch count as the epoch.
[[nodiscard]] std::string id_prefix(Timestamp time);

[[nodiscard]] bool is_id(std::string_view text);

// An id's first 12 characters as a number in base 36. Numbers of ids are in the order of the ids;
// two ids of one millisecond seldom have the same number. `id` is an id.
[[nodiscard]] std::int64_t id_number(std::string_view id);
// The lowest number of all ids made at this time.
[[nodiscard]] std::int64_t id_number(Timestamp time);

// A new W3C trace id: 32 lower-case hex digits, never all zero (W3C Trace Context §3.2.2.3). Begins
// with 48 bits of the time in milliseconds; the rest is random. Thread-safe.
[[nodiscard]] std::string new_trace_id();

// `bytes` random bytes from the kernel as lower-case hex. Thread-safe.
[[nodiscard]] std::string random_hex(std::size_t bytes);

// The public address part of an Endpoint: 64 hex characters.
inline constexpr std::size_t url_token_length = 64;
[[nodiscard]] bool is_url_token(std::string_view text);

}  // namespace conversed::model

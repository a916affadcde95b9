#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "store/model/result.h"

namespace conversed::model {

// How deep JSON from outside may nest; the outermost value counts as 1.
inline constexpr std::size_t max_json_depth = 64;

// The memory that a parsed value may take, about: `[[],[],...]` takes 24 times its text.
inline constexpr std::size_t max_json_memory = std::size_t{128} << 20;

// Parses JSON from outside. Refuses with `invalid_argument` and the byte: invalid JSON (RFC 8259),
// a NUL byte, invalid UTF-8, lone surrogates, duplicate names in an object, numbers out of a
// double's range, deeper nesting than `max_depth`. Refuses with `too_large` a value that would
// take more than `max_memory` bytes. An integer past 64 bits becomes a double, a number that
// underflows becomes 0.
[[nodiscard]] Result<nlohmann::json> parse_json(std::string_view text,
                                                std::size_t max_depth = max_json_depth,
                                                std::size_t max_memory = max_json_memory);

// The value as JSON on one line. Bytes that are not UTF-8 become U+FFFD.
void append_json(std::string& out, const nlohmann::json& value);
// The text as a JSON string, likewise. A text that needs no escape becomes no value first.
void append_quoted(std::string& out, std::string_view text);
[[nodiscard]] std::string json_text(const nlohmann::json& value);
// For values with ordered members. `indent`: blanks per level; -1: on one line.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

// The approximate bytes of the value as JSON. Counting stops at `enough`. Recurses as deep as the
// value nests.
[[nodiscard]] std::size_t json_size(const nlohmann::json& value, std::size_t enough);

}  // namespace conversed::model

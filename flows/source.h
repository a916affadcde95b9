#pragma once

#include <string>
#include <string_view>

#include "flows/loader.h"
#include "flows/located.h"
#include "flows/problem.h"

// From the text of a file to a Located value. What a text means as a bundle is the loader's affair.
namespace conversed::flows {

// Chooses between the two readers below as load_bundle promises, after the checks that both need:
// size, UTF-8, no control characters but tab and line ends. Thread-safe.
[[nodiscard]] Checked<Located> read_source(std::string_view text, std::string_view file_name,
                                           const LoadLimits& limits);

// One YAML document, core schema. Aliases are expanded, and counted; duplicate names, names that
// are no text, unknown tags and merge keys are refused. Requires valid UTF-8.
[[nodiscard]] Checked<Located> read_yaml(std::string_view text, std::string_view file_name,
                                         const LoadLimits& limits);

// One JSON value (RFC 8259). Duplicate names and numbers out of range are refused.
// Requires valid UTF-8.
[[nodiscard]] Checked<Located> read_json(std::string_view text, std::string_view file_name,
                                         const LoadLimits& limits);

}  // namespace conversed::flows

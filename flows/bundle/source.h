#pragma once

#include <string_view>

#include "flows/bundle/loader.h"
#include "flows/problem.h"
#include "store/yaml/located.h"

// From the text of a file to a Located value.
namespace conversed::flows {

// Chooses between YAML and JSON as load_bundle promises. Size and characters are checked first.
// Thread-safe.
[[nodiscard]] Checked<Located> read_source(std::string_view text, std::string_view file_name,
                                           const LoadLimits& limits);

// One JSON value (RFC 8259). Duplicate names and numbers out of range are refused.
// Requires valid UTF-8.
[[nodiscard]] Checked<Located> read_json(std::string_view text, std::string_view file_name,
                                         const LoadLimits& limits);

}  // namespace conversed::flows

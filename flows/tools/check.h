#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flows/bundle/loader.h"
#include "flows/problem.h"

namespace conversed::flows::tools {

enum class Severity : std::uint8_t {
  error,    // an import refuses the bundle
  warning,  // the Flow runs, but probably not as intended
};

struct Finding {
  Severity severity = Severity::error;
  Problem problem;
};

// `no_scripts`: the daemon runs none, so each `code` Node is a warning.
enum class Scripts : std::uint8_t { run, no_scripts };
// The warnings of a bundle (docs/flows/testing.md lists them), in the file's order. `errors` are
// those of `load_bundle`. Flows with errors have no warnings. Pure.
[[nodiscard]] Problems warnings_of(const Located& bundle, std::string_view file_name,
                                   const Problems& errors = {}, Scripts scripts = Scripts::run);

// The errors of `load_bundle` and the warnings, in the file's order. Variables have no values here,
// so a text with a variable is not checked. Pure.
[[nodiscard]] std::vector<Finding> check_bundle(std::string_view text, std::string_view file_name);

// `shop.yaml:12:7: warning: flows[0]...: ...`
[[nodiscard]] std::string to_string(const Finding& finding);

}  // namespace conversed::flows::tools

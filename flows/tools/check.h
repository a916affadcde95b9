#pragma once

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

// The problems of a bundle, in the file's order: the errors of `load_bundle`, or the warnings of a
// valid bundle (docs/flows/testing.md lists them). Variables have no values here, so a text with a
// variable is not checked. Pure.
[[nodiscard]] std::vector<Finding> check_bundle(std::string_view text, std::string_view file_name);

// `shop.yaml:12:7: warning: flows[0]...: ...`
[[nodiscard]] std::string to_string(const Finding& finding);

}  // namespace conversed::flows::tools

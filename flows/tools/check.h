#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "flows/bundle/loader.h"
#include "flows/problem.h"

namespace conversed::flows::tools {

enum class Severity : std::uint8_t {
  error,    // an import would be refused
  warning,  // it would run, but hardly as meant
};

struct Finding {
  Severity severity = Severity::error;
  Problem problem;
};

// All that can be said of a bundle without running it: everything that `load_bundle` refuses, with
// its hints; and of a bundle that loads: Nodes that nothing leads to, circles without a way out,
// names that are read and never written, slots that nothing fills, values that may change where a
// request goes, Connections, lexicons and Flows that nothing uses. In the
// file's order. Variables have no values here: a text with one is not checked. Pure.
[[nodiscard]] std::vector<Finding> check_bundle(std::string_view text, std::string_view file_name);

// `shop.yaml:12:7: warning: flows[0]...: ...`
[[nodiscard]] std::string to_string(const Finding& finding);

}  // namespace conversed::flows::tools

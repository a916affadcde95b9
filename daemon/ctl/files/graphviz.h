#pragma once

#include <string>

#include "store/model/result.h"

namespace conversed::ctl {

// The picture of a text in Graphviz's language, as SVG. Runs the program `dot`. `unavailable`: it
// is missing or fails.
[[nodiscard]] model::Result<std::string> drawn_by_graphviz(const std::string& dot);

}  // namespace conversed::ctl

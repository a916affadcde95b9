#pragma once

#include <string_view>

namespace conversed::api {

// The web console: one page, with its style and its script in it.
extern const std::string_view console_page;
// The parts of it, byte for byte, that its Content-Security-Policy has to name.
extern const std::string_view console_style;
extern const std::string_view console_script;

}  // namespace conversed::api

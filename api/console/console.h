#pragma once

#include <string_view>

namespace conversed::api {

// The web console: one page that contains its style and its script.
extern const std::string_view console_page;
// The style and the script, byte for byte, for the hashes in the Content-Security-Policy.
extern const std::string_view console_style;
extern const std::string_view console_script;

}  // namespace conversed::api

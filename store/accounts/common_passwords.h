#pragma once

#include <string_view>

namespace conversed::store {

// The lines of common_passwords.txt in lower case, each between two line breaks.
extern const std::string_view common_passwords;

}  // namespace conversed::store

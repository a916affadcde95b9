#pragma once

#include <string_view>

namespace conversed::store {

// The lines of common_passwords.txt, in lower case, each with a line break before and behind it.
extern const std::string_view common_passwords;

}  // namespace conversed::store

#pragma once

namespace conversed::daemon {

// Of the program; project() in CMakeLists.txt has it.
inline constexpr const char* version = CONVERSED_VERSION;

}  // namespace conversed::daemon

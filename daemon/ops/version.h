#pragma once

namespace conversed::daemon {

// The program's version, from project() in CMakeLists.txt.
inline constexpr const char* version = CONVERSED_VERSION;

}  // namespace conversed::daemon

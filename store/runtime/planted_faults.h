#pragma once

#include <cstdlib>
#include <string_view>

namespace conversed::model {

// A fault test has to fail when the daemon has a defect. In builds for tests (CMake option
// CONVERSED_PLANTED_FAULTS), CONVERSED_TEST_PLANT=name plants one of three defects:
// `answer_before_commit`, `position_before_state`, `no_duplicate_check`. In other builds this
// function is constant. The same option lets tests hash passwords cheaply
// (store/accounts/passwords.h).
#ifdef CONVERSED_PLANTED_FAULTS
[[nodiscard]] inline bool planted(std::string_view name) {
  static const char* const chosen = std::getenv("CONVERSED_TEST_PLANT");
  return chosen != nullptr && name == chosen;
}
#else
[[nodiscard]] constexpr bool planted(std::string_view) {
  return false;
}
#endif

}  // namespace conversed::model

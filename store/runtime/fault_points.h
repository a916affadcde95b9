#pragma once

#include <string_view>

namespace conversed::model {

namespace detail {
extern const bool fault_points_armed;
void reach_fault_point(std::string_view name);
}  // namespace detail

// A named place in the code. Tests kill the process there, to see the state that a crash leaves
// behind, or hold a thread there, to see how that is noticed:
//   fault_point("log.before_commit");
// With CONVERSED_TEST_KILL_AT=name[:n] in the environment at start, the n-th time (default 1, the
// first) that any thread reaches the point of this name, the process gets SIGKILL.
// With CONVERSED_TEST_HOLD_AT=name[:n] the thread that reaches it the n-th time stays there; the
// others go on. If CONVERSED_TEST_HOLD_FIFO=path is set, too, it stays until a test has opened the
// FIFO for writing and closed it again. When the FIFO opens, the test knows that the point is
// reached. Without them, the cost is one load and a branch. Thread-safe.
inline void fault_point(std::string_view name) {
  if (detail::fault_points_armed) [[unlikely]] {
    detail::reach_fault_point(name);
  }
}

}  // namespace conversed::model

#pragma once

#include <string_view>

namespace conversed::model {

namespace detail {
extern const bool fault_points_armed;
void reach_fault_point(std::string_view name);
}  // namespace detail

// A named place where tests kill the process, to see what a crash there leaves behind, or hold a
// thread, to see what notices it:
//   fault_point("log.before_commit");
// With CONVERSED_TEST_KILL_AT=name[:n] in the environment at start, the n-th time (default 1, the
// first) that any thread reaches the point of this name, the process gets SIGKILL.
// With CONVERSED_TEST_HOLD_AT=name[:n] the thread that reaches it the n-th time stays there; the
// others go on. With CONVERSED_TEST_HOLD_FIFO=path besides, it stays until a test has opened the
// FIFO for writing, which tells the test that the point is reached, and has closed it again.
// Without them, the cost is one load and a branch. Thread-safe.
inline void fault_point(std::string_view name) {
  if (detail::fault_points_armed) [[unlikely]] {
    detail::reach_fault_point(name);
  }
}

}  // namespace conversed::model

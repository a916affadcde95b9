#pragma once

#include <chrono>
#include <functional>

namespace conversed::ctl {

// Repeats `once`, which prints and returns an exit code, with a pause behind each time. SIGINT ends
// the program with 0. Returns only if `once` fails at first; later failures are printed and the
// watch goes on.
//
// On a terminal each output replaces the one before it. A file or pipe gets all outputs, with
// `between` between them.
int watch(std::chrono::seconds pause, const char* between, const std::function<int()>& once);

}  // namespace conversed::ctl

#pragma once

namespace conversed::daemon {

// Lets this process open as many files as the system allows. The usual soft limit of 1024 is meant
// for programs that use select(2). Here each connection is a file, and each segment of the log.
void raise_limit_of_open_files();

}  // namespace conversed::daemon

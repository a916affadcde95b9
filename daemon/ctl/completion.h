#pragma once

#include <string>
#include <vector>

#include "daemon/ctl/client.h"

namespace CLI {
class App;
}

// Completion in shells. A shell's script (`conversectl completion SHELL`) asks the program for the
// words that may come next, so it knows each command without a list of its own.
namespace conversed::ctl {

// The first argument by which a script asks. The words of the command line follow, up to the one
// that is typed.
inline constexpr const char* complete_argument = "__complete";

// Prints the words that may stand in place of the last word, one a line, and after a tab what a
// command does. `:files` stands for the names of files. Names of objects come from the daemon, if
// it answers soon and no password needs to be typed. Returns the exit code.
int complete(const CLI::App& app, const Options& options, const std::vector<std::string>& words);

}  // namespace conversed::ctl

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "store/model/result.h"

// Prints for commands. Escapes control characters (store/text/terminal.h), since answers contain
// texts of users.
namespace conversed::ctl {

// Print a line to standard output, or to standard error. A line end within it is escaped.
void say(std::string_view line);
void note(std::string_view line);
void say_lines(std::string_view lines);

// Prints the error, of one or several lines, to stderr. Returns the exit code of a failed command.
int failed(const model::Error& error);

// Prints JSON on one line, for programs. Returns the exit code of success.
int say_json(const nlohmann::json& value);

}  // namespace conversed::ctl

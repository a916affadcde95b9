#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "daemon/ctl/commands.h"

namespace conversed::ctl {

// A subcommand that runs `run` with the arguments that the parse has filled. `action` must outlive
// the parse.
template <typename Arguments>
CLI::App* add_subcommand(CLI::App& parent, const char* name, const char* what, Action& action,
                         const std::shared_ptr<Arguments>& arguments,
                         int (*run)(Client&, const Arguments&)) {
  auto* command = parent.add_subcommand(name, what);
  command->callback([arguments, run, &action] {
    action = [arguments, run](Client& client) { return run(client, *arguments); };
  });
  return command;
}

}  // namespace conversed::ctl

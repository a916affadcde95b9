#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "daemon/ctl/commands.h"

namespace conversed::ctl {

// The texts of a command's --help.
struct Help {
  const char* summary;    // one sentence without its period
  const char* arguments;  // of the example
  const char* next = "";  // one sentence: what to do afterwards
};

// Subcommands of one parent, which share their arguments.
template <typename Arguments>
class Subcommands {
 public:
  // Both must outlive the parse.
  Subcommands(CLI::App& parent, Action& action) : parent_(parent), action_(action) {}

  // Adds a subcommand that runs `run` with the arguments that the parse has filled.
  CLI::App& add(const std::string& name, const Help& help,
                int (*run)(Client&, const Arguments&)) const {
    auto* command = parent_.add_subcommand(name, help.summary);
    std::string path = name;
    for (auto* above = &parent_; above != nullptr; above = above->get_parent()) {
      if (!above->get_name().empty()) path = above->get_name() + " " + path;
    }
    std::string footer = "Example: conversectl " + path;
    if (*help.arguments != '\0') footer += std::string(" ") + help.arguments;
    if (*help.next != '\0') footer += std::string("\nNext: ") + help.next;
    command->footer(footer);
    command->callback([arguments = arguments_, run, &action = action_] {
      action = [arguments, run](Client& client) { return run(client, *arguments); };
    });
    return *command;
  }

  [[nodiscard]] Arguments& arguments() const { return *arguments_; }

 private:
  CLI::App& parent_;
  Action& action_;
  const std::shared_ptr<Arguments> arguments_ = std::make_shared<Arguments>();
};

inline CLI::App& add_group(CLI::App& app, const char* name, const char* summary) {
  return *app.add_subcommand(name, summary)->require_subcommand(1);
}

inline void add_project_option(CLI::App& command, std::string& project) {
  command.add_option("--project", project,
                     "Name or id of the project; not needed if there is only one");
}

template <typename Number>
void add_limit_option(CLI::App& command, Number& limit, int most) {
  command.add_option("--limit", limit, "Number of entries to list")
      ->check(CLI::Range(1, most))
      ->capture_default_str();
}

}  // namespace conversed::ctl

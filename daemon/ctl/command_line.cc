// Makes the command line's parser from the table of commands.
#include <CLI/CLI.hpp>
#include <memory>

#include "daemon/ctl/commands.h"

namespace conversed::ctl {
namespace {

using Kind = Option::Kind;

// CLI::Range also accepts `010` and `0x10`, as C does. The daemon reads the text as a decimal
// number.
std::string check_decimal(const std::string& text) {
  const bool plain = !text.starts_with('0') && text.find_first_not_of("0123456789") == text.npos;
  return plain ? "" : "write the number in decimal digits, without a leading zero";
}

CLI::Option& add_option(CLI::App& command, const Option& option, Values& values) {
  const std::string& name = option.name;
  if (option.kind == Kind::flag) return *command.add_flag(name, values.flags[name], option.help);
  if (option.kind >= Kind::commas) {
    auto& list = *command.add_option(name, values.lists[name], option.help);
    if (option.kind == Kind::commas) list.delimiter(',');
    if (option.kind == Kind::repeated) {
      list.expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    return list;
  }
  std::string& text = values.texts[name];
  text = option.preset;
  auto& added = *command.add_option(name, text, option.help);
  if (option.kind == Kind::number) {
    const char* const shown = option.most == Option::no_limit ? "POSITIVE" : "";
    added.type_name("INT")->check(CLI::Range(std::int64_t{1}, option.most, shown));
    added.check(check_decimal);
  }
  if (!option.choices.empty()) added.check(CLI::IsMember(option.choices));
  if (!option.preset.empty()) added.capture_default_str();
  if (!option.variable.empty()) added.envname(option.variable);
  return added;
}

void add_command(CLI::App& parent, const Command& row, Action& action) {
  auto* command = parent.add_subcommand(row.name.substr(row.name.find(' ') + 1), row.help.summary);
  command->footer("Example: conversectl " + row.name +
                  (row.help.example.empty() ? "" : " " + row.help.example) +
                  (row.help.next.empty() ? "" : "\nNext: " + row.help.next));
  const auto values = std::make_shared<Values>();
  std::map<Option::Among, std::vector<CLI::Option*>> groups;
  for (const Option& option : row.options) {
    auto& added = *add_option(*command, option, *values).required(option.required);
    auto& group = groups[option.among];
    for (auto* other : group) {
      if (option.among == Option::Among::at_most_one) added.excludes(other);
      if (option.among != Option::Among::all_or_none) continue;
      added.needs(other);
      other->needs(&added);
    }
    group.push_back(&added);
  }
  command->callback([row, values, &action] {
    action = [row, values](Client& client) { return run(client, row, *values); };
  });
}

}  // namespace

void add_commands(CLI::App& app, Action& action) {
  for (const auto& groups : {project_commands(), account_commands(), conversation_commands(),
                             data_commands(), flow_commands(), job_commands(), timer_commands()}) {
    for (const Group& group : groups) {
      auto& parent = group.name.empty()
                         ? app
                         : *app.add_subcommand(group.name, group.summary)->require_subcommand(1);
      for (const Command& row : group.commands) add_command(parent, row, action);
    }
  }
}

}  // namespace conversed::ctl

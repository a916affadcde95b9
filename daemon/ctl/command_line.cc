// Makes the command line's parser from the table of commands.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>

#include "daemon/ctl/commands.h"
#include "store/text/near.h"
#include "store/text/quantity.h"

namespace conversed::ctl {
namespace {

using Kind = Option::Kind;

// CLI::Range also accepts `010` and `0x10`, as C does. The daemon reads the text as a decimal
// number.
std::string check_decimal(const std::string& text) {
  const bool plain =
      !text.starts_with('0') && text.find_first_not_of("0123456789") == std::string::npos;
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
  if (option.required && !name.starts_with('-')) added.check(not_empty);
  if (option.check != nullptr) added.check(option.check);
  if (!option.choices.empty()) added.check(CLI::IsMember(option.choices));
  if (!option.preset.empty()) added.capture_default_str();
  if (!option.variable.empty()) added.envname(option.variable);
  return added;
}

// `words`: the arguments.
bool is_typed(const std::string& name, const std::vector<std::string>& words) {
  return std::ranges::any_of(
      words, [&](const std::string& word) { return word == name || word.starts_with(name + '='); });
}

// Adds the help, the options and the action of the command.
void complete_command(CLI::App& command, const Command& row, Action& action,
                      const std::vector<std::string>& words) {
  command.footer("Example: conversectl " + row.name +
                 (row.help.example.empty() ? "" : " " + row.help.example) +
                 (row.help.next.empty() ? "" : "\nNext: " + row.help.next));
  const auto values = std::make_shared<Values>();
  std::map<Option::Among, std::vector<CLI::Option*>> groups;
  for (const Option& option : row.options) {
    auto& added = *add_option(command, option, *values).required(option.required);
    if (!option.variable.empty() && is_typed(option.name, words)) values->typed.insert(option.name);
    auto& group = groups[option.among];
    for (auto* other : group) {
      if (option.among == Option::Among::at_most_one) added.excludes(other);
      if (option.among != Option::Among::all_or_none) continue;
      added.needs(other);
      other->needs(&added);
    }
    group.push_back(&added);
  }
  if (row.takes_watch()) {
    command
        .add_option(watch_option, values->texts[watch_option],
                    "Print it again every few seconds (default: 2), until Ctrl-C")
        ->type_name("[SECONDS]")
        ->check(CLI::Range(1, 86'400))
        ->check(check_decimal);
  }
  command.callback([row, values, &action] {
    const auto wrong = row.check ? row.check(*values) : "";
    if (!wrong.empty()) throw CLI::ValidationError(wrong);
    action = [row, values](Client& client) { return run(client, row, *values); };
  });
}

// The possible names in place of a wrong word: commands of the group, or options.
std::vector<std::string> names_at(const CLI::App& at, bool is_option) {
  std::vector<std::string> names;
  if (!is_option) {
    for (const auto* command : at.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(command->get_name());
    }
    return names;
  }
  for (const auto* app = &at; app != nullptr; app = app->get_parent()) {
    for (const auto* option : app->get_options()) {
      for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

// The name that a wrong word probably means: the nearest name, or the only name that begins with
// the word.
std::string_view meant_by(std::string_view word, const std::vector<std::string>& names) {
  if (const auto near = text::nearest(word, names); !near.empty()) return near;
  const auto begins = [&](const std::string& name) { return name.starts_with(word); };
  if (std::ranges::count_if(names, begins) != 1) return {};
  return *std::ranges::find_if(names, begins);
}

}  // namespace

std::vector<std::string> arguments_of(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool has_seconds =
        i + 1 < arguments.size() && text::parse_whole(arguments[i + 1]).has_value();
    if (arguments[i] == watch_option && !has_seconds) arguments[i] += "=2";
  }
  return arguments;
}

int report_usage(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* at = &app;
  std::string path = "conversectl";
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    path += ' ' + at->get_name();
  }
  std::string message = error.what();
  if (const auto unknown = app.remaining(true); !unknown.empty()) {
    const std::string& word = unknown.front();
    const bool is_option = word.starts_with('-');
    const auto names = names_at(*at, is_option);
    const auto meant = meant_by(word.substr(0, word.find('=')), names);
    if (is_option || !names.empty()) {
      message = (is_option ? "there is no option '" : "there is no command '") + word + "'";
    }
    if (!meant.empty()) message += "; did you mean '" + std::string(meant) + "'?";
  }
  failed({model::Errc::invalid_argument, message + "\n" + path + " --help shows what it takes"});
  return 2;
}

std::vector<Group> all_commands() {
  std::vector<Group> all;
  for (auto* of_file : {login_commands, project_commands, account_commands, conversation_commands,
                        receipt_commands, data_commands, delivery_commands, flow_commands,
                        job_commands, timer_commands, why_command}) {
    std::ranges::move(of_file(), std::back_inserter(all));
  }
  all.push_back(completion_commands());
  return all;
}

void add_commands(CLI::App& app, Action& action, const std::vector<std::string>& words) {
  const auto is_named = [&](const std::string& name) {
    return std::ranges::find(words, name) != words.end();
  };
  for (const Group& group : all_commands()) {
    const auto known =
        app.get_subcommands([&](CLI::App* each) { return each->get_name() == group.name; });
    auto* parent = group.name.empty() ? &app : known.empty() ? nullptr : known.front();
    if (parent == nullptr) {
      parent = app.add_subcommand(group.name, group.summary)->require_subcommand(1);
      parent->footer("Example: conversectl " + group.commands.front().name + " --help");
    }
    if (!group.name.empty() && !is_named(group.name)) continue;
    for (const Command& row : group.commands) {
      const auto word = row.name.substr(row.name.find(' ') + 1);
      auto* command = parent->add_subcommand(word, row.help.summary);
      if (is_named(word)) complete_command(*command, row, action, words);
    }
  }
}

}  // namespace conversed::ctl

#include "daemon/ctl/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/names.h"
#include "store/text/terminal.h"

namespace conversed::ctl {
namespace {

constexpr std::chrono::seconds longest_wait{2};
constexpr std::string_view files = ":files";

struct Candidate {
  std::string word;
  std::string help;
};

// A command line up to the word that is typed.
struct Typed {
  const CLI::App* at = nullptr;                 // the command, or the group of the next word
  const CLI::Option* valued = nullptr;          // the option whose value is typed
  std::size_t positionals = 0;                  // of the command, before the word
  std::map<std::string, std::string> values{};  // of options, by their names in CLI
};

const CLI::Option* option_at(const CLI::App* at, const std::string& word) {
  for (; at != nullptr; at = at->get_parent()) {
    if (const auto* option = at->get_option_no_throw(word)) return option;
  }
  return nullptr;
}

// The commands of a group, or the one with this name.
std::vector<const CLI::App*> subcommands_of(const CLI::App& at, const std::string& name = {}) {
  return at.get_subcommands(
      [&](const CLI::App* each) { return name.empty() || each->get_name() == name; });
}

Typed read(const CLI::App& app, const std::vector<std::string>& words) {
  Typed typed{.at = &app};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (typed.valued != nullptr) {
      typed.values[typed.valued->get_name()] = word;
      typed.valued = nullptr;
    } else if (word.starts_with('-')) {
      const auto* option = option_at(typed.at, word);
      // A flag has no value, and the value of `--watch` may be left out.
      const bool has_value = option != nullptr && option->get_items_expected_max() > 0;
      if (has_value && option->get_name() != watch_option) typed.valued = option;
    } else if (const auto named = subcommands_of(*typed.at, word); !named.empty()) {
      typed.at = named.front();
    } else {
      ++typed.positionals;
    }
  }
  return typed;
}

// The row of the command. Null for a group.
const Command* row_of(const std::vector<Group>& groups, const CLI::App& at) {
  const auto* group = at.get_parent();
  if (group == nullptr) return nullptr;
  const auto name =
      group->get_parent() == nullptr ? at.get_name() : group->get_name() + ' ' + at.get_name();
  for (const Group& each : groups) {
    for (const Command& row : each.commands) {
      if (row.name == name) return &row;
    }
  }
  return nullptr;
}

std::vector<Candidate> commands_at(const CLI::App& at) {
  std::vector<Candidate> found;
  for (const auto* command : subcommands_of(at)) {
    found.push_back({command->get_name(), command->get_description()});
  }
  return found;
}

std::vector<Candidate> options_at(const CLI::App* at) {
  std::vector<Candidate> found;
  for (; at != nullptr; at = at->get_parent()) {
    for (const auto* option : at->get_options()) {
      for (const auto& name : option->get_lnames()) {
        found.push_back({"--" + name, option->get_description()});
      }
    }
  }
  return found;
}

// The values that an option's check takes: `TEXT:{new,replayed}`.
std::vector<Candidate> choices_of(const CLI::Option& option) {
  std::vector<Candidate> found;
  const std::string type = option.get_type_name();
  const auto open = type.find('{');
  const auto close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return found;
  for (const auto& word : CLI::detail::split(type.substr(open + 1, close - open - 1), ',')) {
    found.push_back({word, ""});
  }
  return found;
}

std::vector<Candidate> values_of(const Option& row, const CLI::Option& option, const Typed& typed,
                                 Options options) {
  if (row.is_file) return {{std::string(files), ""}};
  auto found = choices_of(option);
  if (row.find == nullptr) return found;
  const auto given = [&](const char* name) {
    const auto value = typed.values.find(name);
    return value == typed.values.end() ? "" : value->second;
  };
  if (auto url = given("--url"); !url.empty()) {
    options.url = std::move(url);
    options.url_error.reset();
  }
  if (auto as = given("--as"); !as.empty()) options.as = std::move(as);
  options.longest_wait = longest_wait;
  Client client(options);
  if (!client.has_credentials()) return found;
  Values values;
  values.texts["--project"] = given("--project");
  const auto names = names_for(client, values, row.find);
  if (!names) return found;
  for (const std::string& name : *names) found.push_back({name, ""});
  return found;
}

std::vector<Candidate> candidates(const CLI::App& app, const Options& options,
                                  const std::vector<std::string>& words) {
  const Typed typed = read(app, words);
  const auto groups = all_commands();
  const Command* row = row_of(groups, *typed.at);
  if (typed.valued != nullptr) {
    const auto own = row == nullptr ? std::vector<Option>() : row->options;
    const auto option = std::ranges::find_if(own, [&](const Option& each) {
      return typed.at->get_option_no_throw(each.name.substr(each.name.rfind(',') + 1)) ==
             typed.valued;
    });
    return option == own.end() ? choices_of(*typed.valued)
                               : values_of(*option, *typed.valued, typed, options);
  }
  if (words.back().starts_with('-')) return options_at(typed.at);
  if (row == nullptr) return commands_at(*typed.at);
  std::size_t place = 0;
  for (const Option& option : row->options) {
    if (option.name.starts_with('-')) continue;
    const bool is_it = place++ == typed.positionals || option.kind == Option::Kind::several;
    if (is_it) return values_of(option, *typed.at->get_option(option.name), typed, options);
  }
  return {};
}

constexpr const char* bash_script = R"SH(# bash completion for conversectl
_conversectl() {
  local line words=("${COMP_WORDS[@]:1:COMP_CWORD}")
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ "${line}" == :files ]]; then
      compopt -o filenames 2> /dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
      return
    fi
    COMPREPLY+=("$(printf '%q' "${line%%$'\t'*}")")
  done < <("${COMP_WORDS[0]}" __complete "${words[@]}" 2> /dev/null)
}
complete -F _conversectl conversectl
)SH";

constexpr const char* zsh_script = R"SH(#compdef conversectl
_conversectl() {
  local line
  local -a names
  for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2> /dev/null)}"; do
    if [[ "${line}" == :files ]]; then
      _files
      return
    fi
    [[ -n "${line}" ]] && names+=("${line%%$'\t'*}")
  done
  compadd -a names
}
compdef _conversectl conversectl
)SH";

constexpr const char* fish_script = R"SH(# fish completion for conversectl
function __conversectl_complete
    set -l typed (commandline -opc)
    set -l program $typed[1]
    set -e typed[1]
    set -l lines ($program __complete $typed (commandline -ct) 2> /dev/null)
    if test "$lines[1]" = :files
        __fish_complete_path (commandline -ct)
    else if test (count $lines) -gt 0
        printf '%s\n' $lines
    end
end
complete -c conversectl -f -a '(__conversectl_complete)'
)SH";

int print_script(Client& client, const Values& values) {
  const auto& shell = values.text("SHELL");
  const char* const script = shell == "bash"  ? bash_script
                             : shell == "zsh" ? zsh_script
                                              : fish_script;
  return print(client, nlohmann::json{{"shell", shell}, {"script", script}},
               [](const Fields& shown) { std::cout << shown.text("script"); });
}

}  // namespace

int complete(const CLI::App& app, const Options& options, const std::vector<std::string>& words) {
  if (words.empty()) return 0;
  std::vector<Candidate> found;
  try {
    found = candidates(app, options, words);
  } catch (const std::exception&) {  // such as an answer that is not the daemon's
    return 1;
  }
  std::set<std::string> printed;  // several projects may have objects of one name
  for (const Candidate& candidate : found) {
    const bool is_plain = text::shown(candidate.word, text::Lines::one) == candidate.word;
    const bool fits = candidate.word == files || candidate.word.starts_with(words.back());
    if (!is_plain || !fits || !printed.insert(candidate.word).second) continue;
    std::cout << candidate.word;
    if (!candidate.help.empty()) std::cout << '\t' << candidate.help;
    std::cout << '\n';
  }
  return std::cout.flush() ? 0 : 1;
}

Group completion_commands() {
  return {"",
          "",
          {Command{"completion",
                   {"Print the completion script of a shell", "bash",
                    "the package has installed the scripts; else put the output where the shell "
                    "looks for it."},
                   {Option{"SHELL", "bash, zsh or fish"}.require().one_of({"bash", "zsh", "fish"})}}
               .runs(print_script)}};
}

}  // namespace conversed::ctl

// conversectl: the operator's tool. Speaks to a daemon's management routes by HTTP Basic.
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/completion.h"
#include "daemon/ctl/credentials.h"

namespace conversed::ctl {
namespace {

// A password is not asked for.
int show_version(Client& client) {
  nlohmann::json versions{{"version", CONVERSED_VERSION}, {"daemon", nullptr}};
  if (client.has_credentials()) {
    constexpr std::chrono::seconds wait{5};
    const auto status = client.manage("GET", "/management/status", nullptr, wait);
    if (status) {
      versions["daemon"] = Fields(*status).text("version");
    } else {
      note("The daemon does not tell its version: " + status.error().message);
    }
  }
  return print(client, versions, [&](const Fields& shown) {
    say("conversectl " + shown.text("version"));
    if (shown.has("daemon"))
      say("conversed " + shown.text("daemon") + " at " + client.options().url);
  });
}

// Runs the command. Every exception becomes an exit code.
int run(const Action& action, Client& client) {
  try {
    const int code = action(client);
    if (std::cout.flush()) return code;
    return failed({model::Errc::unavailable, "the output could not be written: is the disk full?"});
  } catch (const nlohmann::json::exception& error) {
    return failed({model::Errc::internal,
                   std::string("the daemon's answer has an unexpected form (") + error.what() +
                       "): are conversectl and the daemon of one version?"});
  } catch (const std::exception& error) {
    return failed({model::Errc::internal, error.what()});
  }
}

}  // namespace
}  // namespace conversed::ctl

int main(int argc, char** argv) {
  using namespace conversed::ctl;
  ::prctl(PR_SET_DUMPABLE, 0);  // the memory holds passwords: no core dump
  CLI::App app{
      "Operates a conversed daemon: imports projects, makes API keys, talks to Flows, shows "
      "sessions and\n"
      "dead letters. Add --help to a command to see its options.\n\n"
      "First sign in by `conversectl login`. Without a login, the password of --as comes from\n"
      "CONVERSECTL_PASSWORD, where a token of `tokens create` may stand for it, or is asked for in "
      "a\n"
      "terminal.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage."};
  app.name("conversectl");  // of usage lines
  app.footer(
      "Example: conversectl --as you@example.com import shop.yaml\n"
      "Next: conversectl chat web, with an Endpoint that the import has printed.");
  app.fallthrough();
  Options options;
  auto newest = url_of_login();
  if (!newest) options.url_error = newest.error();
  if (newest && !newest->empty()) options.url = *std::move(newest);
  const auto* url = app.add_option("--url", options.url,
                                   "URL of the daemon; default: that of the newest `login`, else " +
                                       std::string(Options().url))
                        ->envname("CONVERSECTL_URL");
  app.add_option("--as", options.as, "Your e-mail address, as given to `conversed init`")
      ->envname("CONVERSECTL_AS");
  app.add_flag("--json", options.json, "Print JSON, for programs");
  std::string colors = "auto";
  app.add_option("--color", colors,
                 "Colors: auto (on a terminal, unless NO_COLOR is set), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));

  Action action;
  app.add_flag_callback(
      "--version", [&action] { action = show_version; },
      "Print the versions of conversectl and, if you are signed in, of the daemon");
  auto arguments = arguments_of(argc, argv);
  add_commands(app, action, arguments);
  const std::span<char*> words(argv, static_cast<std::size_t>(argc));
  if (argc > 1 && std::string_view(words[1]) == complete_argument) {
    if (const char* given = std::getenv("CONVERSECTL_URL")) {
      options.url = given;
      options.url_error.reset();
    }
    if (const char* as = std::getenv("CONVERSECTL_AS")) options.as = as;
    return complete(app, options, {words.begin() + 2, words.end()});
  }
  try {
    std::ranges::reverse(arguments);
    app.parse(std::move(arguments));
    if (!action) throw CLI::RequiredError("A command");
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : report_usage(app, error);
  }
  choose_colors(colors == "auto"     ? Colors::automatic
                : colors == "always" ? Colors::always
                                     : Colors::never);
  while (!options.url.empty() && options.url.back() == '/') options.url.pop_back();
  if (url->count() > 0) options.url_error.reset();
  Client client(options);
  return run(action, client);
}

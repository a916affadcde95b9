// conversectl: the operator's tool. Speaks to a daemon's management routes by HTTP Basic.
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>

#include "daemon/ctl/commands.h"

namespace conversed::ctl {
namespace {

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
      "The password of --as comes from CONVERSECTL_PASSWORD, or is asked for in a terminal.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage."};
  app.footer(
      "Example: conversectl --as you@example.com import shop.yaml\n"
      "Next: conversectl chat web, with an Endpoint that the import has printed.");
  app.require_subcommand(1);
  app.fallthrough();
  Options options;
  app.add_option("--url", options.url, "URL of the daemon")
      ->envname("CONVERSECTL_URL")
      ->capture_default_str();
  app.add_option("--as", options.as, "Your e-mail address, as given to `conversed init`")
      ->envname("CONVERSECTL_AS");
  app.add_flag("--json", options.json, "Print JSON, for programs");
  std::string colors = "auto";
  app.add_option("--color", colors,
                 "Colors: auto (on a terminal, unless NO_COLOR is set), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));

  Action action;
  add_commands(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  choose_colors(colors == "auto"     ? Colors::automatic
                : colors == "always" ? Colors::always
                                     : Colors::never);
  while (!options.url.empty() && options.url.back() == '/') options.url.pop_back();
  Client client(options);
  return run(action, client);
}

// conversectl deadletters.
#include <nlohmann/json.hpp>

#include "daemon/ctl/lookup.h"
#include "daemon/ctl/subcommand.h"

namespace conversed::ctl {
namespace {

struct Arguments {
  std::string id;
  std::string project;
  std::string state = "new";
  int limit = 50;
};

int list(Client& client, const Arguments& args) {
  auto query = project_query(client, args.project,
                             parameters({{"limit", std::to_string(args.limit)},
                                         {"state", args.state == "all" ? "" : args.state}}));
  if (!query) return failed(query.error());
  return print(client, client.manage("GET", "/management/deadletters" + *query),
               [](const Fields& page) {
                 Table table({"ID", "CREATED", "STATE", "TYPE", "USER", "SESSION", "REASON"});
                 for (const Fields& letter : page.items()) {
                   table.add({letter.text("_id"), letter.time("createdAt"), letter.text("state"),
                              letter.text("type"), letter.text("userId"), letter.text("sessionId"),
                              letter.text("reason")});
                 }
                 table.print("No dead letters.");
               });
}

std::string path_of(const Arguments& args) {
  return "/management/deadletters/" + encode(args.id);
}

int show(Client& client, const Arguments& args) {
  return print_document(client, client.manage("GET", path_of(args)));
}

int replay(Client& client, const Arguments& args) {
  return print(client, client.manage("POST", path_of(args) + "/replay"), [](const Fields&) {
    say("Appended again; it runs after what its session has done since.");
  });
}

int discard(Client& client, const Arguments& args) {
  return print(client, client.manage("POST", path_of(args) + "/discard"),
               [](const Fields&) { say("Discarded."); });
}

int status(Client& client, const Arguments&) {
  return print_document(client, client.manage("GET", "/management/status"));
}

}  // namespace

void add_dead_letter_commands(CLI::App& app, Action& action) {
  const Subcommands<Arguments> letters(
      add_group(app, "deadletters", "Events and outputs that were given up, with their reasons"),
      action);
  auto& args = letters.arguments();
  auto& listing = letters.add("list",
                              {"List dead letters, oldest first", "--state new",
                               "`deadletters show` tells all about one; mend the cause and use "
                               "`deadletters replay`."},
                              list);
  add_project_option(listing, args.project);
  listing.add_option("--state", args.state, "new, replayed, discarded or all")
      ->check(CLI::IsMember({"new", "replayed", "discarded", "all"}))
      ->capture_default_str();
  add_limit_option(listing, args.limit, 100);
  const auto add = [&](const char* name, const char* summary,
                       int (*run)(Client&, const Arguments&)) {
    letters.add(name, {summary, "6f9619ff8b86d011b42d00c0"}, run)
        .add_option("ID", args.id, "The dead letter's id, as `deadletters list` shows it")
        ->required();
  };
  add("show", "Show all about a dead letter", show);
  add("replay", "Process it again, after what its session has done since", replay);
  add("discard", "Mark it as discarded; it is kept", discard);
}

void add_status_command(CLI::App& app, Action& action) {
  Subcommands<Arguments>(app, action)
      .add("status",
           {"Show the daemon's version, uptime, queue and counts", "",
            "`deadletters list` explains what could not be processed."},
           status);
}

}  // namespace conversed::ctl

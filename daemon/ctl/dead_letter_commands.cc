// conversectl deadletters.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "daemon/ctl/commands.h"
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
  std::string filter = "limit=" + std::to_string(args.limit);
  if (args.state != "all") filter += "&state=" + encode(args.state);
  auto query = project_query(client, args.project, filter);
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

}  // namespace

void add_dead_letter_commands(CLI::App& app, Action& action) {
  auto args = std::make_shared<Arguments>();
  auto* letters = app.add_subcommand("deadletters", "What could not be processed, with its reason")
                      ->require_subcommand(1);
  auto* list_command =
      add_subcommand(*letters, "list", "List dead letters, oldest first", action, args, list);
  list_command->add_option("--project", args->project, "Name or id; not needed if there is one");
  list_command->add_option("--state", args->state, "new, replayed, discarded or all")
      ->check(CLI::IsMember({"new", "replayed", "discarded", "all"}))
      ->capture_default_str();
  list_command->add_option("--limit", args->limit, "How many")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  const auto add = [&](const char* name, const char* what, int (*run)(Client&, const Arguments&)) {
    add_subcommand(*letters, name, what, action, args, run)
        ->add_option("ID", args->id, "Its id")
        ->required();
  };
  add("show", "Show one, whole", show);
  add("replay", "Process it again, at the end of the log", replay);
  add("discard", "Give it up; it is kept, marked", discard);
}

void add_status_command(CLI::App& app, Action& action) {
  app.add_subcommand("status", "Version, uptime, queue and counts of the daemon")
      ->callback([&action] {
        action = [](Client& client) {
          return print_document(client, client.manage("GET", "/management/status"));
        };
      });
}

}  // namespace conversed::ctl

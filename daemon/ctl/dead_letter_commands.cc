// conversectl deadletters.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "daemon/ctl/commands.h"

namespace conversed::ctl {
namespace {

struct Arguments {
  std::string id;
  std::string state = "new";
  int limit = 50;
};

int list(Client& client, const Arguments& args) {
  auto page = client.manage("GET", "/management/deadletters?limit=" + std::to_string(args.limit) +
                                       "&state=" + encode(args.state));
  if (!page) return failed(page.error());
  if (client.options().json) {
    std::cout << page->dump() << "\n";
    return 0;
  }
  for (const auto& letter : page->at("items")) {
    std::cout << letter.value("_id", "") << "  " << letter.value("createdAt", "") << "  "
              << letter.value("state", "") << "  " << letter.value("userId", "") << "/"
              << letter.value("sessionId", "") << "  " << letter.value("reason", "") << "\n";
  }
  if (page->at("items").empty()) std::cout << "No dead letters.\n";
  return 0;
}

int show(Client& client, const Arguments& args) {
  auto letter = client.manage("GET", "/management/deadletters/" + encode(args.id));
  if (!letter) return failed(letter.error());
  std::cout << letter->dump(client.options().json ? -1 : 2) << "\n";
  return 0;
}

int act(Client& client, const Arguments& args, const std::string& verb) {
  auto done = client.manage("POST", "/management/deadletters/" + encode(args.id) + "/" + verb);
  if (!done) return failed(done.error());
  if (client.options().json) {
    std::cout << done->dump() << "\n";
  } else {
    std::cout << (verb == "replay"
                      ? "Appended again; it runs after what its session has done since.\n"
                      : "Discarded.\n");
  }
  return 0;
}

}  // namespace

void add_dead_letter_commands(CLI::App& app, Action& action) {
  auto args = std::make_shared<Arguments>();
  auto* letters = app.add_subcommand("deadletters", "What could not be processed, with its reason")
                      ->require_subcommand(1);
  auto* list_command = letters->add_subcommand("list", "The oldest first");
  list_command->add_option("--state", args->state, "new, replayed, discarded or all")
      ->check(CLI::IsMember({"new", "replayed", "discarded", "all"}))
      ->capture_default_str();
  list_command->add_option("--limit", args->limit, "How many")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  list_command->callback(
      [args, &action] { action = [args](Client& client) { return list(client, *args); }; });
  auto* show_command = letters->add_subcommand("show", "One, whole");
  show_command->add_option("ID", args->id, "Its id")->required();
  show_command->callback(
      [args, &action] { action = [args](Client& client) { return show(client, *args); }; });
  for (const std::string verb : {"replay", "discard"}) {
    auto* command =
        letters->add_subcommand(verb, verb == "replay" ? "Process it again, at the end of the log"
                                                       : "Give it up; it is kept, marked");
    command->add_option("ID", args->id, "Its id")->required();
    command->callback([args, verb, &action] {
      action = [args, verb](Client& client) { return act(client, *args, verb); };
    });
  }
}

void add_status_command(CLI::App& app, Action& action) {
  app.add_subcommand("status", "Version, uptime, queue and counts of the daemon")
      ->callback([&action] {
        action = [](Client& client) {
          auto status = client.manage("GET", "/management/status");
          if (!status) return failed(status.error());
          std::cout << status->dump(client.options().json ? -1 : 2) << "\n";
          return 0;
        };
      });
}

}  // namespace conversed::ctl

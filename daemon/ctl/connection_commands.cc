// conversectl connections: which there are, and who would miss one.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/lookup.h"
#include "daemon/ctl/subcommand.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;

struct Asked {
  std::string connection;
  std::string project;
  std::size_t limit = 25;
  std::int64_t after = 0;
};

int list(Client& client, const Asked& asked) {
  auto query = project_query(client, asked.project);
  if (!query) return failed(query.error());
  auto connections = client.manage("GET", "/management/connections" + *query);
  if (!connections) return failed(connections.error());
  if (client.options().json) {
    std::cout << connections->dump() << "\n";
    return 0;
  }
  for (const auto& item : connections->at("items")) {
    std::cout << item.value("_id", "") << "  " << item.value("type", "") << "  "
              << item.value("name", "") << "\n";
  }
  return 0;
}

void print(const json& usages) {
  std::cout << usages.value("name", "") << " (" << usages.value("type", "") << ")\n";
  if (usages.at("flows").empty()) std::cout << "  no Flow uses it\n";
  for (const auto& flow : usages.at("flows")) {
    std::cout << "  Flow " << flow.value("name", "") << ", version " << flow.at("version") << "\n";
    for (const auto& node : flow.at("nodes")) {
      std::cout << "    " << node.value("node", "") << " (" << node.value("type", "") << ")\n";
    }
  }
  const auto& sessions = usages.at("sessions");
  if (!sessions.at("count").is_null()) {  // only the first page has it
    std::cout << (sessions.value("isComplete", true) ? "" : "at least ") << sessions.at("count")
              << " sessions may come to these Nodes\n";
  }
  if (sessions.at("items").is_null()) {
    std::cout << "  (the role conversationAdmin is needed to see which)\n";
    return;
  }
  for (const auto& session : sessions.at("items")) {
    std::cout << "  " << session.value("meets", "") << "  " << session.value("userId", "") << "  "
              << session.value("sessionId", "") << "  " << time_text(session.at("lastActivityAt"))
              << "\n";
  }
  if (!sessions.at("next").is_null()) {
    std::cout << "  more with --after " << sessions.at("next") << "\n";
  }
}

int usages(Client& client, const Asked& asked) {
  // An id needs no project to be found in.
  std::string id = asked.connection;
  auto named = find_in_project(client, "/management/connections", "Connection", asked.connection,
                               asked.project);
  if (named) id = named->value("_id", "");
  constexpr std::size_t id_length = 24;
  if (!named && asked.connection.size() != id_length) return failed(named.error());
  auto found = client.manage("GET", "/management/connections/" + encode(id) +
                                        "/usages?limit=" + std::to_string(asked.limit) +
                                        "&after=" + std::to_string(asked.after));
  if (!found) return failed(found.error());
  if (client.options().json) {
    std::cout << found->dump() << "\n";
  } else {
    print(*found);
  }
  return 0;
}

}  // namespace

void add_connection_commands(CLI::App& app, Action& action) {
  auto asked = std::make_shared<Asked>();
  auto* connections =
      app.add_subcommand("connections", "Connections of a project")->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, int (*run)(Client&, const Asked&)) {
    auto* command = add_subcommand(*connections, name, what, action, asked, run);
    command->add_option("--project", asked->project, "Name or id; not needed if there is one");
    return command;
  };
  add("list", "List Connections, without their fields", list);
  auto* using_it = add("usages", "Say which Flows, Nodes and sessions would miss it", usages);
  using_it->add_option("ID", asked->connection, "The Connection's id or name")->required();
  using_it->add_option("--limit", asked->limit, "Sessions to list")->capture_default_str();
  using_it->add_option("--after", asked->after,
                       "Begin behind this one, the `next` of the page before");
}

}  // namespace conversed::ctl

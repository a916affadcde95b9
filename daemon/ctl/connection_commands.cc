// conversectl connections: which there are, and who would miss one.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/lookup.h"
#include "daemon/ctl/subcommand.h"

namespace conversed::ctl {
namespace {

struct Asked {
  std::string connection;
  std::string project;
  std::size_t limit = 25;
  std::int64_t after = 0;
};

// Which hosts a Connection is for.
std::string hosts_text(const Fields& connection) {
  std::string text;
  for (const auto& host : connection.texts("hosts")) text += text.empty() ? host : ", " + host;
  return text.empty() ? "any host" : text;
}

int list(Client& client, const Asked& asked) {
  auto query = project_query(client, asked.project);
  if (!query) return failed(query.error());
  return print(
      client, client.manage("GET", "/management/connections" + *query), [](const Fields& page) {
        Table table({"ID", "TYPE", "NAME", "FOR"});
        for (const Fields& item : page.items()) {
          table.add({item.text("_id"), item.text("type"), item.text("name"), hosts_text(item)});
        }
        table.print("No Connections.");
      });
}

void show_sessions(const Fields& sessions) {
  if (sessions.has("count")) {  // only the first page has it
    say((sessions.flag("isComplete") ? "" : "at least ") +
        std::to_string(sessions.number("count")) + " sessions may come to these Nodes");
  }
  if (!sessions.has("items")) return say("(the role conversationAdmin is needed to see which)");
  Table table({"MEETS IT", "USER", "SESSION", "LAST ACTIVITY"});
  for (const Fields& session : sessions.items()) {
    table.add({session.text("meets"), session.text("userId"), session.text("sessionId"),
               session.time("lastActivityAt")});
  }
  table.print("No sessions.");
  if (sessions.has("next")) say("more with --after " + std::to_string(sessions.number("next")));
}

void show_usages(const Fields& usages) {
  say(usages.text("name") + " (" + usages.text("type") + "), for " + hosts_text(usages));
  Table table({"FLOW", "VERSION", "NODE", "TYPE"});
  for (const Fields& flow : usages.objects("flows")) {
    for (const Fields& node : flow.objects("nodes")) {
      table.add({flow.text("name"), flow.number("version"), node.text("node"), node.text("type")});
    }
  }
  table.print("No Flow uses it.");
  show_sessions(usages.object("sessions"));
}

int usages(Client& client, const Asked& asked) {
  // An id needs no project to be found in.
  std::string id = asked.connection;
  auto named = find_in_project(client, "/management/connections", "Connection", asked.connection,
                               asked.project);
  if (named) id = *named;
  constexpr std::size_t id_length = 24;
  if (!named && asked.connection.size() != id_length) return failed(named.error());
  return print(client,
               client.manage("GET", "/management/connections/" + encode(id) +
                                        "/usages?limit=" + std::to_string(asked.limit) +
                                        "&after=" + std::to_string(asked.after)),
               show_usages);
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

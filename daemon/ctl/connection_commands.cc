// conversectl connections: list them, and show what uses one.
#include <nlohmann/json.hpp>

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

std::string hosts_text(const Fields& connection) {
  const auto text = joined(connection.texts("hosts"), ", ");
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
        std::to_string(sessions.number("count")) + " sessions may reach these Nodes");
  }
  if (!sessions.has("items")) return say("(to list them, sign in with the role conversationAdmin)");
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
  const Subcommands<Asked> connections(add_group(app, "connections", "Connections of a project"),
                                       action);
  auto& asked = connections.arguments();
  auto& listing = connections.add("list",
                                  {"List Connections, without their fields", "--project Shop",
                                   "`connections usages` shows what uses one."},
                                  list);
  auto& using_it = connections.add(
      "usages", {"List the Flows, Nodes and sessions that use a Connection", "crm"}, usages);
  for (auto* command : {&listing, &using_it}) add_project_option(*command, asked.project);
  using_it.add_option("ID", asked.connection, "The Connection's id or name")->required();
  using_it.add_option("--limit", asked.limit, "Number of sessions to list")->capture_default_str();
  using_it.add_option("--after", asked.after,
                      "Begin behind this one, the `next` of the page before");
}

}  // namespace conversed::ctl

// conversectl connections.
#include "daemon/ctl/commands.h"
#include "daemon/ctl/lookup.h"

namespace conversed::ctl {
namespace {

std::string hosts_text(const Fields& connection) {
  const auto text = joined(connection.texts("hosts"), ", ");
  return text.empty() ? "any host" : text;
}

void show_sessions(const Fields& sessions) {
  if (sessions.has("count")) {  // only the first page has it
    say((sessions.flag("isComplete") ? "" : "at least ") +
        std::to_string(sessions.number("count")) + " sessions may reach these Nodes");
  }
  if (!sessions.has("items")) return say("(to list them, sign in with the role conversationAdmin)");
  table_of({text_column("MEETS IT", "meets"), text_column("USER", "userId"),
            text_column("SESSION", "sessionId"), time_column("LAST ACTIVITY", "lastActivityAt")},
           sessions.items())
      .print("No sessions.");
  if (sessions.has("next")) say("more with --after " + std::to_string(sessions.number("next")));
}

void show_usages(const Fields& usages, const Values&) {
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

// An id needs no project to be found in.
model::Result<std::string> find_connection(Client& client, const Values& values,
                                           const std::string& id_or_name) {
  constexpr std::size_t id_length = 24;
  auto found = find_in_project(client, values, "/management/connections", "Connection", id_or_name);
  return found || id_or_name.size() != id_length ? found : id_or_name;
}

}  // namespace

std::vector<Group> connection_commands() {
  return {
      {"connections",
       "Connections of a project",
       {Command{"connections list",
                {"List Connections, without their fields", "--project Shop",
                 "`connections usages` shows what uses one."},
                {project_option()},
                "GET /management/connections",
                rows({text_column("ID", "_id"),
                      text_column("TYPE", "type"),
                      text_column("NAME", "name"),
                      {"FOR", "hosts",
                       [](const Fields& connection, const char*) {
                         return Cell(hosts_text(connection));
                       }}},
                     "No Connections.")},
        Command{"connections usages",
                {"List the Flows, Nodes and sessions that use a Connection", "crm"},
                {scope_option(),
                 Option{"ID", "The Connection's id or name"}.require().found_by(find_connection),
                 Option{"--limit", "Number of sessions to list", Option::Kind::number}
                     .in_query("limit")
                     .with_preset("25"),
                 Option{"--after", "Begin behind this one, the `next` of the page before",
                        Option::Kind::number}
                     .in_query("after")},
                "GET /management/connections/{ID}/usages",
                show_usages}}}};
}

}  // namespace conversed::ctl

// conversectl connections.
#include "daemon/ctl/commands.h"
#include "store/text/joined.h"

namespace conversed::ctl {
namespace {

Cell hosts_cell(const Fields& connection, const char* field) {
  const auto text = text::joined(connection.texts(field));
  return text.empty() ? "any host" : text;
}

void show_sessions(const Fields& sessions) {
  if (sessions.has("count")) {  // only the first page has it
    say((sessions.flag("isComplete") ? "" : "at least ") +
        std::to_string(sessions.number("count")) + " sessions may reach these Nodes");
  }
  if (!sessions.has("items")) return say("(to list them, sign in with the role conversationAdmin)");
  table_of({column("MEETS IT", "meets"), column("USER", "userId"), column("SESSION", "sessionId"),
            column("LAST ACTIVITY", "lastActivityAt", time_cell)},
           sessions.items())
      .print("No sessions.");
  if (sessions.has("next")) say("more with --after " + std::to_string(sessions.number("next")));
}

void show_usages(const Fields& usages, const Values&) {
  say(usages.text("name") + " (" + usages.text("type") + "), for " +
      hosts_cell(usages, "hosts").text);
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
                rows({column("ID", "_id"), column("TYPE", "type"), column("NAME", "name"),
                      column("FOR", "hosts", hosts_cell)},
                     "No Connections.")},
        Command{"connections usages",
                {"List the Flows, Nodes and sessions that use a Connection", "crm"},
                {scope_option(),
                 Option{"ID", "The Connection's id or name"}.require().found_by(find_connection),
                 limit_option(25), after_option().in_query("after")},
                "GET /management/connections/{ID}/usages",
                show_usages}}}};
}

}  // namespace conversed::ctl

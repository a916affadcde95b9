// conversectl import, export, apikey, connections, projects, flows.
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/files/text_file.h"
#include "daemon/ctl/names.h"
#include "store/text/joined.h"
#include "store/text/quantity.h"

namespace conversed::ctl {
namespace {

// The environment variables that the bundle names as `${NAME}`. No other variable leaves this
// machine.
nlohmann::json referenced_environment(const std::string& text) {
  auto values = nlohmann::json::object();
  for (std::size_t at = text.find("${"); at != std::string::npos; at = text.find("${", at + 2)) {
    const std::size_t end = text.find('}', at);
    if (end == std::string::npos) break;
    const std::string name = text.substr(at + 2, end - at - 2);
    if (const char* value = std::getenv(name.c_str()); value != nullptr) values[name] = value;
  }
  return values;
}

// The uses of parts that would be deleted.
void show_part_usages(const Fields& report, const std::string& if_empty) {
  Table table({"TO DELETE", "NAME", "USED BY"});
  for (const Fields& usage : report.objects("usages")) {
    table.add({usage.text("part"), usage.text("name"), usage.text("text")});
  }
  table.print(if_empty);
}

// The changes that an import would make, and the sessions that it would meet.
void show_plan(const Fields& report, const Values& values) {
  Table changes({"CHANGE", "PART", "NAME"});
  Table sessions({"FLOW", "NODE", "SESSIONS", "AFTER THE IMPORT"});
  const bool is_complete = report.flag("isComplete");
  std::size_t unchanged = 0;
  for (const Fields& part : report.objects("plan")) {
    const auto change = part.text("change");
    unchanged += change == "unchanged" ? 1U : 0U;
    if (change == "unchanged") continue;
    changes.add(
        {change == "leftOver" ? "left over" : change, part.text("part"), part.text("name")});
    for (const Fields& waiting : part.objects("waiting")) {
      sessions.add({part.text("name"), waiting.text("node"),
                    (is_complete ? "" : "at least ") + std::to_string(waiting.number("sessions")),
                    waiting.flag("stays") ? "wait on" : "start the Flow again"});
    }
  }
  changes.print("An import would change nothing.");
  say("Unchanged parts: " + std::to_string(unchanged));
  sessions.print(is_complete ? "No session waits in a changed Flow."
                             : "None of the newest sessions waits in a changed Flow.");
  if (values.flag("--prune")) show_part_usages(report, "No part to delete is in use.");
}

void show_import(const Fields& report, const Values& values) {
  for (const Fields& warning : report.objects("warnings")) {
    note(problem_line(warning, "warning"));
  }
  if (values.flag("--plan")) return show_plan(report, values);
  if (values.flag("--check")) {
    return show_part_usages(report, values.text("BUNDLE") + ": no problems");
  }
  const Fields project = report.object("project");
  say("Imported " + project.text("name") + " (" + project.text("_id") + ")");
  Table table({"PART", "NAME", "VERSION OR URLTOKEN"});
  for (const Fields& flow : report.objects("flows")) {
    table.add({"Flow", flow.text("name"), std::to_string(flow.number("version"))});
  }
  for (const Fields& endpoint : report.objects("endpoints")) {
    table.add({"Endpoint", endpoint.text("name"), endpoint.text("urlToken")});
  }
  table.print("The bundle has no Flow and no Endpoint.");
  for (const Fields& part : report.objects("deleted")) {
    say("Deleted the " + part.text("part") + " " + part.text("name"));
  }
}

model::Result<void> add_bundle(const Values& values, Request& request) {
  const std::string& path = values.text("BUNDLE");
  auto text = read_file(path);
  if (!text) return model::fail(text.error());
  request.body["file"] = path;
  request.body["text"] = *text;
  request.body["environment"] = referenced_environment(*text);
  return {};
}

// Prints the bundle to standard output or a file, and notes about it to stderr.
int export_project(Client& client, const Values& values) {
  const std::string& path = values.text("-o,--output");
  auto project = find_project(client, values, values.text("PROJECT"));
  if (!project) return failed(project.error());
  auto bundle = client.manage("GET", "/management/projects/" + encode(*project) + "/export");
  if (!bundle) return failed(bundle.error());
  const auto text = Fields(*bundle).text("text");
  if (!path.empty()) {
    if (auto written = write_file(path, text); !written) return failed(written.error());
  }
  return print(client, bundle, [&](const Fields& exported) {
    // Not by `say`: the writer of bundles has escaped control characters, and an import must be
    // able to read the text.
    if (path.empty()) std::cout << text;
    for (const std::string& variable : exported.texts("variables")) {
      note("An import needs " + variable + " in its environment");
    }
    for (const Fields& problem : exported.objects("problems")) {
      const auto place = problem.text_if_any("path");
      note("An import would refuse line " + std::to_string(problem.number("line")) + ": " +
           (place.empty() ? "" : place + ": ") + problem.text("message"));
    }
  });
}

Group key_commands() {
  return {
      "apikey",
      "API keys of the organisation",
      {Command{"apikey create",
               {"Make a key and print it, once", "--name \"order system\"",
                "send it as X-API-Key; `apikey revoke` ends it."},
               {Option{"--name", "Name of the key, such as the program that uses it"}
                    .in_field("name")
                    .require(),
                Option{"--user", "E-mail address of the user that the key acts as; default: you"}
                    .in_field("user")},
               "POST /management/apikeys",
               [](const Fields& key, const Values&) {
                 note("API key " + key.text("name") + " of " + key.text("user") +
                      ". Keep it: it is not shown again.");
                 say(key.text("key"));
               }}
           .with_password(),
       Command{"apikey list",
               {"List keys, without their secrets"},
               {},
               "GET /management/apikeys",
               rows({column("ID", "_id"), column("USER", "user"),
                     column("CREATED", "createdAt", time_cell), column("NAME", "name")},
                    "No API keys.")},
       Command{"apikey revoke",
               {"Revoke a key at once", "6f9619ff8b86d011b42d00c0"},
               {Option{"ID", "The key's id or name"}.require().found_by(find_api_key)},
               "DELETE /management/apikeys/{ID}",
               says({"Revoked {ID}"})}}};
}

Cell hosts_cell(const Fields& connection, const char* field) {
  const auto text = text::joined(connection.texts(field));
  return text.empty() ? "any host" : text;
}

void show_sessions(const Fields& sessions) {
  if (sessions.has("count")) {  // only the first page has it
    say((sessions.flag("isComplete") ? "" : "at least ") +
        text::counted(sessions.number("count"), "session") + " may reach these Nodes");
  }
  if (!sessions.has("items")) return say("(to list them, sign in with the role conversationAdmin)");
  table_of({column("MEETS IT", "meets"), column("USER", "userId"), column("SESSION", "sessionId"),
            column("LAST ACTIVITY", "lastActivityAt", time_cell)},
           sessions.items())
      .print("No sessions.");
  if (sessions.has("next")) note("more with --after " + std::to_string(sessions.number("next")));
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
  table.print("No Flow uses the Connection.");
  show_sessions(usages.object("sessions"));
}

Command deletion(const std::string& group, const std::string& what, Find find,
                 const std::string& example, const std::string& hint) {
  const auto show = [what](const Fields& deleted, const Values& values) {
    if (!values.flag("--preview")) return say("Deleted the " + what + ' ' + deleted.text("name"));
    show_part_usages(deleted, "Nothing uses it. It can be deleted.");
  };
  return {group + " delete",
          {"Delete " + std::string(what == "Endpoint" ? "an " : "a ") + what +
               "; refused, with the list, while something uses it",
           example + " --preview", hint},
          {Option{"NAME", "The name or id"}.require().found_by(find),
           Option{"--preview", "Only list what uses it", Option::Kind::flag}.in_query("dryRun")},
          "DELETE /management/" + group + "/{NAME}",
          show};
}

std::vector<Group> lists() {
  return {
      {"projects",
       "Projects of the organisation",
       {Command{"projects list",
                {"List the projects that you are a member of", "",
                 "name one by --project, or by CONVERSECTL_PROJECT for all commands."},
                {},
                "GET /management/projects",
                rows({column("ID", "_id"), column("NAME", "name")}, "No projects.")},
        deletion("projects", "project", find_project, "Old",
                 "its conversations are erased in the background; `export` keeps its bundle.")}},
      {"flows",
       "Flows of a project",
       {Command{"flows list",
                {"List Flows with their newest versions", "--project Shop",
                 "`flow versions` lists all versions of one, `flow graph` draws it."},
                {project_option()},
                "GET /management/flows",
                rows({column("ID", "_id"), column("NAME", "name"), column("VERSION", "version")},
                     "No Flows.")},
        delete_command("flows", "Flow", find_flow)}}};
}

Group connection_commands() {
  return {"connections",
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
                    limit_option(25), number_after_option().in_query("after")},
                   "GET /management/connections/{ID}/usages",
                   show_usages}}};
}

}  // namespace

Command delete_command(const std::string& group, const std::string& part, Find find) {
  auto command = deletion(group, part, find, "Old",
                          "`import --prune` deletes all parts that a bundle does not name.");
  command.options.push_back(scope_option());
  return command;
}

std::vector<Group> project_commands() {
  std::vector<Group> groups{
      {"",
       "",
       {Command{"import",
                {"Import a project bundle (YAML or JSON); a bundle with a problem changes nothing",
                 "shop.yaml", "`chat` talks to an Endpoint of the project."},
                {Option{"BUNDLE", "The bundle's file"}.require().file(),
                 Option{"--check", "Only check the bundle", Option::Kind::flag}.in_query("dryRun"),
                 Option{"--plan",
                        "Only list what is new, changed and left over, and the sessions in changed "
                        "Flows",
                        Option::Kind::flag}
                     .in_query("dryRun"),
                 Option{"--prune",
                        "Delete the parts that the bundle does not name. Members and locales "
                        "stay. Refused while a part is in use, or a Flow in a ramp",
                        Option::Kind::flag}
                     .in_field("prune"),
                 Option{"--hold",
                        "Store new versions of Flows without giving them to sessions; `flow ramp` "
                        "does that. Not with --prune",
                        Option::Kind::flag}
                     .in_field("hold")},
                "POST /management/import",
                show_import}
            .prepared_by(add_bundle)
            .checked_by([](const Values& values) {
              const bool is_refused = values.flag("--hold") && values.flag("--prune");
              return std::string(is_refused ? "--hold and --prune exclude each other" : "");
            }),
        Command{"export",
                {"Print a project as a bundle, with secrets as ${NAME}", "Shop --output shop.yaml",
                 "`import` makes the same project of the bundle."},
                {Option{"PROJECT", "The project's name or id"}.require().found_by(find_project),
                 Option{"-o,--output", "Write to this file instead"}.file()}}
            .runs(export_project)}},
      key_commands(),
      connection_commands()};
  for (Group& group : lists()) groups.push_back(std::move(group));
  return groups;
}

}  // namespace conversed::ctl

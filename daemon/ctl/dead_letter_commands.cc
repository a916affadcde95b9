// conversectl deadletters, audit, status.
#include "daemon/ctl/commands.h"

namespace conversed::ctl {

std::vector<Group> dead_letter_commands() {
  constexpr const char* example = "6f9619ff8b86d011b42d00c0";
  const Option id = Option{"ID", "The dead letter's id, as `deadletters list` shows it"}.require();
  return {{"deadletters",
           "Events and outputs that were given up, with their reasons",
           {Command{"deadletters list",
                    {"List dead letters, oldest first", "--state new",
                     "`deadletters show` tells all about one; mend the cause and use "
                     "`deadletters replay`."},
                    {project_option(),
                     Option{"--state", "new, replayed, discarded or all"}.with_preset("new").one_of(
                         {"new", "replayed", "discarded", "all"}),
                     limit_option(50)},
                    "GET /management/deadletters",
                    rows({text_column("ID", "_id"), time_column("CREATED", "createdAt"),
                          text_column("STATE", "state"), text_column("TYPE", "type"),
                          text_column("USER", "userId"), text_column("SESSION", "sessionId"),
                          text_column("REASON", "reason")},
                         "No dead letters.")}
                .prepared_by([](const Values& values, Request& request) {
                  const auto& state = values.text("--state");
                  if (state != "all") request.query += "&state=" + state;
                  return model::Result<void>();
                }),
            Command{"deadletters show",
                    {"Show all about a dead letter", example},
                    {id},
                    "GET /management/deadletters/{ID}"},
            Command{"deadletters replay",
                    {"Process it again, after what its session has done since", example},
                    {id},
                    "POST /management/deadletters/{ID}/replay",
                    says({"Appended again; it runs after what its session has done since."})},
            Command{"deadletters discard",
                    {"Mark it as discarded; it is kept", example},
                    {id},
                    "POST /management/deadletters/{ID}/discard",
                    says({"Discarded."})}}}};
}

std::vector<Group> audit_commands() {
  return {{"",
           "",
           {Command{"audit",
                    {"List who did what, newest first", "--operation createApiKey --limit 100"},
                    {Option{"--actor", "Only entries of this e-mail address"}.in_query("actor"),
                     Option{"--operation",
                            "Only entries of this operation, such as signIn or createApiKey"}
                         .in_query("operation"),
                     limit_option(25, 10'000)},
                    "GET /management/audit",
                    rows({time_column("AT (UTC)", "at"),
                          optional_column("WHO", "actor"),
                          text_column("FROM", "address"),
                          text_column("OPERATION", "operation"),
                          {"STATUS", "status",
                           [](const Fields& entry, const char* field) {
                             return entry.has(field) ? Cell(entry.number(field)) : Cell("");
                           }},
                          optional_column("OBJECT", "object"),
                          optional_column("USER", "userId"),
                          optional_column("SESSION", "sessionId"),
                          text_column("TRACE", "traceId")},
                         "No entries.")}
                .in_pages(),
            Command{"status",
                    {"Show the daemon's version, uptime, queue and counts", "",
                     "`deadletters list` explains what could not be processed."},
                    {},
                    "GET /management/status"}}}};
}

}  // namespace conversed::ctl

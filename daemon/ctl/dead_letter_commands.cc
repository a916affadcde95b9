// conversectl deadletters, audit, status.
#include "daemon/ctl/commands.h"

namespace conversed::ctl {

std::vector<Group> dead_letter_commands() {
  constexpr const char* example = "6f9619ff8b86d011b42d00c0";
  const Option id = Option{"ID", "The dead letter's id, as `deadletters list` shows it"}.require();
  return {
      {"deadletters",
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
                rows({column("ID", "_id"), column("CREATED", "createdAt", time_cell),
                      column("STATE", "state"), column("TYPE", "type"), column("USER", "userId"),
                      column("SESSION", "sessionId"), column("REASON", "reason")},
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
  return {
      {"",
       "",
       {Command{
            "audit",
            {"List who did what, newest first", "--operation createApiKey --limit 100"},
            {Option{"--actor", "Only entries of this e-mail address"}.in_query("actor"),
             Option{"--operation", "Only entries of this operation, such as signIn or createApiKey"}
                 .in_query("operation"),
             limit_option(25, 10'000)},
            "GET /management/audit",
            rows({column("AT (UTC)", "at", time_cell), column("WHO", "actor"),
                  column("FROM", "address"), column("OPERATION", "operation"),
                  column("STATUS", "status"), column("OBJECT", "object"), column("USER", "userId"),
                  column("SESSION", "sessionId"), column("TRACE", "traceId")},
                 "No entries.")}
            .in_pages(),
        Command{"status",
                {"Show the daemon's version, uptime, queue and counts", "",
                 "`deadletters list` explains what could not be processed."},
                {},
                "GET /management/status"}}}};
}

}  // namespace conversed::ctl

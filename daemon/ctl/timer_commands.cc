// conversectl timers, proactive.
#include "daemon/ctl/commands.h"
#include "daemon/ctl/lookup.h"

namespace conversed::ctl {
namespace {

constexpr const char* example = "6f9619ff8b86d011b42d00c0";

std::vector<Column> timer_columns() {
  return {text_column("ID", "_id"), text_column("KIND", "kind"), time_column("DUE (UTC)", "dueAt"),
          text_column("USER", "userId"), text_column("SESSION", "sessionId")};
}

Command list_timers() {
  constexpr auto all = Option::Among::all_or_none;
  return Command{
      "timers list",
      {"List timers, earliest first", "--kind followUp",
       "`timers reschedule` moves one, `timers cancel` cancels it."},
      {project_option(),
       Option{"--kind", "journey, followUp, sleep, question or schedule"}.in_query("kind").one_of(
           {"journey", "followUp", "sleep", "question", "schedule"}),
       Option{"--endpoint", "A session's URLToken"}.in_query("URLToken").grouped(all),
       Option{"--user", "The session's userId"}.in_query("userId").grouped(all),
       Option{"--session", "The session's sessionId"}.in_query("sessionId").grouped(all),
       limit_option(25, 10'000), after_option()},
      "GET /management/timers",
      rows(timer_columns(), "No timers.")}
      .in_pages();
}

Group timers() {
  const Option id = Option{"ID", "The timer's id, as `timers list` shows it"}.require();
  return {"timers",
          "Follow-ups, sleeps, questions and schedules that wait",
          {list_timers(),
           Command{"timers cancel",
                   {"Cancel a timer, so that it never fires", example},
                   {id},
                   "DELETE /management/timers/{ID}",
                   says({"Cancelled."})},
           Command{"timers reschedule",
                   {"Move a timer to another time", std::string(example) + " --in 20m"},
                   with_times({id}),
                   "POST /management/timers/{ID}/reschedule",
                   [](const Fields& timer, const Values&) {
                     table_of(timer_columns(), {timer}).print("");
                   }}}};
}

void show_state(const Fields& project, const Values&) {
  const auto state = project.text("state");
  std::string line = state == "notSetUp" ? "not set up" : state;
  if (project.has("withdrawn")) {
    line += "; withdrawn: " + std::to_string(project.number("withdrawn"));
  }
  say(line);
}

Command turn(const char* name, const char* summary, bool on) {
  return Command{name,
                 {summary, "Shop"},
                 {Option{"PROJECT", "Name or id"}.require().found_by(find_project)},
                 "POST /management/projects/{PROJECT}/proactive",
                 show_state}
      .sends({{"on", on}});
}

Group proactive() {
  auto off =
      turn("proactive off", "Follow up nobody, and withdraw the follow-ups that wait", false);
  off.help.next = "`proactive on` switches it on again.";
  return {"proactive",
          "The switch of proactive follow-up, of a project",
          {Command{"proactive show",
                   {"Show whether silent users are followed up", "Shop"},
                   {Option{"PROJECT", "Name or id"}.require().found_by(find_project)},
                   "GET /management/projects/{PROJECT}/proactive",
                   show_state},
           turn("proactive on", "Follow up silent users again, in a project that is set up", true),
           std::move(off)}};
}

}  // namespace

std::vector<Group> timer_commands() {
  return {timers(), proactive()};
}

}  // namespace conversed::ctl

// conversectl timers, schedules, proactive.
#include <nlohmann/json.hpp>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/names.h"

namespace conversed::ctl {
namespace {

std::vector<Column> timer_columns() {
  return {column("ID", "_id"),
          column("KIND", "kind"),
          column("DUE", "dueAt", time_cell),
          column("USER", "userId"),
          column("SESSION", "sessionId"),
          column("WAITS FOR", "waits", reason_cell)};
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
       Option{"--endpoint", "Name, id or URLToken of a session's Endpoint"}
           .in_query("URLToken")
           .found_by(find_endpoint)
           .grouped(all),
       Option{"--user", "The session's userId"}.in_query("userId").grouped(all),
       Option{"--session", "The session's sessionId"}.in_query("sessionId").grouped(all),
       reason_option(model::Listed::timers), limit_option(25, 10'000), after_option()},
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
                   {"Cancel a timer, so that it never fires", some_id},
                   {id},
                   "DELETE /management/timers/{ID}",
                   says({"Cancelled."})},
           Command{"timers reschedule",
                   {"Move a timer to another time", std::string(some_id) + " --in 20m"},
                   with_times({id}),
                   "POST /management/timers/{ID}/reschedule",
                   [](const Fields& timer, const Values&) {
                     table_of(timer_columns(), {timer}).print("");
                   }}
               .checked_by(check_new_time)}};
}

void show_state(const Fields& project, const Values&) {
  const auto state = project.text("state");
  std::string line = state == "notSetUp" ? "not set up" : state;
  if (project.has("withdrawn")) {
    line += "; withdrawn: " + std::to_string(project.number("withdrawn"));
  }
  say(line);
}

Group proactive() {
  const Option project = Option{"PROJECT", "Name or id"}.require().found_by(find_project);
  const Command show{"proactive show",
                     {"Show whether a project follows up silent users", "Shop"},
                     {project},
                     "GET /management/projects/{PROJECT}/proactive",
                     show_state};
  const auto turn = [&](const char* name, bool on, Help help) {
    return Command{name, std::move(help), {project}, "POST" + show.request.substr(3), show_state}
        .sends({{"on", on}});
  };
  return {
      "proactive",
      "Switch a project's proactive follow-up on or off",
      {show,
       turn("proactive on", true, {"Follow up silent users of a project that is set up", "Shop"}),
       turn("proactive off", false,
            {"Stop following up users of a project; withdraw waiting follow-ups", "Shop",
             "`proactive on` switches it on again."})}};
}

void show_next(const Fields& schedule) {
  for (const std::int64_t time : schedule.times("next")) say("  " + full_time(time, screen()));
}

int preview(Client& client, const Values& values) {
  auto schedule = client.manage("GET", "/management/schedules/" + encode(values.text("ID")));
  if (schedule) *schedule = nlohmann::json{{"next", Fields(*schedule).any("next")}};
  return print(client, schedule, show_next);
}

Cell rule_cell(const Fields& schedule, const char* field) {
  return schedule.has(field) ? schedule.text(field) + " " + schedule.text("timezone") : "once";
}

Group schedules() {
  const Option id = Option{"ID", "The schedule's id, as `schedules list` shows it"}.require();
  return {
      "schedules",
      "Messages that `inject` sends later, or repeatedly",
      {Command{
           "schedules list",
           {"List the schedules that will fire", "--project Shop",
            "`schedules preview` shows the next times of one."},
           {project_option(), limit_option(25, 10'000), number_after_option()},
           "GET /management/schedules",
           rows({column("ID", "_id"), column("COMES", "dueAt", time_cell), column("USER", "userId"),
                 column("SESSION", "sessionId"), column("RULE", "cron", rule_cell)},
                "No schedules.")}
           .in_pages(),
       Command{"schedules show",
               {"Show a schedule in full", some_id},
               {id},
               "GET /management/schedules/{ID}"},
       Command{"schedules preview", {"Show the next ten times of a schedule", some_id}, {id}}.runs(
           preview),
       Command{"schedules cancel",
               {"Cancel a schedule, so that it sends no more messages", some_id},
               {id},
               "DELETE /management/schedules/{ID}",
               says({"Cancelled."})},
       Command{"schedules reschedule",
               {"Give a schedule another time or another rule",
                std::string(some_id) + " --cron \"0 9 * * mon-fri\""},
               with_times({id, preview_option()}),
               "POST /management/schedules/{ID}/reschedule",
               show_times}
           .checked_by(check_new_time)}};
}

}  // namespace

void show_times(const Fields& schedule, const Values& values) {
  say(values.flag("--preview") ? "The message would come at"
                               : "Scheduled as " + schedule.text("_id") + "; it comes at");
  show_next(schedule);
}

std::vector<Group> timer_commands() {
  return {timers(), schedules(), proactive()};
}

}  // namespace conversed::ctl

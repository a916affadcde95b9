// conversectl schedules.
#include "daemon/ctl/commands.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;

void show_next(const Fields& schedule) {
  for (const std::string& time : schedule.times("next")) say("  " + time);
}

int preview(Client& client, const Values& values) {
  auto schedule = client.manage("GET", "/management/schedules/" + encode(values.text("ID")));
  if (schedule) *schedule = json{{"next", Fields(*schedule).any("next")}};
  return print(client, schedule, show_next);
}

Cell rule_cell(const Fields& schedule, const char* field) {
  return schedule.has(field) ? schedule.text(field) + " " + schedule.text("timezone") : "once";
}

}  // namespace

void show_times(const Fields& schedule, const Values& values) {
  say(values.flag("--preview") ? "It would come at (UTC)"
                               : "Scheduled as " + schedule.text("_id") + "; it comes at (UTC)");
  show_next(schedule);
}

std::vector<Group> schedule_commands() {
  const std::string example = "6f9619ff8b86d011b42d00c0";
  const Option id = Option{"ID", "The schedule's id, as `schedules list` shows it"}.require();
  return {
      {"schedules",
       "Messages that `inject` was told to send later, or repeatedly",
       {Command{"schedules list",
                {"List the schedules that are still to come", "--project Shop",
                 "`schedules preview` shows the next times of one."},
                {project_option(), limit_option(25)},
                "GET /management/schedules",
                rows({text_column("ID", "_id"),
                      time_column("COMES (UTC)", "dueAt"),
                      text_column("USER", "userId"),
                      text_column("SESSION", "sessionId"),
                      {"RULE", "cron", rule_cell}},
                     "No schedules.")},
        Command{"schedules show",
                {"Show all about a schedule", example},
                {id},
                "GET /management/schedules/{ID}"},
        Command{"schedules preview", {"Show the next ten times of a schedule", example}, {id}}.runs(
            preview),
        Command{"schedules cancel",
                {"Cancel a schedule, so that it sends nothing more", example},
                {id},
                "DELETE /management/schedules/{ID}",
                says({"Cancelled."})},
        Command{"schedules reschedule",
                {"Give a schedule another time or another rule",
                 example + " --cron \"0 9 * * mon-fri\""},
                with_times({id, preview_option()}),
                "POST /management/schedules/{ID}/reschedule",
                show_times}}}};
}

}  // namespace conversed::ctl

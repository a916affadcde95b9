// conversectl schedules; and inject with a time.
#include <nlohmann/json.hpp>

#include "daemon/ctl/lookup.h"
#include "daemon/ctl/subcommand.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;

constexpr const char* schedules_path = "/management/schedules";

struct Arguments {
  std::string id;
  std::string project;
  int limit = 25;
  Times times;
};

std::string path_of(const std::string& id) {
  return std::string(schedules_path) + "/" + encode(id);
}

void show_next(const Fields& schedule) {
  for (const std::string& time : schedule.times("next")) say("  " + time);
}

// Makes or moves a schedule, and shows its times.
int send(Client& client, const std::string& path, json body, const Times& times) {
  body.update(times_body(times));
  return print(client, client.manage("POST", path + (times.preview ? "?dryRun=true" : ""), body),
               [&](const Fields& schedule) {
                 say(times.preview
                         ? "It would come at (UTC)"
                         : "Scheduled as " + schedule.text("_id") + "; it comes at (UTC)");
                 show_next(schedule);
               });
}

int list(Client& client, const Arguments& args) {
  auto query = project_query(client, args.project, "limit=" + std::to_string(args.limit));
  if (!query) return failed(query.error());
  return print(client, client.manage("GET", schedules_path + *query), [](const Fields& page) {
    Table table({"ID", "COMES (UTC)", "USER", "SESSION", "RULE"});
    for (const Fields& schedule : page.items()) {
      table.add({schedule.text("_id"), schedule.time("dueAt"), schedule.text("userId"),
                 schedule.text("sessionId"),
                 schedule.has("cron") ? schedule.text("cron") + " " + schedule.text("timezone")
                                      : "once"});
    }
    table.print("No schedules.");
  });
}

int show(Client& client, const Arguments& args) {
  return print_document(client, client.manage("GET", path_of(args.id)));
}

int preview(Client& client, const Arguments& args) {
  auto schedule = client.manage("GET", path_of(args.id));
  if (schedule) *schedule = json{{"next", Fields(*schedule).any("next")}};
  return print(client, schedule, show_next);
}

int cancel(Client& client, const Arguments& args) {
  return print(client, client.manage("DELETE", path_of(args.id)),
               [](const Fields&) { say("Cancelled."); });
}

int reschedule(Client& client, const Arguments& args) {
  return send(client, path_of(args.id) + "/reschedule", json::object(), args.times);
}

}  // namespace

json times_body(const Times& times) {
  json body = json::object();
  if (!times.at.empty()) body["at"] = times.at;
  if (!times.in.empty()) body["in"] = times.in;
  if (!times.cron.empty()) body["cron"] = times.cron;
  if (!times.timezone.empty()) body["timezone"] = times.timezone;
  return body;
}

void add_when_options(CLI::App& command, Times& times) {
  auto* when = command.add_option_group("when");
  when->add_option("--at", times.at, "At a time, such as 2027-03-28T14:30, by --timezone");
  when->add_option("--in", times.in, "After a while, such as 20m");
  when->add_option("--cron", times.cron, "Repeatedly, such as \"0 9 * * mon-fri\"");
  when->require_option(0, 1);
  command.add_option("--timezone", times.timezone,
                     "Time zone of --at and --cron, such as Europe/Berlin; default: UTC");
}

void add_time_options(CLI::App& command, Times& times) {
  add_when_options(command, times);
  command.add_flag("--preview", times.preview, "Only show the next ten times");
}

int inject_later(Client& client, const json& message, const Times& times) {
  return send(client, schedules_path, message, times);
}

void add_schedule_commands(CLI::App& app, Action& action) {
  const Subcommands<Arguments> schedules(
      add_group(app, "schedules", "Messages that `inject` was told to send later, or repeatedly"),
      action);
  auto& args = schedules.arguments();
  auto& listing = schedules.add("list",
                                {"List the schedules that are still to come", "--project Shop",
                                 "`schedules preview` shows the next times of one."},
                                list);
  add_project_option(listing, args.project);
  add_limit_option(listing, args.limit, 100);

  const auto add = [&](const char* name, const Help& help,
                       int (*run)(Client&, const Arguments&)) -> CLI::App& {
    auto& command = schedules.add(name, help, run);
    command.add_option("ID", args.id, "The schedule's id, as `schedules list` shows it")
        ->required();
    return command;
  };
  constexpr const char* id = "6f9619ff8b86d011b42d00c0";
  add("show", {"Show all about a schedule", id}, show);
  add("preview", {"Show the next ten times of a schedule", id}, preview);
  add("cancel", {"Cancel a schedule, so that it sends nothing more", id}, cancel);
  add_time_options(add("reschedule",
                       {"Give a schedule another time or another rule",
                        "6f9619ff8b86d011b42d00c0 --cron \"0 9 * * mon-fri\""},
                       reschedule),
                   args.times);
}

}  // namespace conversed::ctl

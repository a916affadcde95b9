// conversectl schedules; and what inject does that is to come later.
#include <CLI/CLI.hpp>

#include <array>
#include <ctime>
#include <iostream>
#include <memory>

#include "daemon/ctl/commands.h"
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

// "2027-03-28T07:00:00Z"
std::string utc_time(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  std::array<char, 32> text{};
  if (gmtime_r(&time, &parts) == nullptr) return std::to_string(seconds);
  return {text.data(), std::strftime(text.data(), text.size(), "%FT%TZ", &parts)};
}

void print_next(const json& schedule) {
  for (const auto& time : schedule.at("next")) {
    std::cout << "  " << utc_time(time.get<std::int64_t>()) << "\n";
  }
}

// Sends what makes or moves a schedule, and shows when it comes.
int send(Client& client, const std::string& path, json body, const Times& times) {
  body.update(times_body(times));
  auto schedule = client.manage("POST", path + (times.preview ? "?dryRun=true" : ""), body);
  if (!schedule) return failed(schedule.error());
  if (client.options().json) {
    std::cout << schedule->dump() << "\n";
    return 0;
  }
  if (times.preview) {
    std::cout << "It would come at\n";
  } else {
    std::cout << "Scheduled as " << schedule->value("_id", "") << "; it comes at\n";
  }
  print_next(*schedule);
  return 0;
}

int list(Client& client, const Arguments& args) {
  std::string path = std::string(schedules_path) + "?limit=" + std::to_string(args.limit);
  if (!args.project.empty()) path += "&projectId=" + encode(args.project);
  auto page = client.manage("GET", path);
  if (!page) return failed(page.error());
  if (client.options().json) {
    std::cout << page->dump() << "\n";
    return 0;
  }
  for (const auto& schedule : page->at("items")) {
    const bool recurs = schedule.at("cron").is_string();
    std::cout << schedule.value("_id", "") << "  "
              << utc_time(schedule.value("dueAt", std::int64_t{0})) << "  "
              << (recurs ? schedule.value("cron", "") + " " + schedule.value("timezone", "")
                         : "once")
              << "  " << schedule.value("userId", "") << "  " << schedule.value("sessionId", "")
              << "\n";
  }
  if (page->at("items").empty()) std::cout << "Nothing is scheduled.\n";
  return 0;
}

int show(Client& client, const Arguments& args) {
  auto schedule = client.manage("GET", path_of(args.id));
  if (!schedule) return failed(schedule.error());
  std::cout << schedule->dump(client.options().json ? -1 : 2) << "\n";
  return 0;
}

int preview(Client& client, const Arguments& args) {
  auto schedule = client.manage("GET", path_of(args.id));
  if (!schedule) return failed(schedule.error());
  if (client.options().json) {
    std::cout << json{{"next", schedule->at("next")}}.dump() << "\n";
  } else {
    print_next(*schedule);
  }
  return 0;
}

int cancel(Client& client, const Arguments& args) {
  auto done = client.manage("DELETE", path_of(args.id));
  if (!done) return failed(done.error());
  if (!client.options().json) std::cout << "It comes no more.\n";
  return 0;
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
  when->add_option("--cron", times.cron, "Again and again, such as \"0 9 * * mon-fri\"");
  when->require_option(0, 1);
  command.add_option("--timezone", times.timezone, "Of --at and --cron; default UTC");
}

void add_time_options(CLI::App& command, Times& times) {
  add_when_options(command, times);
  command.add_flag("--preview", times.preview, "Only show the next ten times");
}

int inject_later(Client& client, const json& message, const Times& times) {
  return send(client, schedules_path, message, times);
}

void add_schedule_commands(CLI::App& app, Action& action) {
  auto args = std::make_shared<Arguments>();
  auto* schedules =
      app.add_subcommand("schedules", "Messages that inject has put off, or that recur")
          ->require_subcommand(1);
  auto* list_command =
      add_subcommand(*schedules, "list", "Those that are still to come", action, args, list);
  list_command->add_option("--project", args->project, "Only those of this project's id");
  list_command->add_option("--limit", args->limit, "How many")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();

  const auto add = [&](const char* name, const char* what, int (*run)(Client&, const Arguments&)) {
    auto* command = add_subcommand(*schedules, name, what, action, args, run);
    command->add_option("ID", args->id, "Its id")->required();
    return command;
  };
  add("show", "One, whole", show);
  add("preview", "The next ten times of one", preview);
  add("cancel", "Take one back", cancel);
  add_time_options(*add("reschedule", "Another time, or another rule", reschedule), args->times);
}

}  // namespace conversed::ctl

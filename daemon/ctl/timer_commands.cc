// conversectl timers; and the switch of proactive follow-up.
#include <nlohmann/json.hpp>

#include "daemon/ctl/lookup.h"
#include "daemon/ctl/subcommand.h"

namespace conversed::ctl {
namespace {

struct Arguments {
  std::string id;
  std::string project;
  std::string kind;
  std::string endpoint;
  std::string user;
  std::string session;
  std::string after;
  std::size_t limit = 25;
  Times times;
};

model::Result<nlohmann::json> fetch(Client& client, const Arguments& args) {
  auto query = project_query(client, args.project,
                             parameters({{"kind", args.kind},
                                         {"URLToken", args.endpoint},
                                         {"userId", args.user},
                                         {"sessionId", args.session}}));
  if (!query) return model::fail(query.error());
  return fetch_pages(client, "/management/timers" + *query, args.limit, args.after);
}

Table timer_table() {
  return Table({"ID", "KIND", "DUE (UTC)", "USER", "SESSION"});
}

void add_row(Table& table, const Fields& timer) {
  table.add({timer.text("_id"), timer.text("kind"), timer.time("dueAt"), timer.text("userId"),
             timer.text("sessionId")});
}

int list(Client& client, const Arguments& args) {
  return print(client, fetch(client, args), [](const Fields& page) {
    auto table = timer_table();
    for (const Fields& timer : page.items()) add_row(table, timer);
    table.print("No timers.");
    if (page.has("next")) say("more with --after " + page.text("next"));
  });
}

std::string path_of(const std::string& id) {
  return "/management/timers/" + encode(id);
}

int cancel(Client& client, const Arguments& args) {
  return print(client, client.manage("DELETE", path_of(args.id)),
               [](const Fields&) { say("Cancelled."); });
}

int reschedule(Client& client, const Arguments& args) {
  return print(client,
               client.manage("POST", path_of(args.id) + "/reschedule", times_body(args.times)),
               [](const Fields& timer) {
                 auto table = timer_table();
                 add_row(table, timer);
                 table.print("");
               });
}

model::Result<std::string> proactive_path(Client& client, const std::string& id_or_name) {
  auto project = find_id(client, "/management/projects", "project", id_or_name);
  if (!project) return model::fail(project.error());
  return "/management/projects/" + encode(*project) + "/proactive";
}

void show_state(const Fields& project) {
  const auto state = project.text("state");
  std::string line = state == "notSetUp" ? "not set up" : state;
  if (project.has("withdrawn")) {
    line += "; withdrawn: " + std::to_string(project.number("withdrawn"));
  }
  say(line);
}

int show_proactive(Client& client, const Arguments& args) {
  auto path = proactive_path(client, args.project);
  if (!path) return failed(path.error());
  return print(client, client.manage("GET", *path), show_state);
}

int turn(Client& client, const Arguments& args, bool on) {
  auto path = proactive_path(client, args.project);
  if (!path) return failed(path.error());
  return print(client, client.manage("POST", *path, {{"on", on}}), show_state);
}

void add_list(const Subcommands<Arguments>& timers) {
  auto& args = timers.arguments();
  auto& command = timers.add("list",
                             {"List timers, earliest first", "--kind followUp",
                              "`timers reschedule` moves one, `timers cancel` cancels it."},
                             list);
  add_project_option(command, args.project);
  command.add_option("--kind", args.kind, "journey, followUp, sleep, question or schedule")
      ->check(CLI::IsMember({"journey", "followUp", "sleep", "question", "schedule"}));
  auto* endpoint = command.add_option("--endpoint", args.endpoint, "A session's URLToken");
  auto* user = command.add_option("--user", args.user, "The session's userId");
  auto* session = command.add_option("--session", args.session, "The session's sessionId");
  for (auto* one : {endpoint, user, session}) {
    for (auto* other : {endpoint, user, session}) {
      if (one != other) one->needs(other);
    }
  }
  add_limit_option(command, args.limit, 10'000);
  command.add_option("--after", args.after, "Begin behind this one, the `next` of the page before");
}

}  // namespace

void add_timer_commands(CLI::App& app, Action& action) {
  const Subcommands<Arguments> timers(
      add_group(app, "timers", "Follow-ups, sleeps, questions and schedules that wait"), action);
  add_list(timers);
  auto& cancelling = timers.add(
      "cancel", {"Cancel a timer, so that it never fires", "6f9619ff8b86d011b42d00c0"}, cancel);
  auto& moving =
      timers.add("reschedule",
                 {"Move a timer to another time", "6f9619ff8b86d011b42d00c0 --in 20m"}, reschedule);
  for (auto* command : {&cancelling, &moving}) {
    command->add_option("ID", timers.arguments().id, "The timer's id, as `timers list` shows it")
        ->required();
  }
  add_when_options(moving, timers.arguments().times);

  const Subcommands<Arguments> proactive(
      add_group(app, "proactive", "The switch of proactive follow-up, of a project"), action);
  const auto add = [&](const char* name, const Help& help, int (*run)(Client&, const Arguments&)) {
    proactive.add(name, help, run)
        .add_option("PROJECT", proactive.arguments().project, "Name or id")
        ->required();
  };
  add("show", {"Show whether silent users are followed up", "Shop"}, show_proactive);
  add("on", {"Follow up silent users again, in a project that is set up", "Shop"},
      [](Client& client, const Arguments& args) { return turn(client, args, true); });
  add("off",
      {"Follow up nobody, and withdraw the follow-ups that wait", "Shop",
       "`proactive on` switches it on again."},
      [](Client& client, const Arguments& args) { return turn(client, args, false); });
}

}  // namespace conversed::ctl

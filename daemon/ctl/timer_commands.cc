// conversectl timers; and the switch of proactive follow-up.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/lookup.h"
#include "daemon/ctl/subcommand.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;

constexpr std::size_t most_a_page = 100;

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

void put(std::string& query, const char* name, const std::string& value) {
  if (!value.empty()) query.append("&").append(name).append("=").append(encode(value));
}

// Pages may be short of what was asked for: on to the next until there is enough of them.
model::Result<json> fetch(Client& client, const Arguments& args) {
  auto project = project_query(client, args.project);
  if (!project) return model::fail(project.error());
  std::string query = project->empty() ? "?" : *project + "&";
  query += "limit=";
  std::string filter;
  put(filter, "kind", args.kind);
  put(filter, "URLToken", args.endpoint);
  put(filter, "userId", args.user);
  put(filter, "sessionId", args.session);
  json all{{"items", json::array()}};
  json& items = all["items"];
  std::string next = args.after;
  do {
    std::string path = "/management/timers" + query;
    path += std::to_string(std::min(args.limit - items.size(), most_a_page)) + filter;
    put(path, "after", next);
    auto page = client.manage("GET", path);
    if (!page) return model::fail(page.error());
    const Fields fields(*page);
    for (const auto& item : fields.any("items")) items.push_back(item);
    next = fields.text_if_any("next");
  } while (items.size() < args.limit && !next.empty());
  all["next"] = next.empty() ? json(nullptr) : json(next);
  return all;
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
    table.print("Nothing waits for its time.");
    if (page.has("next")) say("more with --after " + page.text("next"));
  });
}

std::string path_of(const std::string& id) {
  return "/management/timers/" + encode(id);
}

int cancel(Client& client, const Arguments& args) {
  return print(client, client.manage("DELETE", path_of(args.id)),
               [](const Fields&) { say("Nothing comes of it any more."); });
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
    line += "; taken back: " + std::to_string(project.number("withdrawn"));
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
int turn_on(Client& client, const Arguments& args) {
  return turn(client, args, true);
}
int turn_off(Client& client, const Arguments& args) {
  return turn(client, args, false);
}

void add_list(CLI::App& timers, Action& action, const std::shared_ptr<Arguments>& args) {
  auto* command = add_subcommand(timers, "list", "List timers, earliest first", action, args, list);
  command->add_option("--project", args->project, "Name or id; not needed if there is one");
  command->add_option("--kind", args->kind, "journey, followUp, sleep, question or schedule")
      ->check(CLI::IsMember({"journey", "followUp", "sleep", "question", "schedule"}));
  auto* endpoint = command->add_option("--endpoint", args->endpoint, "A session's URL token");
  auto* user = command->add_option("--user", args->user, "Its user");
  auto* session = command->add_option("--session", args->session, "Its id");
  for (auto* one : {endpoint, user, session}) {
    for (auto* other : {endpoint, user, session}) {
      if (one != other) one->needs(other);
    }
  }
  command->add_option("--limit", args->limit, "How many")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command->add_option("--after", args->after,
                      "Begin behind this one, the `next` of the page before");
}

}  // namespace

void add_timer_commands(CLI::App& app, Action& action) {
  auto args = std::make_shared<Arguments>();
  auto* timers =
      app.add_subcommand("timers", "Follow-ups, sleeps, questions and schedules that wait")
          ->require_subcommand(1);
  add_list(*timers, action, args);
  auto* cancelling = add_subcommand(*timers, "cancel", "Take one back", action, args, cancel);
  cancelling->add_option("ID", args->id, "Its id")->required();
  auto* moving = add_subcommand(*timers, "reschedule", "Another time", action, args, reschedule);
  moving->add_option("ID", args->id, "Its id")->required();
  add_when_options(*moving, args->times);

  auto* proactive = app.add_subcommand("proactive", "Whether silent users are followed up")
                        ->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, int (*run)(Client&, const Arguments&)) {
    add_subcommand(*proactive, name, what, action, args, run)
        ->add_option("PROJECT", args->project, "Name or id")
        ->required();
  };
  add("show", "Whether they are", show_proactive);
  add("on", "Follow them up again, in a project that is set up", turn_on);
  add("off", "Follow nobody up, and take back what waits", turn_off);
}

}  // namespace conversed::ctl

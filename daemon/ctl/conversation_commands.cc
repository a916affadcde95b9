// conversectl inject, chat, sessions.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/lookup.h"
#include "store/model/ids.h"
#include "store/model/json.h"

namespace conversed::ctl {
namespace {

// What names a session on the command line; owned by the callbacks that read it.
struct Arguments {
  std::string url_token;
  std::string user_id;
  std::string session_id;
  std::string text;
  std::string data;
  std::string project;
  int limit = 50;
  Times times;
};

std::string session_query(const Arguments& args) {
  return "?URLToken=" + encode(args.url_token) + "&userId=" + encode(args.user_id) +
         "&sessionId=" + encode(args.session_id);
}

nlohmann::json session_body(const Arguments& args) {
  return {{"URLToken", args.url_token}, {"userId", args.user_id}, {"sessionId", args.session_id}};
}

int inject(Client& client, const Arguments& args) {
  auto body = session_body(args);
  if (!args.text.empty()) body["text"] = args.text;
  if (!args.data.empty()) {
    auto data = model::parse_json(args.data);
    if (!data) return failed({model::Errc::invalid_argument, "--data: " + data.error().message});
    body["data"] = std::move(*data);
  }
  if (args.times.later()) return inject_later(client, body, args.times);
  if (args.times.preview) {
    return failed({model::Errc::invalid_argument, "--preview goes with --at, --in or --cron"});
  }
  return print(client, client.manage("POST", "/management/inject", body),
               [](const Fields& event) { say("Accepted as " + event.text("_id")); });
}

int list_sessions(Client& client, const Arguments& args) {
  auto query = project_query(client, args.project, "limit=" + std::to_string(args.limit));
  if (!query) return failed(query.error());
  return print(
      client, client.manage("GET", "/management/sessions" + *query), [](const Fields& page) {
        Table table({"ENDPOINT", "USER", "SESSION", "STATE", "INBOX", "OUTPUTS", "LAST ACTIVITY"});
        for (const Fields& session : page.items()) {
          table.add({session.text_if_any("endpoint"), session.text("userId"),
                     session.text("sessionId"), session.text("state"), session.number("inboxSize"),
                     session.number("outputs"), session.time("lastActivityAt")});
        }
        table.print("No sessions.");
      });
}

int show_session(Client& client, const Arguments& args) {
  return print_document(client,
                        client.manage("GET", "/management/sessions/show" + session_query(args)));
}

int reset_session(Client& client, const Arguments& args) {
  return print(client, client.manage("POST", "/management/sessions/reset", session_body(args)),
               [](const Fields&) { say("Reset. What waits in its inbox runs now."); });
}

void add_session_options(CLI::App& command, const std::shared_ptr<Arguments>& args) {
  command.add_option("--endpoint", args->url_token, "The Endpoint's URLToken")->required();
  command.add_option("--user", args->user_id, "userId")->required();
  command.add_option("--session", args->session_id, "sessionId")->required();
}

}  // namespace

void add_conversation_commands(CLI::App& app, Action& action) {
  auto args = std::make_shared<Arguments>();
  auto* inject_command = app.add_subcommand("inject", "Put a message into a running conversation");
  add_session_options(*inject_command, args);
  inject_command->add_option("--text", args->text, "The text");
  inject_command->add_option("--data", args->data, "The data, as JSON");
  add_time_options(*inject_command, args->times);
  inject_command->callback(
      [args, &action] { action = [args](Client& client) { return inject(client, *args); }; });

  auto* chat_command =
      app.add_subcommand("chat", "Talk to an Endpoint; ends with the input (Ctrl-D)");
  chat_command->add_option("URLTOKEN", args->url_token, "The Endpoint's URLToken")->required();
  chat_command->add_option("--user", args->user_id, "userId; default: a new one");
  chat_command->add_option("--session", args->session_id, "sessionId; default: a new one");
  chat_command->callback([args, &action] {
    action = [args](Client& client) {
      return chat(client, args->url_token, args->user_id.empty() ? model::new_id() : args->user_id,
                  args->session_id.empty() ? model::new_id() : args->session_id);
    };
  });

  auto* sessions =
      app.add_subcommand("sessions", "Conversations and their state")->require_subcommand(1);
  auto* list = sessions->add_subcommand("list", "The newest sessions");
  list->add_option("--project", args->project, "Name or id; not needed if there is one");
  list->add_option("--limit", args->limit, "How many")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  list->callback([args, &action] {
    action = [args](Client& client) { return list_sessions(client, *args); };
  });
  auto* show = sessions->add_subcommand("show", "One session: state, context, inbox, last outputs");
  add_session_options(*show, args);
  show->callback(
      [args, &action] { action = [args](Client& client) { return show_session(client, *args); }; });
  auto* reset =
      sessions->add_subcommand("reset", "Begin a session anew; pending calls find no claim");
  add_session_options(*reset, args);
  reset->callback([args, &action] {
    action = [args](Client& client) { return reset_session(client, *args); };
  });
}

}  // namespace conversed::ctl

// conversectl inject, chat, sessions.
#include <nlohmann/json.hpp>

#include "daemon/ctl/lookup.h"
#include "daemon/ctl/subcommand.h"
#include "store/model/ids.h"
#include "store/model/json.h"

namespace conversed::ctl {
namespace {

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
    return failed({model::Errc::invalid_argument, "--preview needs --at, --in or --cron"});
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

int talk(Client& client, const Arguments& args) {
  return chat(client, args.url_token, args.user_id.empty() ? model::new_id() : args.user_id,
              args.session_id.empty() ? model::new_id() : args.session_id);
}

void add_session_options(CLI::App& command, Arguments& args) {
  command.add_option("--endpoint", args.url_token, "The Endpoint's URLToken")->required();
  command.add_option("--user", args.user_id, "The session's userId")->required();
  command.add_option("--session", args.session_id, "The session's sessionId")->required();
}

}  // namespace

void add_conversation_commands(CLI::App& app, Action& action) {
  const Subcommands<Arguments> top(app, action);
  auto& inject_command = top.add(
      "inject",
      {"Put a message into a running conversation, now or later",
       "--endpoint URLTOKEN --user ann --session s1 --text \"Your parcel is here\"",
       "`sessions show` shows what the Flow answered; `schedules list` shows messages for later."},
      inject);
  add_session_options(inject_command, top.arguments());
  inject_command.add_option("--text", top.arguments().text, "The text");
  inject_command.add_option("--data", top.arguments().data, "The data, as JSON");
  add_time_options(inject_command, top.arguments().times);

  auto& chat_command = top.add(
      "chat",
      {"Talk to an Endpoint; ends with the input (Ctrl-D)", "URLTOKEN --user ann",
       "`sessions show` shows the session, `deadletters list` what could not be processed."},
      talk);
  chat_command.add_option("URLTOKEN", top.arguments().url_token, "The Endpoint's URLToken")
      ->required();
  chat_command.add_option("--user", top.arguments().user_id, "userId; default: a new one");
  chat_command.add_option("--session", top.arguments().session_id, "sessionId; default: a new one");

  const Subcommands<Arguments> sessions(add_group(app, "sessions", "Conversations and their state"),
                                        action);
  auto& listing = sessions.add("list",
                               {"List the newest sessions", "--project Shop --limit 10",
                                "`sessions show` tells all about one."},
                               list_sessions);
  add_project_option(listing, sessions.arguments().project);
  add_limit_option(listing, sessions.arguments().limit, 100);
  constexpr const char* example = "--endpoint URLTOKEN --user ann --session s1";
  add_session_options(
      sessions.add("show", {"Show a session: state, context, inbox, last outputs", example},
                   show_session),
      sessions.arguments());
  add_session_options(
      sessions.add("reset",
                   {"End a session's execution and begin it anew; pending calls have no effect",
                    example, "the messages in its inbox run at once."},
                   reset_session),
      sessions.arguments());
}

}  // namespace conversed::ctl

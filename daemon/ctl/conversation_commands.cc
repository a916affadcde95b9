// conversectl inject, chat, sessions.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "daemon/ctl/commands.h"
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
  auto answer = client.manage("POST", "/management/inject", body);
  if (!answer) return failed(answer.error());
  if (client.options().json) {
    std::cout << answer->dump() << "\n";
  } else {
    std::cout << "Accepted as " << answer->value("_id", "") << "\n";
  }
  return 0;
}

int list_sessions(Client& client, const Arguments& args) {
  std::string path = "/management/sessions?limit=" + std::to_string(args.limit);
  if (!args.project.empty()) path += "&projectId=" + encode(args.project);
  auto page = client.manage("GET", path);
  if (!page) return failed(page.error());
  if (client.options().json) {
    std::cout << page->dump() << "\n";
    return 0;
  }
  for (const auto& session : page->at("items")) {
    std::cout << session.value("userId", "") << "  " << session.value("sessionId", "") << "  "
              << (session.value("busy", false) ? "busy" : "idle") << "  inbox "
              << session.value("inboxSize", 0) << "  outputs " << session.value("lastOutputSeq", 0)
              << "  " << session.value("lastActivityAt", "") << "\n";
  }
  return 0;
}

int show_session(Client& client, const Arguments& args) {
  auto session = client.manage("GET", "/management/sessions/show" + session_query(args));
  if (!session) return failed(session.error());
  std::cout << session->dump(client.options().json ? -1 : 2) << "\n";
  return 0;
}

int reset_session(Client& client, const Arguments& args) {
  auto done = client.manage("POST", "/management/sessions/reset", session_body(args));
  if (!done) return failed(done.error());
  if (!client.options().json) std::cout << "Reset. What waits in its inbox runs now.\n";
  return 0;
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
  list->add_option("--project", args->project, "Only those of this project's id");
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

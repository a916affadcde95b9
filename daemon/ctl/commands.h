#pragma once

#include <functional>
#include <string>

#include "daemon/ctl/client.h"
#include "daemon/ctl/output.h"

namespace CLI {
class App;
}

namespace conversed::ctl {

// The command of a parsed command line. The chosen subcommand sets it; main runs it once. Returns
// the exit code: 0 done, 1 failed.
using Action = std::function<int(Client&)>;

// Each adds its subcommands to `app`; a chosen one sets `action`. `action` must outlive the parse.
void add_project_commands(CLI::App& app, Action& action);       // import, export, apikey
void add_account_commands(CLI::App& app, Action& action);       // user, oauth-client, organisation
void add_conversation_commands(CLI::App& app, Action& action);  // inject, chat, sessions
void add_dead_letter_commands(CLI::App& app, Action& action);   // deadletters
void add_data_commands(CLI::App& app, Action& action);          // backup, restore, keys, users
void add_flow_commands(CLI::App& app, Action& action);          // flow check, graph, test
void add_version_commands(CLI::App& flow, Action& action);      // flow versions, diff, rollback
void add_connection_commands(CLI::App& app, Action& action);    // connections
void add_job_commands(CLI::App& app, Action& action);           // jobs
void add_schedule_commands(CLI::App& app, Action& action);      // schedules
void add_timer_commands(CLI::App& app, Action& action);         // timers, proactive
void add_audit_command(CLI::App& app, Action& action);          // audit
void add_status_command(CLI::App& app, Action& action);         // status

// When to inject a message, if not at once.
struct Times {
  std::string at;  // at most one of the first three
  std::string in;
  std::string cron;
  std::string timezone;
  bool preview = false;
  [[nodiscard]] bool later() const { return !at.empty() || !in.empty() || !cron.empty(); }
};
// `times` must outlive the parse. The first adds no `--preview`.
void add_when_options(CLI::App& command, Times& times);
void add_time_options(CLI::App& command, Times& times);
// As a body for the management routes.
[[nodiscard]] nlohmann::json times_body(const Times& times);
int inject_later(Client& client, const nlohmann::json& message, const Times& times);

// `conversectl chat`: a conversation in the terminal. Shows all outputs as they come, also those of
// injects and follow-ups. Ends with the input.
int chat(Client& client, const std::string& url_token, const std::string& user_id,
         const std::string& session_id);

// The whole text of a file or pipe. `not_found`, with its name: it does not exist, is a folder, or
// can't be read to its end.
[[nodiscard]] model::Result<std::string> read_file(const std::string& path);

}  // namespace conversed::ctl

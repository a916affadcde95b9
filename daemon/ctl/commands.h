#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/ctl/command.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace conversed::ctl {

// An id for the examples in help texts.
inline constexpr const char* some_id = "6f9619ff8b86d011b42d00c0";

// The rows of each file.
[[nodiscard]] Group completion_commands();                 // completion
[[nodiscard]] std::vector<Group> project_commands();       // import, export, apikey, connections
[[nodiscard]] std::vector<Group> account_commands();       // user, oauth-client, organisation
[[nodiscard]] std::vector<Group> conversation_commands();  // inject, chat, sessions, deadletters
[[nodiscard]] std::vector<Group> data_commands();          // backup, restore, keys, users' data
[[nodiscard]] std::vector<Group> delivery_commands();      // deliveries, endpoints
[[nodiscard]] std::vector<Group> flow_commands();          // flow
[[nodiscard]] std::vector<Group> job_commands();           // jobs
[[nodiscard]] std::vector<Group> receipt_commands();       // receipt
[[nodiscard]] std::vector<Group> login_commands();         // login, logout, tokens
[[nodiscard]] std::vector<Group> timer_commands();         // timers, schedules, proactive
[[nodiscard]] std::vector<Group> why_command();            // why

// All rows.
[[nodiscard]] std::vector<Group> all_commands();

// The chosen command. Returns the exit code: 0 done, 1 failed.
using Action = std::function<int(Client&)>;

// The arguments of the program. `--watch` without a number gets its default.
[[nodiscard]] std::vector<std::string> arguments_of(int argc, char** argv);

// Prints why the arguments are wrong, with the name that is meant by a misspelled one. Returns the
// exit code of wrong usage.
int report_usage(const CLI::App& app, const CLI::ParseError& error);

// Adds all commands. Only the commands that the arguments `words` name get their options: the
// options of the others would take most of a short run. The chosen command sets `action`, which
// must outlive the parse.
void add_commands(CLI::App& app, Action& action, const std::vector<std::string>& words);

// Prints the times of a schedule that was made or moved. With `--preview`: the times that it would
// have.
void show_times(const Fields& schedule, const Values& values);

// `conversectl chat`: a conversation in the terminal. Shows all outputs as they come, including
// outputs of injects and follow-ups. Returns when the input ends.
int chat(Client& client, const std::string& url_token, const std::string& user_id,
         const std::string& session_id);

// The options that choose rows of sessions: `--project`, `--endpoint`, `--user`, `--session`,
// `--older-than` and `--newer-than`. Then `more`.
[[nodiscard]] std::vector<Option> row_filter_options(std::vector<Option> more);
// Their check: `--user` and `--session` name a session only together, and with `--endpoint`.
[[nodiscard]] std::string check_row_filter(const Values& values);

// A command that sends `POST PATH/{ID}/VERB`, or `POST PATH/VERB` with the options that choose, and
// shows the progress of the job that this begins.
struct Bulk {
  std::string path;  // "/management/deliveries"
  std::string verb;
  std::string done;  // the message about one row, such as "Retried {ID}"
  std::vector<Option> filter;
  std::string note{};  // the message behind the counts of many rows
};
[[nodiscard]] Command bulk_command(std::string name, Help help, Option id, const Bulk& bulk);

// `flows delete`, `endpoints delete`: deletes the part that `find` finds, and tells what uses it.
[[nodiscard]] Command delete_command(const std::string& group, const std::string& part, Find find);

// Shows a job's progress until it ends. Returns the exit code: 0 only if the job is done.
int watch_job(Client& client, const std::string& id);

}  // namespace conversed::ctl

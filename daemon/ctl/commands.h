#pragma once

#include <functional>
#include <string>

#include "daemon/ctl/client.h"

namespace CLI {
class App;
}

namespace conversed::ctl {

// What a parsed command line asks for; set by the chosen subcommand, run once by main. The result
// is the exit code: 0 done, 1 failed.
using Action = std::function<int(Client&)>;

// Each adds its subcommands to `app`; a chosen one sets `action`. `action` must outlive the parse.
void add_project_commands(CLI::App& app, Action& action);       // import, apikey
void add_account_commands(CLI::App& app, Action& action);       // user, oauth-client, organisation
void add_conversation_commands(CLI::App& app, Action& action);  // inject, chat, sessions
void add_dead_letter_commands(CLI::App& app, Action& action);   // deadletters
void add_data_commands(CLI::App& app, Action& action);   // backup, restore, rotate-key, users-data
void add_flow_commands(CLI::App& app, Action& action);   // flow check, graph, test
void add_status_command(CLI::App& app, Action& action);  // status

// `conversectl chat`: a conversation in the terminal. Everything the Flow says is shown as it
// comes, what injects and follow-ups say, too. Ends with the input.
int chat(Client& client, const std::string& url_token, const std::string& user_id,
         const std::string& session_id);

// Prints the error to stderr and gives the exit code of a failed command.
int failed(const model::Error& error);

}  // namespace conversed::ctl

// conversectl user, oauth-client, organisation.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/ctl/commands.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;

// The values of the subcommands' options; owned by the callbacks that read them.
struct Arguments {
  std::string name;
  std::string email;
  std::string project;
  std::string id;
  std::vector<std::string> roles;
  std::vector<std::string> redirect_uris;
  bool is_public = false;
  bool password_grant = false;
  bool password_stdin = false;
};
using ArgumentsPtr = std::shared_ptr<Arguments>;

// What the daemon answered, as programs read it, or one line for people.
int print(const Client& client, const json& answer, const std::string& line) {
  std::cout << (client.options().json ? answer.dump() : line) << "\n";
  return 0;
}

// The password that the command is to set: a line of standard input, or asked for twice.
model::Result<std::string> new_password(const Arguments& args) {
  if (args.password_stdin) {
    std::string password;
    if (!std::getline(std::cin, password) || password.empty()) {
      return model::fail(model::Errc::invalid_argument, "there is no password on standard input");
    }
    return password;
  }
  auto password = prompt_password("New password of " + args.email);
  if (!password) return password;
  auto again = prompt_password("The same again");
  if (!again) return again;
  if (*password != *again) {
    return model::fail(model::Errc::invalid_argument, "the two passwords differ");
  }
  return password;
}

int add_user(Client& client, const Arguments& args) {
  json body{{"email", args.email}, {"roles", args.roles}};
  if (!args.name.empty()) body["name"] = args.name;
  if (!args.project.empty()) body["project"] = args.project;
  if (args.password_stdin) {
    auto password = new_password(args);
    if (!password) return failed(password.error());
    body["password"] = *password;
  }
  auto user = client.manage("POST", "/management/users", body);
  if (!user) return failed(user.error());
  return print(client, *user,
               "Added " + args.email + " (" + user->value("_id", "") + ")" +
                   (args.password_stdin ? "" : ", without a password: see `user passwd`"));
}

int set_password(Client& client, const Arguments& args) {
  auto password = new_password(args);
  if (!password) return failed(password.error());
  auto done = client.manage("POST", "/management/users/password",
                            {{"user", args.email}, {"password", *password}});
  if (!done) return failed(done.error());
  if (!client.options().json) std::cout << "Changed the password of " << args.email << "\n";
  return 0;
}

std::string joined(const json& list) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ",") + item.get<std::string>();
  return text;
}

int list_users(Client& client) {
  auto users = client.manage("GET", "/management/users");
  if (!users) return failed(users.error());
  if (client.options().json) return print(client, *users, "");
  for (const auto& user : users->at("items")) {
    std::cout << user.value("_id", "") << "  " << user.value("email", "") << "  "
              << joined(user.at("roles"))
              << (user.value("hasPassword", false) ? "" : "  (no password)") << "\n";
  }
  return 0;
}

int add_client(Client& client, const Arguments& args) {
  auto made = client.manage("POST", "/management/oauth/clients",
                            {{"name", args.name},
                             {"public", args.is_public},
                             {"redirectUris", args.redirect_uris},
                             {"passwordGrant", args.password_grant}});
  if (!made) return failed(made.error());
  std::string lines = "Client id:     " + made->value("clientId", "");
  if (const auto& secret = made->at("clientSecret"); secret.is_string()) {
    lines += "\nClient secret: " + secret.get<std::string>() + "\nKeep it: it is not shown again.";
  }
  return print(client, *made, lines);
}

int list_clients(Client& client) {
  auto clients = client.manage("GET", "/management/oauth/clients");
  if (!clients) return failed(clients.error());
  if (client.options().json) return print(client, *clients, "");
  for (const auto& each : clients->at("items")) {
    std::cout << each.value("clientId", "") << "  " << each.value("name", "") << "  "
              << (each.value("public", false) ? "public" : "confidential")
              << (each.value("passwordGrant", false) ? ", password grant" : "") << "  "
              << joined(each.at("redirectUris")) << "\n";
  }
  return 0;
}

int remove_client(Client& client, const std::string& id) {
  auto done = client.manage("DELETE", "/management/oauth/clients/" + encode(id));
  if (!done) return failed(done.error());
  if (!client.options().json) std::cout << "Removed " << id << " and ended its tokens\n";
  return 0;
}

int add_organisation(Client& client, const Arguments& args) {
  auto password = new_password(args);
  if (!password) return failed(password.error());
  auto made = client.manage("POST", "/management/organisations",
                            {{"name", args.name}, {"admin", args.email}, {"password", *password}});
  if (!made) return failed(made.error());
  return print(client, *made, "Added " + args.name + " (" + made->value("_id", "") + ")");
}

int list_organisations(Client& client) {
  auto organisations = client.manage("GET", "/management/organisations");
  if (!organisations) return failed(organisations.error());
  if (client.options().json) return print(client, *organisations, "");
  for (const auto& each : organisations->at("items")) {
    const auto& used = each.at("used");
    std::cout << each.value("_id", "") << "  " << each.value("name", "") << "  in "
              << used.value("month", "") << ": " << used.at("injects") << " injects, "
              << used.at("modelTokens") << " tokens of language models\n";
  }
  return 0;
}

void add_password_flag(CLI::App& command, const ArgumentsPtr& args) {
  command.add_flag("--password-stdin", args->password_stdin,
                   "Read the password from standard input");
}

void add_user_commands(CLI::App& app, Action& action) {
  auto args = std::make_shared<Arguments>();
  auto* user = app.add_subcommand("user", "Users of the organisation")->require_subcommand(1);
  auto* add = user->add_subcommand("add", "Add a user");
  add->add_option("EMAIL", args->email, "E-mail address, by which the user signs in")->required();
  add->add_option("--name", args->name, "Name to show; default: the address");
  add->add_option("--roles", args->roles, "Roles, with commas between them")->delimiter(',');
  add->add_option("--project", args->project,
                  "Name or id of the project that the roles are for; default: the organisation");
  add_password_flag(*add, args);
  add->callback(
      [args, &action] { action = [args](Client& client) { return add_user(client, *args); }; });
  auto* passwd = user->add_subcommand("passwd", "Set a user's password; ends the OAuth tokens");
  passwd->add_option("EMAIL", args->email, "Whose")->required();
  add_password_flag(*passwd, args);
  passwd->callback(
      [args, &action] { action = [args](Client& client) { return set_password(client, *args); }; });
  user->add_subcommand("list", "List the users")->callback([&action] { action = list_users; });
}

void add_oauth_client_commands(CLI::App& app, Action& action) {
  auto args = std::make_shared<Arguments>();
  auto* clients = app.add_subcommand("oauth-client", "OAuth 2.0 clients of the organisation")
                      ->require_subcommand(1);
  auto* add = clients->add_subcommand("add", "Add a client and print its secret, once");
  add->add_option("--name", args->name, "What users see when they sign in")->required();
  add->add_flag("--public", args->is_public,
                "It can't keep a secret (a browser page, an app): gets none and has to use PKCE");
  add->add_option("--redirect-uri", args->redirect_uris,
                  "Where users go after signing in, exactly; may be given several times")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add->add_flag("--password-grant", args->password_grant,
                "It may exchange users' passwords for tokens itself");
  add->callback(
      [args, &action] { action = [args](Client& client) { return add_client(client, *args); }; });
  clients->add_subcommand("list", "List clients, without their secrets")->callback([&action] {
    action = list_clients;
  });
  auto* remove = clients->add_subcommand("remove", "Remove a client and end its tokens");
  remove->add_option("ID", args->id, "The client's id")->required();
  remove->callback([args, &action] {
    action = [args](Client& client) { return remove_client(client, args->id); };
  });
}

void add_organisation_commands(CLI::App& app, Action& action) {
  auto args = std::make_shared<Arguments>();
  auto* organisation = app.add_subcommand("organisation", "Organisations of the installation")
                           ->require_subcommand(1);
  auto* add = organisation->add_subcommand("add", "Add an organisation and its administrator");
  add->add_option("NAME", args->name, "Its name")->required();
  add->add_option("--admin", args->email, "The administrator's e-mail address")->required();
  add_password_flag(*add, args);
  add->callback([args, &action] {
    action = [args](Client& client) { return add_organisation(client, *args); };
  });
  organisation->add_subcommand("list", "List the organisations, and what each has used this month")
      ->callback([&action] { action = list_organisations; });
}

}  // namespace

void add_account_commands(CLI::App& app, Action& action) {
  add_user_commands(app, action);
  add_oauth_client_commands(app, action);
  add_organisation_commands(app, action);
}

}  // namespace conversed::ctl

// conversectl user, oauth-client, organisation.
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "daemon/ctl/lookup.h"
#include "daemon/ctl/subcommand.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;

struct Arguments {
  std::string name;
  std::string email;
  std::string project;
  std::string id;
  std::vector<std::string> roles;
  std::vector<std::string> redirect_uris;
  std::vector<std::string> domains;
  bool is_public = false;
  bool password_grant = false;
  bool password_stdin = false;
};

// The password to set: a line of standard input, or asked for twice.
model::Result<std::string> new_password(const Arguments& args) {
  if (args.password_stdin) {
    std::string password;
    if (!std::getline(std::cin, password) || password.empty()) {
      return model::fail(model::Errc::invalid_argument,
                         "there is no password on standard input: write it there as one line");
    }
    return password;
  }
  auto password = prompt_password("New password of " + args.email);
  if (!password) return password;
  auto again = prompt_password("The same again");
  if (!again) return again;
  if (*password != *again) {
    return model::fail(model::Errc::invalid_argument,
                       "the two passwords differ: type the same one twice");
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
  return print(client, client.manage("POST", "/management/users", body), [&](const Fields& user) {
    say("Added " + args.email + " (" + user.text("_id") + ")" +
        (args.password_stdin ? "" : ", without a password: set one by `user passwd`"));
  });
}

int set_password(Client& client, const Arguments& args) {
  auto password = new_password(args);
  if (!password) return failed(password.error());
  return print(client,
               client.manage("POST", "/management/users/password",
                             {{"user", args.email}, {"password", *password}}),
               [&](const Fields&) { say("Changed the password of " + args.email); });
}

int list_users(Client& client, const Arguments&) {
  return print(client, client.manage("GET", "/management/users"), [](const Fields& page) {
    Table table({"ID", "EMAIL", "NAME", "PASSWORD", "ROLES"});
    for (const Fields& user : page.items()) {
      table.add({user.text("_id"), user.text("email"), user.text("name"),
                 user.flag("hasPassword") ? "yes" : "no", joined(user.texts("roles"))});
    }
    table.print("No users.");
  });
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// The id of the user with this address or id.
model::Result<std::string> find_user(Client& client, const std::string& wanted) {
  auto users = client.manage("GET", "/management/users");
  if (!users) return model::fail(users.error());
  for (const Fields& user : Fields(*users).items()) {
    auto id = user.text("_id");
    if (id == wanted || lower(user.text("email")) == lower(wanted)) return id;
  }
  return model::fail(model::Errc::not_found,
                     "there is no user " + wanted + "; `user list` shows all users");
}

// An empty text stands for no entry.
std::vector<std::string> without_empty(std::vector<std::string> list) {
  std::erase(list, "");
  return list;
}

int set_roles(Client& client, const Arguments& args) {
  auto id = find_user(client, args.email);
  if (!id) return failed(id.error());
  return print(client,
               client.manage("PUT", "/management/users/" + *id + "/roles",
                             {{"roles", without_empty(args.roles)}}),
               [](const Fields& user) {
                 const auto roles = joined(user.texts("roles"));
                 say("The roles of " + user.text("email") +
                     " in the organisation: " + (roles.empty() ? "none" : roles));
               });
}

int remove_user(Client& client, const Arguments& args) {
  auto id = find_user(client, args.email);
  if (!id) return failed(id.error());
  return print(client, client.manage("DELETE", "/management/users/" + *id), [&](const Fields&) {
    say("Removed " + args.email + " and ended the user's keys and tokens");
  });
}

int add_client(Client& client, const Arguments& args) {
  return print(client,
               client.manage("POST", "/management/oauth/clients",
                             {{"name", args.name},
                              {"public", args.is_public},
                              {"redirectUris", args.redirect_uris},
                              {"passwordGrant", args.password_grant}}),
               [](const Fields& made) {
                 say("Client id:     " + made.text("clientId"));
                 if (!made.has("clientSecret")) return;
                 say("Client secret: " + made.text("clientSecret"));
                 say("Keep it: it is not shown again.");
               });
}

int list_clients(Client& client, const Arguments&) {
  return print(client, client.manage("GET", "/management/oauth/clients"), [](const Fields& page) {
    Table table({"ID", "NAME", "KIND", "PASSWORD GRANT", "REDIRECT URIS"});
    for (const Fields& each : page.items()) {
      table.add({each.text("clientId"), each.text("name"),
                 each.flag("public") ? "public" : "confidential",
                 each.flag("passwordGrant") ? "yes" : "no", joined(each.texts("redirectUris"))});
    }
    table.print("No OAuth clients.");
  });
}

int remove_client(Client& client, const Arguments& args) {
  return print(client, client.manage("DELETE", "/management/oauth/clients/" + encode(args.id)),
               [&](const Fields&) { say("Removed " + args.id + " and ended its tokens"); });
}

int add_organisation(Client& client, const Arguments& args) {
  auto password = new_password(args);
  if (!password) return failed(password.error());
  return print(
      client,
      client.manage("POST", "/management/organisations",
                    {{"name", args.name}, {"admin", args.email}, {"password", *password}}),
      [&](const Fields& made) { say("Added " + args.name + " (" + made.text("_id") + ")"); });
}

int set_domains(Client& client, const Arguments& args) {
  auto id = find_id(client, "/management/organisations", "organisation", args.name);
  if (!id) return failed(id.error());
  return print(client,
               client.manage("PUT", "/management/organisations/" + *id + "/domains",
                             {{"domains", without_empty(args.domains)}}),
               [](const Fields& organisation) {
                 const auto domains = joined(organisation.texts("domains"));
                 say("The e-mail domains of " + organisation.text("name") + ": " +
                     (domains.empty() ? "none" : domains));
                 for (const auto& stranger : organisation.texts("strangers")) {
                   say("A user of another organisation keeps " + stranger);
                 }
               });
}

int list_organisations(Client& client, const Arguments&) {
  return print(client, client.manage("GET", "/management/organisations"), [](const Fields& page) {
    Table table({"ID", "NAME", "MONTH", "INJECTS", "MODEL TOKENS", "DOMAINS"});
    for (const Fields& each : page.items()) {
      const Fields used = each.object("used");
      table.add({each.text("_id"), each.text("name"), used.text("month"), used.number("injects"),
                 used.number("modelTokens"), joined(each.texts("domains"))});
    }
    table.print("No organisations.");
  });
}

void add_password_flag(CLI::App& command, Arguments& args) {
  command.add_flag("--password-stdin", args.password_stdin,
                   "Read the password from standard input");
}

void add_user_commands(CLI::App& app, Action& action) {
  const Subcommands<Arguments> user(add_group(app, "user", "Users of the organisation"), action);
  auto& args = user.arguments();
  auto& add = user.add("add",
                       {"Add a user", "ann@example.com --roles conversationAdmin --project Shop",
                        "without --password-stdin, set a password by `user passwd`."},
                       add_user);
  add.add_option("EMAIL", args.email, "E-mail address, by which the user signs in")->required();
  add.add_option("--name", args.name, "Name to show; default: the address");
  add.add_option("--roles", args.roles, "Roles, with commas between them")->delimiter(',');
  add.add_option("--project", args.project,
                 "Name or id of the project that the roles are for; default: the organisation");
  add_password_flag(add, args);

  auto& passwd = user.add("passwd",
                          {"Set a user's password and end the user's OAuth tokens",
                           "ann@example.com", "the user signs in again with the new password."},
                          set_password);
  passwd.add_option("EMAIL", args.email, "E-mail address of the user")->required();
  add_password_flag(passwd, args);

  auto& roles = user.add(
      "roles", {"Set a user's roles in the organisation", "ann@example.com --roles userAdmin"},
      set_roles);
  roles
      .add_option("--roles", args.roles,
                  "All roles of the user, with commas between them; \"\" for none")
      ->delimiter(',')
      ->required();
  auto& remove =
      user.add("remove", {"Remove a user and end the user's keys and tokens", "ann@example.com"},
               remove_user);
  for (auto* command : {&roles, &remove}) {
    command->add_option("EMAIL", args.email, "E-mail address or id of the user")->required();
  }
  user.add("list", {"List the users", ""}, list_users);
}

void add_oauth_client_commands(CLI::App& app, Action& action) {
  const Subcommands<Arguments> clients(
      add_group(app, "oauth-client", "OAuth 2.0 clients of the organisation"), action);
  auto& args = clients.arguments();
  auto& add = clients.add("add",
                          {"Add a client and print its secret, once",
                           "--name Shop --redirect-uri https://shop.example.com/signed-in",
                           "give the id and the secret to the application."},
                          add_client);
  add.add_option("--name", args.name, "Name that users see when they sign in")->required();
  add.add_flag("--public", args.is_public,
               "It can't keep a secret (a browser page, an app): it gets none and must use PKCE");
  add.add_option("--redirect-uri", args.redirect_uris,
                 "Exact URI to go to after signing in; may be given several times")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add.add_flag("--password-grant", args.password_grant,
               "It may exchange users' passwords for tokens itself");
  clients.add("list", {"List clients, without their secrets", ""}, list_clients);
  clients
      .add("remove", {"Remove a client and end its tokens", "6f9619ff8b86d011b42d00c0"},
           remove_client)
      .add_option("ID", args.id, "The client's id")
      ->required();
}

void add_organisation_commands(CLI::App& app, Action& action) {
  const Subcommands<Arguments> organisation(
      add_group(app, "organisation", "Organisations of the installation"), action);
  auto& args = organisation.arguments();
  auto& add = organisation.add(
      "add",
      {"Add an organisation and its administrator", "Bakery --admin bea@bakery.example",
       "the administrator adds users by `user add` and imports a bundle by `import`."},
      add_organisation);
  add.add_option("NAME", args.name, "Its name")->required();
  add.add_option("--admin", args.email, "The administrator's e-mail address")->required();
  add_password_flag(add, args);
  auto& domains =
      organisation.add("domains",
                       {"Set the e-mail domains in which only this organisation can add users",
                        "Bakery --domains bakery.example"},
                       set_domains);
  domains.add_option("ORGANISATION", args.name, "Its name or id")->required();
  domains
      .add_option("--domains", args.domains,
                  "All domains of the organisation, with commas between them; \"\" for none")
      ->delimiter(',')
      ->required();
  organisation.add("list", {"List the organisations and their use in this month", ""},
                   list_organisations);
}

}  // namespace

void add_account_commands(CLI::App& app, Action& action) {
  add_user_commands(app, action);
  add_oauth_client_commands(app, action);
  add_organisation_commands(app, action);
}

}  // namespace conversed::ctl

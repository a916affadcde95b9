// conversectl user, oauth-client, organisation.
#include <iostream>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/names.h"
#include "store/text/joined.h"

namespace conversed::ctl {
namespace {

using Kind = Option::Kind;
using model::Errc;
using model::Result;

// Takes the new password from a line of standard input, or asks for it twice.
Result<void> add_password(const Values& values, Request& request) {
  if (values.flag("--password-stdin")) {
    std::string password;
    if (!std::getline(std::cin, password) || password.empty()) {
      return model::fail(Errc::invalid_argument,
                         "there is no password on standard input: write it there as one line");
    }
    request.body["password"] = password;
    return {};
  }
  const auto& admin = values.text("--admin");
  auto password =
      prompt_password("New password of " + (admin.empty() ? values.text("EMAIL") : admin));
  if (!password) return model::fail(password.error());
  auto again = prompt_password("The same password again");
  if (!again) return model::fail(again.error());
  if (*password != *again) {
    return model::fail(Errc::invalid_argument, "the two passwords differ: type the same one twice");
  }
  request.body["password"] = *password;
  return {};
}

Option password_flag() {
  return Option{"--password-stdin", "Read the password from standard input", Kind::flag};
}

std::string joined_or_none(const std::vector<std::string>& texts) {
  return texts.empty() ? "none" : text::joined(texts, ",");
}

// For help texts. test_ctl.py compares it with the daemon's list.
constexpr const char* all_roles =
    "projectAdmin, tokenAdmin, memberManager, conversationAdmin, proactiveAdmin, connectionAdmin, "
    "userAdmin, platformAdmin";

Command add_user() {
  return Command{
      "user add",
      {"Add a user", "ann@example.com --roles conversationAdmin --project Shop",
       "without --password-stdin, set a password by `user passwd`."},
      {Option{"EMAIL", "E-mail address, by which the user signs in"}.in_field("email").require(),
       Option{"--name", "Name to show; default: the address"}.in_field("name"),
       Option{"--roles", std::string("Roles, with commas between them, of ") + all_roles,
              Kind::commas}
           .in_field("roles"),
       Option{"--project",
              "Name or id of the project that the roles are for; default: the organisation"}
           .in_field("project"),
       password_flag()},
      "POST /management/users",
      [](const Fields& user, const Values& values) {
        say(filled("Added {EMAIL} ({_id})", user, values) +
            (values.flag("--password-stdin") ? ""
                                             : ", without a password: set one by `user passwd`"));
      }}
      .prepared_by([](const Values& values, Request& request) {
        return values.flag("--password-stdin") ? add_password(values, request) : Result<void>();
      })
      .with_password();
}

Command set_roles() {
  return Command{
      "user roles",
      {"Set a user's roles in the organisation", "ann@example.com --roles userAdmin"},
      {Option{"--roles",
              std::string("All roles of the user, with commas between them, of ") + all_roles +
                  "; \"\" for none",
              Kind::commas}
           .in_field("roles")
           .require(),
       Option{"EMAIL", "E-mail address or id of the user"}.require().found_by(find_user)},
      "PUT /management/users/{EMAIL}/roles",
      [](const Fields& user, const Values& values) {
        say(filled("The roles of {email} in the organisation: ", user, values) +
            joined_or_none(user.texts("roles")));
      }};
}

Group user_commands() {
  return {
      "user",
      "Users of the organisation",
      {add_user(),
       Command{"user passwd",
               {"Set a user's password and end the user's OAuth tokens", "ann@example.com",
                "the user signs in again with the new password."},
               {Option{"EMAIL", "E-mail address of the user"}.in_field("user").require(),
                password_flag()},
               "POST /management/users/password",
               says({"Changed the password of {EMAIL}"})}
           .prepared_by(add_password)
           .with_password(),
       set_roles(),
       Command{"user remove",
               {"Remove a user and end the user's keys and tokens", "ann@example.com"},
               {Option{"EMAIL", "E-mail address or id of the user"}.require().found_by(find_user)},
               "DELETE /management/users/{EMAIL}",
               says({"Removed {EMAIL} and ended the user's keys and tokens"})},
       Command{"user list",
               {"List the users"},
               {},
               "GET /management/users",
               rows({column("ID", "_id"), column("EMAIL", "email"), column("NAME", "name"),
                     column("PASSWORD", "hasPassword"), column("ROLES", "roles")},
                    "No users.")}}};
}

Command add_client() {
  return Command{
      "oauth-client add",
      {"Add a client and print its secret, once",
       "--name Shop --redirect-uri https://shop.example.com/signed-in",
       "give the id and the secret to the application."},
      {Option{"--name", "Name that users see when they sign in"}.in_field("name").require(),
       Option{"--public",
              "Public client, such as a browser page or an app: it has no secret and must use PKCE",
              Kind::flag}
           .in_field("public"),
       Option{"--redirect-uri", "Exact URI to go to after signing in; may be given several times",
              Kind::repeated}
           .in_field("redirectUris"),
       Option{"--password-grant", "Let the client exchange users' passwords for tokens", Kind::flag}
           .in_field("passwordGrant")},
      "POST /management/oauth/clients",
      [](const Fields& made, const Values&) {
        say("Client id:     " + made.text("clientId"));
        if (!made.has("clientSecret")) return;
        say("Client secret: " + made.text("clientSecret"));
        say("Keep it: it is not shown again.");
      }}
      .with_password();
}

Cell kind_cell(const Fields& client, const char* field) {
  return client.flag(field) ? "public" : "confidential";
}

Group client_commands() {
  return {
      "oauth-client",
      "OAuth 2.0 clients of the organisation",
      {add_client(),
       Command{"oauth-client list",
               {"List clients, without their secrets"},
               {},
               "GET /management/oauth/clients",
               rows({column("ID", "clientId"), column("NAME", "name"),
                     column("KIND", "public", kind_cell), column("PASSWORD GRANT", "passwordGrant"),
                     column("REDIRECT URIS", "redirectUris")},
                    "No OAuth clients.")},
       Command{"oauth-client remove",
               {"Remove a client and end its tokens", "6f9619ff8b86d011b42d00c0"},
               {Option{"ID", "The client's id or name"}.require().found_by(find_oauth_client)},
               "DELETE /management/oauth/clients/{ID}",
               says({"Removed {ID} and ended its tokens"})}}};
}

Command add_organisation() {
  return Command{
      "organisation add",
      {"Add an organisation and its administrator", "Bakery --admin bea@bakery.example",
       "the administrator adds users by `user add` and imports a bundle by `import`."},
      {Option{"NAME", "Its name"}.in_field("name").require(),
       Option{"--admin", "The administrator's e-mail address"}.in_field("admin").require(),
       password_flag()},
      "POST /management/organisations",
      says({"Added {NAME} ({_id})"})}
      .prepared_by(add_password)
      .with_password();
}

Command set_domains() {
  return Command{"organisation domains",
                 {"Set the e-mail domains in which only this organisation can add users",
                  "Bakery --domains bakery.example"},
                 {Option{"ORGANISATION", "Its name or id"}.require().found_by(find_organisation),
                  Option{"--domains",
                         "All domains of the organisation, with commas between them; \"\" for none",
                         Kind::commas}
                      .in_field("domains")
                      .require()},
                 "PUT /management/organisations/{ORGANISATION}/domains",
                 [](const Fields& organisation, const Values& values) {
                   say(filled("The e-mail domains of {name}: ", organisation, values) +
                       joined_or_none(organisation.texts("domains")));
                   for (const auto& stranger : organisation.texts("strangers")) {
                     say("A user of another organisation keeps " + stranger);
                   }
                 }};
}

Group organisation_commands() {
  constexpr auto used = [](const Fields& organisation, const char* field) {
    return usual_cell(organisation.object("used"), field);
  };
  return {"organisation",
          "Organisations of the installation",
          {add_organisation(), set_domains(),
           Command{"organisation list",
                   {"List the organisations and their use in this month"},
                   {},
                   "GET /management/organisations",
                   rows({column("ID", "_id"), column("NAME", "name"),
                         column("MONTH", "month", used), column("INJECTS", "injects", used),
                         column("MODEL TOKENS", "modelTokens", used), column("DOMAINS", "domains")},
                        "No organisations.")}}};
}

}  // namespace

std::vector<Group> account_commands() {
  return {user_commands(), client_commands(), organisation_commands()};
}

}  // namespace conversed::ctl

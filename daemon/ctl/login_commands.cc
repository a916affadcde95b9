// conversectl login, logout, tokens.
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/credentials.h"
#include "daemon/ctl/names.h"

namespace conversed::ctl {
namespace {

using model::Errc;
using model::fail;
using model::Result;
using nlohmann::json;

std::vector<Option> token_options(const char* scopes, const char* preset) {
  return {Option{"--scope",
                 std::string("What it is for: all, read, or a role such as "
                             "conversationAdmin; may be given several times; ") +
                     scopes,
                 Option::Kind::repeated}
              .in_field("scopes"),
          Option{"--expires", "How long it is valid, such as 12h or 90d; at most 366d"}
              .in_field("expires")
              .with_preset(preset)};
}

Group token_commands() {
  auto options = token_options("required", "30d");
  options.front().required = true;
  options.push_back(
      Option{"--name", "Name, such as the script that uses it"}.in_field("name").require());
  return {"tokens",
          "Tokens that stand for your password, for scripts",
          {Command{"tokens create",
                   {"Make a token and print it, once; it takes your password",
                    "--name \"backup script\" --scope platformAdmin --expires 90d",
                    "set CONVERSECTL_PASSWORD to it; `tokens revoke` ends it."},
                   options,
                   "POST /management/tokens",
                   [](const Fields& token, const Values&) {
                     note("Token " + token.text("name") + " of " + token.text("user") +
                          ", valid until " + full_time(token.number("expiresAt"), screen()) +
                          ". Keep it: it is not shown again.");
                     say(token.text("token"));
                   }}
               .with_password(),
           Command{"tokens list",
                   {"List tokens, without their secrets"},
                   {},
                   "GET /management/tokens",
                   rows({column("ID", "_id"), column("USER", "user"), column("SCOPES", "scopes"),
                         column("CREATED", "createdAt", time_cell),
                         column("EXPIRES", "expiresAt", time_cell), column("NAME", "name")},
                        "No tokens.")},
           Command{"tokens revoke",
                   {"Revoke a token at once", some_id},
                   {Option{"ID", "The token's id or name"}.require().found_by(find_token)},
                   "DELETE /management/tokens/{ID}",
                   says({"Revoked {ID}"})}}};
}

Result<std::string> prompt_email() {
  if (isatty(STDIN_FILENO) == 0) {
    return fail(Errc::unauthenticated, "no user is named: give --as EMAIL");
  }
  std::cerr << "E-mail address: " << std::flush;
  std::string email;
  std::getline(std::cin, email);
  return email;
}

// The options of a client with the user's password, never a token.
Result<Options> with_own_password(Options options) {
  if (options.as.empty()) {
    auto email = prompt_email();
    if (!email) return fail(email.error());
    options.as = std::move(*email);
  }
  if (const char* password = std::getenv("CONVERSECTL_PASSWORD"); password != nullptr) {
    options.password = password;
    return options;
  }
  auto password = prompt_password("Password of " + options.as);
  if (!password) {
    return fail(password.error().code, password.error().message + ", or set CONVERSECTL_PASSWORD");
  }
  options.password = std::move(*password);
  return options;
}

// A token is named after the machine that keeps it.
std::string name_of_token() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) return "conversectl";
  return std::string("conversectl on ") + host.data();
}

Options at_url(const Client& client, const Values& values) {
  Options options = client.options();
  if (const auto& url = values.text("URL"); !url.empty()) options.url = url;
  while (options.url.ends_with('/')) options.url.pop_back();
  return options;
}

// The daemon ends the token of a login that is not kept any more. A failure is a note: the token
// expires anyway.
void revoke(const Options& options, const Login& login) {
  Options with_token = options;
  with_token.as = login.email;
  with_token.password = login.token;
  Client client(with_token);
  const auto revoked = client.manage("DELETE", "/management/tokens/" + encode(login.id));
  if (!revoked) note("The earlier token was not revoked: " + revoked.error().message);
}

int log_in(Client& client, const Values& values) {
  auto options = with_own_password(at_url(client, values));
  if (!options) return failed(options.error());
  auto earlier = stored_login(options->url);
  if (!earlier) return failed(earlier.error());
  auto scopes = values.lists.at("--scope");
  if (scopes.empty()) scopes = {"all"};
  Client own(*options);
  const auto made = own.manage(
      "POST", "/management/tokens",
      {{"name", name_of_token()}, {"scopes", scopes}, {"expires", values.text("--expires")}});
  if (!made) return failed(made.error());
  const Fields token(*made);
  const Login login{token.text("user"), token.text("token"), token.text("_id"),
                    token.number("expiresAt")};
  if (auto stored = store_login(options->url, login); !stored) {
    revoke(*options, login);
    return failed(stored.error());
  }
  if (*earlier) revoke(*options, **earlier);
  const json shown{{"url", options->url}, {"email", login.email}, {"expiresAt", login.expires_at}};
  return print(client, shown, [&](const Fields& done) {
    say("Signed in at " + done.text("url") + " as " + done.text("email") + " until " +
        full_time(done.number("expiresAt"), screen()));
  });
}

int log_out(Client& client, const Values& values) {
  const Options options = at_url(client, values);
  auto login = stored_login(options.url);
  if (!login) return failed(login.error());
  if (!*login) return failed({Errc::not_found, "you are not signed in at " + options.url});
  if (auto removed = store_login(options.url, std::nullopt); !removed) {
    return failed(removed.error());
  }
  revoke(options, **login);
  return print(client, json{{"url", options.url}},
               [](const Fields& done) { say("Signed out at " + done.text("url")); });
}

}  // namespace

std::vector<Group> login_commands() {
  auto options = token_options("default: all", "30d");
  const Option url{"URL", "The daemon's URL; default: that of --url"};
  options.insert(options.begin(), url);
  return {{"",
           "",
           {Command{"login",
                    {"Sign in with e-mail address and password; a token is kept for later commands",
                     "https://conversed.example.com",
                     "later commands ask this daemon, unless --url names another one."},
                    options}
                .runs(log_in),
            Command{"logout",
                    {"Revoke the token of a login, and forget it", "https://conversed.example.com"},
                    {url}}
                .runs(log_out)}},
          token_commands()};
}

}  // namespace conversed::ctl

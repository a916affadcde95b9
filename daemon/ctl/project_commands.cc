// conversectl import, export, apikey.
#include <CLI/CLI.hpp>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/lookup.h"

namespace conversed::ctl {
namespace {

// The values of the `${NAME}`s that stand in the bundle, from our environment; only those leave
// this machine.
nlohmann::json referenced_environment(const std::string& text) {
  auto values = nlohmann::json::object();
  for (std::size_t at = text.find("${"); at != std::string::npos; at = text.find("${", at + 2)) {
    const std::size_t end = text.find('}', at);
    if (end == std::string::npos) break;
    const std::string name = text.substr(at + 2, end - at - 2);
    if (const char* value = std::getenv(name.c_str()); value != nullptr) values[name] = value;
  }
  return values;
}

void show_import(const Fields& report) {
  const Fields project = report.object("project");
  say("Imported " + project.text("name") + " (" + project.text("_id") + ")");
  Table table({"PART", "NAME", "VERSION OR URLTOKEN"});
  for (const Fields& flow : report.objects("flows")) {
    table.add({"Flow", flow.text("name"), std::to_string(flow.number("version"))});
  }
  for (const Fields& endpoint : report.objects("endpoints")) {
    table.add({"Endpoint", endpoint.text("name"), endpoint.text("urlToken")});
  }
  table.print("It has no Flow and no Endpoint.");
}

int import_bundle(Client& client, const std::string& path, bool check_only) {
  const auto text = read_file(path);
  if (!text) return failed(text.error());
  const nlohmann::json body{
      {"file", path}, {"text", *text}, {"environment", referenced_environment(*text)}};
  const char* route = check_only ? "/management/import?dryRun=true" : "/management/import";
  return print(client, client.manage("POST", route, body), [&](const Fields& report) {
    if (check_only) return say(path + ": no problems");
    show_import(report);
  });
}

// The bundle goes to the output or the file, and what is to be known of it to stderr.
int export_project(Client& client, const std::string& name, const std::string& path) {
  auto project = find_id(client, "/management/projects", "project", name);
  if (!project) return failed(project.error());
  auto bundle = client.manage("GET", "/management/projects/" + encode(*project) + "/export");
  if (!bundle) return failed(bundle.error());
  const auto text = Fields(*bundle).text("text");
  if (!path.empty()) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    if (!file.flush()) return failed({model::Errc::unavailable, path + ": can't be written"});
  }
  return print(client, bundle, [&](const Fields& exported) {
    // As it is: the writer of bundles escapes control characters, and the text has to import.
    if (path.empty()) std::cout << text;
    for (const std::string& variable : exported.texts("variables")) {
      note("An import needs " + variable + " in its environment");
    }
    for (const Fields& problem : exported.objects("problems")) {
      note("An import would refuse line " + std::to_string(problem.number("line")) + ": " +
           problem.text("path") + ": " + problem.text("message"));
    }
  });
}

int create_key(Client& client, const std::string& name, const std::string& user) {
  nlohmann::json body{{"name", name}};
  if (!user.empty()) body["user"] = user;
  return print(client, client.manage("POST", "/management/apikeys", body), [](const Fields& key) {
    note("API key " + key.text("name") + " of " + key.text("user") +
         ". Keep it: it is not shown again.");
    say(key.text("key"));
  });
}

int list_keys(Client& client) {
  return print(client, client.manage("GET", "/management/apikeys"), [](const Fields& page) {
    Table table({"ID", "USER", "CREATED", "NAME"});
    for (const Fields& key : page.items()) {
      table.add({key.text("_id"), key.text("user"), key.time("createdAt"), key.text("name")});
    }
    table.print("No API keys.");
  });
}

int revoke_key(Client& client, const std::string& id) {
  return print(client, client.manage("DELETE", "/management/apikeys/" + encode(id)),
               [&](const Fields&) { say("Revoked " + id); });
}

// The values of one subcommand's options; owned by the callbacks that read them.
struct Arguments {
  std::string first;
  std::string name;
  std::string user;
  bool flag = false;
};

}  // namespace

void add_project_commands(CLI::App& app, Action& action) {
  auto args = std::make_shared<Arguments>();
  auto* importing = app.add_subcommand(
      "import", "Import a project bundle (YAML or JSON); nothing changes on a problem");
  importing->add_option("BUNDLE", args->first, "The bundle's file")->required();
  importing->add_flag("--check", args->flag, "Only check it");
  importing->callback([args, &action] {
    action = [args](Client& client) { return import_bundle(client, args->first, args->flag); };
  });

  auto* exporting = app.add_subcommand(
      "export", "Print a project as a bundle that imports to the same; secrets as ${NAME}");
  exporting->add_option("PROJECT", args->first, "The project's name or id")->required();
  exporting->add_option("-o,--output", args->name, "Write to this file instead");
  exporting->callback([args, &action] {
    action = [args](Client& client) { return export_project(client, args->first, args->name); };
  });

  auto* apikey =
      app.add_subcommand("apikey", "API keys of the organisation")->require_subcommand(1);
  auto* create = apikey->add_subcommand("create", "Make a key and print it, once");
  create->add_option("--name", args->name, "What it is for")->required();
  create->add_option("--user", args->user, "E-mail of the user it acts as; default: you");
  create->callback([args, &action] {
    action = [args](Client& client) { return create_key(client, args->name, args->user); };
  });
  apikey->add_subcommand("list", "List keys, without their secrets")->callback([&action] {
    action = list_keys;
  });
  auto* revoke = apikey->add_subcommand("revoke", "End a key at once");
  revoke->add_option("ID", args->first, "The key's id")->required();
  revoke->callback([args, &action] {
    action = [args](Client& client) { return revoke_key(client, args->first); };
  });
}

model::Result<std::string> read_file(const std::string& path) {
  std::error_code unknown;  // then opening it says so
  if (std::filesystem::is_directory(path, unknown)) {
    return model::fail(model::Errc::not_found, path + ": is a folder; name a file in it");
  }
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 16 * 1024> part;
  // Not by iterators of the buffer: those throw where a read fails, the stream remembers it.
  while (file) {
    file.read(part.data(), part.size());
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad() || !file.eof()) {
    return model::fail(model::Errc::not_found, path + ": can't be read; is the path right?");
  }
  return text;
}

}  // namespace conversed::ctl

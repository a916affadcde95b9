// conversectl import, export, apikey.
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "daemon/ctl/lookup.h"
#include "daemon/ctl/subcommand.h"

namespace conversed::ctl {
namespace {

struct Arguments {
  std::string bundle;
  std::string project;
  std::string output;
  std::string name;
  std::string user;
  std::string id;
  bool check_only = false;
};

// The environment's values of the bundle's `${NAME}`s. No other variable leaves this machine.
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

int import_bundle(Client& client, const Arguments& args) {
  const std::string& path = args.bundle;
  const auto text = read_file(path);
  if (!text) return failed(text.error());
  const nlohmann::json body{
      {"file", path}, {"text", *text}, {"environment", referenced_environment(*text)}};
  const char* route = args.check_only ? "/management/import?dryRun=true" : "/management/import";
  return print(client, client.manage("POST", route, body), [&](const Fields& report) {
    if (args.check_only) return say(path + ": no problems");
    show_import(report);
  });
}

// Prints the bundle to standard output or a file, and notes about it to stderr.
int export_project(Client& client, const Arguments& args) {
  const std::string& path = args.output;
  auto project = find_id(client, "/management/projects", "project", args.project);
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

int create_key(Client& client, const Arguments& args) {
  nlohmann::json body{{"name", args.name}};
  if (!args.user.empty()) body["user"] = args.user;
  return print(client, client.manage("POST", "/management/apikeys", body), [](const Fields& key) {
    note("API key " + key.text("name") + " of " + key.text("user") +
         ". Keep it: it is not shown again.");
    say(key.text("key"));
  });
}

int list_keys(Client& client, const Arguments&) {
  return print(client, client.manage("GET", "/management/apikeys"), [](const Fields& page) {
    Table table({"ID", "USER", "CREATED", "NAME"});
    for (const Fields& key : page.items()) {
      table.add({key.text("_id"), key.text("user"), key.time("createdAt"), key.text("name")});
    }
    table.print("No API keys.");
  });
}

int revoke_key(Client& client, const Arguments& args) {
  return print(client, client.manage("DELETE", "/management/apikeys/" + encode(args.id)),
               [&](const Fields&) { say("Revoked " + args.id); });
}

}  // namespace

void add_project_commands(CLI::App& app, Action& action) {
  const Subcommands<Arguments> top(app, action);
  auto& importing = top.add("import",
                            {"Import a project bundle (YAML or JSON), or nothing if it has a "
                             "problem",
                             "shop.yaml", "`chat` talks to an Endpoint of the project."},
                            import_bundle);
  importing.add_option("BUNDLE", top.arguments().bundle, "The bundle's file")->required();
  importing.add_flag("--check", top.arguments().check_only, "Only check the bundle");

  auto& exporting =
      top.add("export",
              {"Print a project as a bundle, with secrets as ${NAME}", "Shop --output shop.yaml",
               "`import` makes the same project of the bundle."},
              export_project);
  exporting.add_option("PROJECT", top.arguments().project, "The project's name or id")->required();
  exporting.add_option("-o,--output", top.arguments().output, "Write to this file instead");

  const Subcommands<Arguments> apikey(add_group(app, "apikey", "API keys of the organisation"),
                                      action);
  auto& args = apikey.arguments();
  auto& create = apikey.add("create",
                            {"Make a key and print it, once", "--name \"order system\"",
                             "send it as X-API-Key; `apikey revoke` ends it."},
                            create_key);
  create.add_option("--name", args.name, "Name of the key, such as the program that uses it")
      ->required();
  create.add_option("--user", args.user, "E-mail address of the user it acts as; default: you");
  apikey.add("list", {"List keys, without their secrets", ""}, list_keys);
  apikey.add("revoke", {"End a key at once", "6f9619ff8b86d011b42d00c0"}, revoke_key)
      .add_option("ID", args.id, "The key's id, as `apikey list` shows it")
      ->required();
}

model::Result<std::string> read_file(const std::string& path) {
  std::error_code unknown;  // then opening it says so
  if (std::filesystem::is_directory(path, unknown)) {
    return model::fail(model::Errc::not_found, path + ": is a folder; name a file in it");
  }
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 16 * 1024> part;
  // Iterators of the buffer would throw when a read fails; the stream remembers the failure.
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

// conversectl flow versions, diff, rollback: shows what an import has changed, and restores
// versions.
#include <nlohmann/json.hpp>

#include "daemon/ctl/lookup.h"
#include "daemon/ctl/subcommand.h"
#include "store/text/utf8.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;

struct Asked {
  std::string flow;
  std::string project;
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t version = 0;
};

model::Result<std::string> route_of(Client& client, const Asked& asked) {
  return flow_route(client, asked.flow, asked.project);
}

int versions(Client& client, const Asked& asked) {
  auto route = route_of(client, asked);
  if (!route) return failed(route.error());
  return print(client, client.manage("GET", *route + "/versions"), [](const Fields& page) {
    Table table({"VERSION", "CREATED", "BY", "ROLLBACK TO"});
    for (const Fields& item : page.items()) {
      table.add({item.number("version"), item.time("createdAt"), item.text_if_any("createdBy"),
                 item.has("restoredFrom") ? std::to_string(item.number("restoredFrom")) : ""});
    }
    table.print("No versions.");
  });
}

// A value on one line, cut where it gets long.
std::string short_text(const json& value) {
  constexpr std::size_t longest = 100;
  const std::string whole = value.is_null() ? "(nothing)" : value.dump();
  const std::string text(text::cut(whole, longest));
  return text.size() < whole.size() ? text + "..." : text;
}

void show_change(const Fields& change) {
  const auto kind = change.text("change");
  const auto path = change.text_if_any("path");
  const auto type = change.text_if_any("type");
  const char* mark = kind == "added" ? "+" : kind == "removed" ? "-" : kind == "moved" ? ">" : "~";
  std::string line = std::string("  ") + mark + " " + (path.empty() ? "the Flow" : path);
  if (!type.empty()) line += " " + type;
  if (change.has("id")) line += " '" + change.text("id") + "'";
  if (change.has("oldPath")) line += " (was " + change.text("oldPath") + ")";
  if (change.has("node")) {
    const json& node = change.any("node");
    const bool has_type = node.is_object() && node.contains(type);
    line += ": " + short_text(has_type ? node.at(type) : node);
  }
  say(line);
  for (const Fields& field : change.objects("fields")) {
    say("      " + field.text("name") + ": " + short_text(field.any("before")) + " -> " +
        short_text(field.any("after")));
  }
}

int diff(Client& client, const Asked& asked) {
  auto route = route_of(client, asked);
  if (!route) return failed(route.error());
  std::string query;
  const auto add = [&](const char* name, std::int64_t version) {
    if (version > 0)
      query += (query.empty() ? "?" : "&") + std::string(name) + std::to_string(version);
  };
  add("from=", asked.from);
  add("to=", asked.to);
  return print(client, client.manage("GET", *route + "/diff" + query), [](const Fields& found) {
    const auto changes = found.objects("changes");
    say(found.text("name") + ": version " + std::to_string(found.number("from")) + " to " +
        std::to_string(found.number("to")) + (changes.empty() ? ", no differences" : ""));
    for (const Fields& change : changes) show_change(change);
  });
}

int roll_back(Client& client, const Asked& asked) {
  auto route = route_of(client, asked);
  if (!route) return failed(route.error());
  return print(client, client.manage("POST", *route + "/rollback", {{"version", asked.version}}),
               [](const Fields& done) {
                 say(done.text("name") + " is at version " +
                     std::to_string(done.number("version")) + ", which is equal to version " +
                     std::to_string(done.number("restoredFrom")));
               });
}

}  // namespace

void add_version_commands(CLI::App& flow, Action& action) {
  const Subcommands<Asked> commands(flow, action);
  auto& asked = commands.arguments();
  const auto add = [&](const char* name, const Help& help,
                       int (*run)(Client&, const Asked&)) -> CLI::App& {
    auto& command = commands.add(name, help, run);
    command.add_option("FLOW", asked.flow, "The Flow's name or id")->required();
    add_project_option(command, asked.project);
    return command;
  };
  add("versions",
      {"List the versions of a Flow of the daemon", "Orders",
       "`flow diff` compares two of them, `flow rollback` restores one."},
      versions);
  auto& comparing =
      add("diff", {"Show the differences between two versions of a Flow", "Orders 3 4"}, diff);
  comparing.add_option("FROM", asked.from, "The older version; default: the one before the newest")
      ->check(CLI::PositiveNumber);
  comparing.add_option("TO", asked.to, "The newer version; default: the newest")
      ->check(CLI::PositiveNumber);
  add("rollback",
      {"Make a new version that is equal to an older one", "Orders 3",
       "sessions take the new version with their next input."},
      roll_back)
      .add_option("VERSION", asked.version, "The older version")
      ->required()
      ->check(CLI::PositiveNumber);
}

}  // namespace conversed::ctl

// conversectl flow versions, diff, rollback.
#include <nlohmann/json.hpp>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/lookup.h"
#include "store/text/utf8.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;

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

void show_diff(const Fields& found, const Values& values) {
  const auto changes = found.objects("changes");
  say(filled("{name}: version {from} to {to}", found, values) +
      (changes.empty() ? ", no differences" : ""));
  for (const Fields& change : changes) show_change(change);
}

Cell restored_cell(const Fields& version, const char* field) {
  return version.has(field) ? std::to_string(version.number(field)) : "";
}

}  // namespace

std::vector<Command> version_commands() {
  constexpr auto number = Option::Kind::number;
  const Option flow = Option{"FLOW", "The Flow's name or id"}.require().found_by(find_flow);
  return {Command{"flow versions",
                  {"List the versions of a Flow of the daemon", "Orders",
                   "`flow diff` compares two of them, `flow rollback` restores one."},
                  {flow, scope_option()},
                  "GET /management/flows/{FLOW}/versions",
                  rows({number_column("VERSION", "version"),
                        time_column("CREATED", "createdAt"),
                        optional_column("BY", "createdBy"),
                        {"ROLLBACK TO", "restoredFrom", restored_cell}},
                       "No versions.")},
          Command{"flow diff",
                  {"Show the differences between two versions of a Flow", "Orders 3 4"},
                  {flow, scope_option(),
                   Option{"FROM", "The older version; default: the one before the newest", number}
                       .in_query("from"),
                   Option{"TO", "The newer version; default: the newest", number}.in_query("to")},
                  "GET /management/flows/{FLOW}/diff",
                  show_diff},
          Command{"flow rollback",
                  {"Make a new version that is equal to an older one", "Orders 3",
                   "sessions take the new version with their next input."},
                  {flow, scope_option(),
                   Option{"VERSION", "The older version", number}.in_field("version").require()},
                  "POST /management/flows/{FLOW}/rollback",
                  says({"{name} is at version {version}, which is equal to version "
                        "{restoredFrom}"})}};
}

}  // namespace conversed::ctl

// conversectl flow versions, diff, rollback: what an import has changed, and the way back.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/lookup.h"
#include "daemon/ctl/subcommand.h"

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

// The route of the Flow that is asked for.
model::Result<std::string> route_of(Client& client, const Asked& asked) {
  auto flow = find_in_project(client, "/management/flows", "Flow", asked.flow, asked.project);
  if (!flow) return model::fail(flow.error());
  return "/management/flows/" + encode(flow->value("_id", ""));
}

int versions(Client& client, const Asked& asked) {
  auto route = route_of(client, asked);
  if (!route) return failed(route.error());
  auto list = client.manage("GET", *route + "/versions");
  if (!list) return failed(list.error());
  if (client.options().json) {
    std::cout << list->dump() << "\n";
    return 0;
  }
  for (const auto& item : list->at("items")) {
    std::cout << item.at("version") << "  " << time_text(item.at("createdAt")) << "  "
              << (item.at("createdBy").is_string() ? item.at("createdBy").get<std::string>() : "-");
    if (!item.at("restoredFrom").is_null()) {
      std::cout << "  rollback to " << item.at("restoredFrom");
    }
    std::cout << "\n";
  }
  return 0;
}

// A value on one line, cut where it gets long.
std::string short_text(const json& value) {
  constexpr std::size_t longest = 100;
  std::string text = value.is_null() ? "(nothing)" : value.dump();
  if (text.size() <= longest) return text;
  std::size_t end = longest;
  // Not within a character: its first byte is the last that is no continuation.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

void print(const json& change) {
  const auto kind = change.at("change").get<std::string>();
  const auto text = [&](const char* name) {
    return change.at(name).is_string() ? change.at(name).get<std::string>() : std::string();
  };
  const char* mark = kind == "added" ? "+" : kind == "removed" ? "-" : kind == "moved" ? ">" : "~";
  std::cout << "  " << mark << " " << (text("path").empty() ? "the Flow" : text("path"));
  if (!text("type").empty()) std::cout << " " << text("type");
  if (!text("id").empty()) std::cout << " '" << text("id") << "'";
  if (!text("oldPath").empty()) std::cout << " (was " << text("oldPath") << ")";
  if (!change.at("node").is_null()) {
    std::cout << ": " << short_text(change.at("node").value(text("type"), json()));
  }
  std::cout << "\n";
  for (const auto& field : change.at("fields")) {
    std::cout << "      " << field.value("name", "") << ": " << short_text(field.at("before"))
              << " -> " << short_text(field.at("after")) << "\n";
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
  auto found = client.manage("GET", *route + "/diff" + query);
  if (!found) return failed(found.error());
  if (client.options().json) {
    std::cout << found->dump() << "\n";
    return 0;
  }
  std::cout << found->value("name", "") << ": version " << found->at("from") << " to "
            << found->at("to") << (found->at("changes").empty() ? ", no differences" : "") << "\n";
  for (const auto& change : found->at("changes")) print(change);
  return 0;
}

int roll_back(Client& client, const Asked& asked) {
  auto route = route_of(client, asked);
  if (!route) return failed(route.error());
  auto done = client.manage("POST", *route + "/rollback", {{"version", asked.version}});
  if (!done) return failed(done.error());
  if (client.options().json) {
    std::cout << done->dump() << "\n";
  } else {
    std::cout << done->value("name", "") << " is at version " << done->at("version")
              << ", which is equal to version " << done->at("restoredFrom") << "\n";
  }
  return 0;
}

}  // namespace

void add_version_commands(CLI::App& flow, Action& action) {
  auto asked = std::make_shared<Asked>();
  const auto add = [&](const char* name, const char* what, int (*run)(Client&, const Asked&)) {
    auto* command = add_subcommand(flow, name, what, action, asked, run);
    command->add_option("FLOW", asked->flow, "The Flow's name or id")->required();
    command->add_option("--project", asked->project, "Name or id; not needed if there is one");
    return command;
  };
  add("versions", "List the versions of a Flow of the daemon", versions);
  auto* comparing = add("diff", "Say what differs between two versions of a Flow", diff);
  comparing->add_option("FROM", asked->from, "The older one; default: the one before")
      ->check(CLI::PositiveNumber);
  comparing->add_option("TO", asked->to, "The newer one; default: the newest")
      ->check(CLI::PositiveNumber);
  auto* restoring = add("rollback", "Make a new version that is equal to an older one", roll_back);
  restoring->add_option("VERSION", asked->version, "The older one")
      ->required()
      ->check(CLI::PositiveNumber);
}

}  // namespace conversed::ctl

// conversectl audit: who did what.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "daemon/ctl/commands.h"
#include "daemon/ctl/lookup.h"
#include "daemon/ctl/subcommand.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;

constexpr std::size_t most_a_page = 100;

struct Arguments {
  std::string actor;
  std::string operation;
  std::size_t limit = 25;
};

model::Result<json> fetch(Client& client, const Arguments& args) {
  std::string filter;
  if (!args.actor.empty()) filter += "&actor=" + encode(args.actor);
  if (!args.operation.empty()) filter += "&operation=" + encode(args.operation);
  json all{{"items", json::array()}, {"next", 0}};
  while (all["items"].size() < args.limit && !all["next"].is_null()) {
    const auto left = std::min(args.limit - all["items"].size(), most_a_page);
    auto page = client.manage("GET", "/management/audit?limit=" + std::to_string(left) + filter +
                                         "&after=" + all["next"].dump());
    if (!page) return model::fail(page.error());
    const Fields fields(*page);
    for (const auto& item : fields.any("items")) all["items"].push_back(item);
    all["next"] = fields.any("next");
  }
  return all;
}

int list(Client& client, const Arguments& args) {
  return print(client, fetch(client, args), [](const Fields& page) {
    Table table(
        {"AT (UTC)", "WHO", "FROM", "OPERATION", "STATUS", "OBJECT", "USER", "SESSION", "TRACE"});
    for (const Fields& entry : page.items()) {
      table.add({entry.time("at"), entry.text_if_any("actor"), entry.text("address"),
                 entry.text("operation"),
                 entry.has("status") ? Cell(entry.number("status")) : Cell(""),
                 entry.text_if_any("object"), entry.text_if_any("userId"),
                 entry.text_if_any("sessionId"), entry.text("traceId")});
    }
    table.print("No entries.");
  });
}

}  // namespace

void add_audit_command(CLI::App& app, Action& action) {
  auto args = std::make_shared<Arguments>();
  auto* command =
      add_subcommand(app, "audit", "List who did what, newest first", action, args, list);
  command->add_option("--actor", args->actor, "Only entries of this e-mail address");
  command->add_option("--operation", args->operation,
                      "Only entries of this operation, such as signIn or createApiKey");
  command->add_option("--limit", args->limit, "How many entries")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
}

}  // namespace conversed::ctl

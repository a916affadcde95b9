// conversectl audit: who did what.
#include <nlohmann/json.hpp>

#include "daemon/ctl/lookup.h"
#include "daemon/ctl/subcommand.h"

namespace conversed::ctl {
namespace {

struct Arguments {
  std::string actor;
  std::string operation;
  std::size_t limit = 25;
};

int list(Client& client, const Arguments& args) {
  const auto filter =
      project_query(client, {}, parameters({{"actor", args.actor}, {"operation", args.operation}}));
  if (!filter) return failed(filter.error());
  return print(client, fetch_pages(client, "/management/audit" + *filter, args.limit),
               [](const Fields& page) {
                 Table table({"AT (UTC)", "WHO", "FROM", "OPERATION", "STATUS", "OBJECT", "USER",
                              "SESSION", "TRACE"});
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
  const Subcommands<Arguments> commands(app, action);
  auto& args = commands.arguments();
  auto& command = commands.add(
      "audit", {"List who did what, newest first", "--operation createApiKey --limit 100"}, list);
  command.add_option("--actor", args.actor, "Only entries of this e-mail address");
  command.add_option("--operation", args.operation,
                     "Only entries of this operation, such as signIn or createApiKey");
  add_limit_option(command, args.limit, 10'000);
}

}  // namespace conversed::ctl

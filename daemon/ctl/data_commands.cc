// conversectl backup, restore, rotate-key, webhook-secret, users-data.
#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "config/load.h"
#include "daemon/ctl/commands.h"
#include "daemon/ctl/lookup.h"
#include "daemon/data/restore.h"
#include "daemon/delivery/webhook.h"
#include "store/model/clock.h"
#include "store/text/terminal.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;

// What takes as long as the disk does.
constexpr std::chrono::seconds long_wait = std::chrono::hours(6);

// The values of the subcommands' options; owned by the callbacks that read them.
struct Arguments {
  std::string name;
  std::string backup;
  std::string config;
  std::string key;
  std::string user_id;
  std::string project;
  bool store_alone = false;
};
using ArgumentsPtr = std::shared_ptr<Arguments>;

int back_up(Client& client, const Arguments& args) {
  json body = json::object();
  if (!args.name.empty()) body["name"] = args.name;
  return print(client, client.manage("POST", "/management/backups", body, long_wait),
               [](const Fields& made) {
                 say("Made " + made.text("path") + " (" + std::to_string(made.number("bytes")) +
                     " bytes), on the daemon's machine.");
                 say("The master key is not in it: keep a copy of that, apart.");
               });
}

int restore(const Client& client, const Arguments& args) {
  std::optional<std::filesystem::path> file;
  if (!args.config.empty()) file = args.config;
  const auto settings = config::load(config::inputs_of_process(file, {.kafka = true}));
  if (!settings) {
    return failed({model::Errc::invalid_argument, config::format_problems(settings.error())});
  }
  using Log = daemon::RestoreOrder::Log;
  const daemon::RestoreOrder order{.backup = args.backup,
                                   .key = args.key,
                                   .log = args.store_alone ? Log::may_be_missing : Log::needed};
  auto restored = daemon::restore(*settings, order, model::SystemClock());
  if (!restored) return failed(restored.error());
  const auto made_at = model::to_unix_ms(restored->created_at) / 1000;
  return print(client,
               model::Result<json>(json{{"dataDir", settings->data_dir.string()},
                                        {"createdAt", made_at},
                                        {"program", restored->program}}),
               [&](const Fields& done) {
                 say("Restored " + args.backup + " into " + done.text("dataDir") +
                     ". The daemon can be started.");
               });
}

int rotate_key(Client& client) {
  return print(
      client, client.manage("POST", "/management/key/rotate", json::object(), long_wait),
      [](const Fields& done) {
        say("The master key is number " + std::to_string(done.number("key")) + " now; " +
            std::to_string(done.number("resealed")) + " secrets were sealed anew by it.");
        say("Backups from before need the key from before: keep that with them, and copy the new "
            "one.");
      });
}

int make_webhook_secret(const Client& client) {
  const json made{{"secret", daemon::new_webhook_secret()}};
  return print(client, made, [](const Fields& fields) { say(fields.text("secret")); });
}

std::string text_of(const json& value) {
  return text::shown(value.dump(-1, ' ', false, json::error_handler_t::replace), text::Lines::many);
}

// One JSON document, written as its pages come.
int export_data(Client& client, const Arguments& args) {
  auto query = project_query(client, args.project, "limit=100&userId=" + encode(args.user_id));
  if (!query) return failed(query.error());
  const std::string path = "/management/usersdata" + *query;
  std::string after;
  bool first = true;
  do {
    auto page = client.manage("GET", after.empty() ? path : path + "&after=" + encode(after));
    if (!page) return failed(page.error());
    const Fields fields(*page);
    if (first) std::cout << "{\"userId\":" << text_of(args.user_id) << ",\"items\":[";
    for (const auto& item : fields.any("items")) {
      std::cout << (std::exchange(first, false) ? "\n" : ",\n") << text_of(item);
    }
    first = false;
    after = fields.text_if_any("next");
  } while (!after.empty());
  std::cout << "\n]}\n";
  std::cout.flush();
  if (std::cout) return 0;
  return failed({model::Errc::unavailable, "what was exported could not be written"});
}

int erase_data(Client& client, const Arguments& args) {
  auto query = project_query(client, args.project);
  if (!query) return failed(query.error());
  return print(client,
               client.manage("POST", "/management/usersdata/erase" + *query,
                             {{"userId", args.user_id}}, long_wait),
               [](const Fields& erased) {
                 const auto count = [&](const char* what) {
                   return std::to_string(erased.number(what));
                 };
                 say("Erased " + count("sessions") + " sessions with " + count("outputs") +
                     " outputs, " + count("pending") + " pending events, calls and timers, " +
                     count("deadLetters") + " dead letters, " + count("answers") +
                     " kept answers and " + count("profiles") + " profile.");
                 if (erased.text("queue") == "kept") {
                   say("Kafka keeps the user's events until it deletes their segments.");
                 }
                 say("Backups and logs from before hold what they held: see to them, too.");
               });
}

void add_backup_commands(CLI::App& app, Action& action) {
  auto args = std::make_shared<Arguments>();
  auto* backup = app.add_subcommand("backup", "Back up store and log of the running daemon");
  backup->add_option("--name", args->name, "The backup's name; default: the time");
  backup->callback(
      [args, &action] { action = [args](Client& client) { return back_up(client, *args); }; });
  auto* restoring = app.add_subcommand(
      "restore", "Put a backup into the data folder of these settings; the daemon is stopped");
  restoring->add_option("BACKUP", args->backup, "The backup's folder")->required();
  restoring->add_option("--config", args->config,
                        "The daemon's settings file; default: built-in settings");
  restoring->add_option("--key", args->key,
                        "The master key that belongs to it; default: the one that is there");
  restoring->add_flag("--store-alone", args->store_alone,
                      "Also if the log is not in it: what was finished since is lost");
  restoring->callback(
      [args, &action] { action = [args](Client& client) { return restore(client, *args); }; });
}

void add_user_data_commands(CLI::App& app, Action& action) {
  auto args = std::make_shared<Arguments>();
  auto* data = app.add_subcommand("users-data", "What is stored about a user of conversations")
                   ->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, auto command) {
    auto* sub = data->add_subcommand(name, help);
    sub->add_option("USERID", args->user_id, "The user, as messages name it")->required();
    sub->add_option("--project", args->project, "Name or id; not needed if there is one");
    sub->callback([args, &action, command] {
      action = [args, command](Client& client) { return command(client, *args); };
    });
  };
  add("export", "Write all of it as JSON", export_data);
  add("erase", "Erase all of it, for good", erase_data);
}

}  // namespace

void add_data_commands(CLI::App& app, Action& action) {
  add_backup_commands(app, action);
  app.add_subcommand("rotate-key",
                     "Make a new master key and seal all secrets anew, while the daemon runs")
      ->callback([&action] { action = rotate_key; });
  app.add_subcommand("webhook-secret", "Make a secret for an Endpoint's webhook; needs no daemon")
      ->callback([&action] { action = make_webhook_secret; });
  add_user_data_commands(app, action);
}

}  // namespace conversed::ctl

// conversectl backup, restore, rotate-key, webhook-secret, users-data.
#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "config/load.h"
#include "daemon/ctl/lookup.h"
#include "daemon/ctl/subcommand.h"
#include "daemon/data/restore.h"
#include "daemon/delivery/webhook.h"
#include "store/model/clock.h"
#include "store/text/terminal.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;

// For requests that wait for the disk.
constexpr std::chrono::seconds long_wait = std::chrono::hours(6);

struct Arguments {
  std::string name;
  std::string backup;
  std::string config;
  std::string key;
  std::string user_id;
  std::string project;
  bool store_alone = false;
};

int back_up(Client& client, const Arguments& args) {
  json body = json::object();
  if (!args.name.empty()) body["name"] = args.name;
  return print(client, client.manage("POST", "/management/backups", body, long_wait),
               [](const Fields& made) {
                 say("Made " + made.text("path") + " (" + std::to_string(made.number("bytes")) +
                     " bytes), on the daemon's machine.");
                 say("The master key is not in it: keep a copy of the key elsewhere.");
               });
}

int restore(Client& client, const Arguments& args) {
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

int rotate_key(Client& client, const Arguments&) {
  return print(
      client, client.manage("POST", "/management/key/rotate", json::object(), long_wait),
      [](const Fields& done) {
        say("The master key is number " + std::to_string(done.number("key")) + " now; " +
            std::to_string(done.number("resealed")) + " secrets were sealed with it.");
        say("Older backups need the old key: keep it with them. Copy the new key to a safe place.");
      });
}

int make_webhook_secret(Client& client, const Arguments&) {
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
  return failed({model::Errc::unavailable, "the export could not be written: is the disk full?"});
}

int erase_data(Client& client, const Arguments& args) {
  auto query = project_query(client, args.project);
  if (!query) return failed(query.error());
  return print(
      client,
      client.manage("POST", "/management/usersdata/erase" + *query, {{"userId", args.user_id}},
                    long_wait),
      [](const Fields& erased) {
        const auto count = [&](const char* what) { return std::to_string(erased.number(what)); };
        say("Erased " + count("sessions") + " sessions with " + count("outputs") + " outputs, " +
            count("pending") + " pending events, calls and timers, " + count("deadLetters") +
            " dead letters, " + count("answers") + " kept answers and " + count("profiles") +
            " profile.");
        if (erased.text("queue") == "kept") {
          say("Kafka keeps the user's events until it deletes their segments.");
        }
        say("Older backups and logs still hold the user's data: delete them when you may.");
      });
}

void add_backup_commands(const Subcommands<Arguments>& top) {
  auto& args = top.arguments();
  top.add("backup",
          {"Back up store and log of the running daemon", "--name before-the-update",
           "copy the backup and the master key to other machines."},
          back_up)
      .add_option("--name", args.name, "The backup's name; default: the time");
  auto& restoring = top.add(
      "restore",
      {"Put a backup into the data folder of these settings; the daemon has to be stopped",
       "/var/lib/conversed/backups/before-the-update --config /etc/conversed/conversed.yaml",
       "start the daemon."},
      restore);
  restoring.add_option("BACKUP", args.backup, "The backup's folder")->required();
  restoring.add_option("--config", args.config,
                       "The daemon's settings file; default: built-in settings");
  restoring.add_option("--key", args.key,
                       "The master key of the backup; default: the key in the data folder");
  restoring.add_flag("--store-alone", args.store_alone,
                     "Restore a backup without a log, too: events since the backup are lost");
}

void add_user_data_commands(CLI::App& app, Action& action) {
  const Subcommands<Arguments> data(
      add_group(app, "users-data", "All stored data about a user of conversations"), action);
  const auto add = [&](const char* name, const Help& help, int (*run)(Client&, const Arguments&)) {
    auto& command = data.add(name, help, run);
    command.add_option("USERID", data.arguments().user_id, "The user's id in messages")->required();
    add_project_option(command, data.arguments().project);
  };
  add("export", {"Print a user's data as JSON", "ann"}, export_data);
  add("erase",
      {"Erase a user's data for good", "ann",
       "delete older backups and logs, which still hold the data."},
      erase_data);
}

}  // namespace

void add_data_commands(CLI::App& app, Action& action) {
  const Subcommands<Arguments> top(app, action);
  add_backup_commands(top);
  top.add("rotate-key",
          {"Make a new master key and seal all secrets with it, while the daemon runs", "",
           "copy the new key to a safe place, and keep the old one with older backups."},
          rotate_key);
  top.add("webhook-secret",
          {"Make a secret for an Endpoint's webhook; needs no daemon", "",
           "put it into the bundle and into the receiver of the webhook."},
          make_webhook_secret);
  add_user_data_commands(app, action);
}

}  // namespace conversed::ctl

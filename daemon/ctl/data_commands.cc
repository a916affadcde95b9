// conversectl backup, restore, rotate-key, webhook-secret, audit, status, users-data.
#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "config/load.h"
#include "daemon/ctl/commands.h"
#include "daemon/ctl/names.h"
#include "daemon/data/restore.h"
#include "daemon/delivery/webhook.h"
#include "store/model/clock.h"
#include "store/model/json.h"
#include "store/text/terminal.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;

// The time-out of requests that wait for the disk.
constexpr std::chrono::seconds long_wait = std::chrono::hours(6);

int restore(Client& client, const Values& values) {
  std::optional<std::filesystem::path> file;
  if (const auto& given = values.text("--config"); !given.empty()) file = given;
  const auto settings = config::load(config::inputs_of_process(file));
  if (!settings) {
    return failed({model::Errc::invalid_argument, config::format_problems(settings.error())});
  }
  using Log = daemon::RestoreOrder::Log;
  const daemon::RestoreOrder order{
      .backup = values.text("BACKUP"),
      .key = values.text("--key"),
      .log = values.flag("--store-alone") ? Log::may_be_missing : Log::needed};
  auto restored = daemon::restore(*settings, order, model::SystemClock());
  if (!restored) return failed(restored.error());
  return print(
      client,
      model::Result<json>(json{{"dataDir", settings->data_dir.string()},
                               {"createdAt", model::to_unix_ms(restored->created_at) / 1000},
                               {"program", restored->program}}),
      [&](const Fields& done) {
        say("Restored " + values.text("BACKUP") + " into " + done.text("dataDir") +
            ". The daemon can be started.");
      });
}

std::string text_of(const json& value) {
  return text::shown(model::json_text(value), text::Lines::one);
}

// Prints one JSON document, page by page.
int export_data(Client& client, const Values& values) {
  const std::string& user_id = values.text("USERID");
  std::string path = "/management/usersdata?limit=100&userId=" + encode(user_id);
  if (const auto& named = values.text("--project"); !named.empty()) {
    auto project = find_project(client, values, named);
    if (!project) return failed(project.error());
    path += "&projectId=" + encode(*project);
  }
  std::string after;
  const char* between = "\n";
  do {
    auto page = client.manage("GET", after.empty() ? path : path + "&after=" + encode(after));
    if (!page) return failed(page.error());
    const Fields fields(*page);
    if (after.empty()) std::cout << "{\"userId\":" << text_of(user_id) << ",\"items\":[";
    for (const auto& item : fields.any("items")) {
      std::cout << std::exchange(between, ",\n") << text_of(item);
    }
    after = fields.text_if_any("next");
  } while (!after.empty());
  std::cout << "\n]}\n";
  return 0;
}

void show_erased(const Fields& erased, const Values& values) {
  say(
      filled("Erased {sessions} sessions with {outputs} outputs, {pending} pending events, calls "
             "and timers, {receipts} receipts, {deadLetters} dead letters, {answers} kept answers "
             "and {profiles} profile.",
             erased, values));
  if (erased.text("queue") == "kept") {
    say("Kafka keeps the user's events until it deletes their segments.");
  }
  say("Older backups and logs still hold the user's data: delete them when you may.");
}

Command restore_command() {
  return Command{
      "restore",
      {"Restore a backup into the data folder of the settings; stop the daemon first",
       "/var/lib/conversed/backups/before-the-update --config /etc/conversed/conversed.yaml",
       "start the daemon."},
      {Option{"BACKUP", "The backup's folder"}.require().file(),
       Option{"--config", "The daemon's settings file; default: built-in settings"}
           .file()
           .checked_by(not_empty),
       Option{"--key",
              "The master key of the backup, such as master.key.1; default: the key in the data "
              "folder"}
           .file()
           .checked_by(not_empty),
       Option{"--store-alone",
              "Restore a backup without a log, too: events since the backup are lost",
              Option::Kind::flag}}}
      .runs(restore);
}

Group user_data_commands() {
  constexpr const char* help = "The user's id in messages";
  return {"users-data",
          "All stored data of a user of conversations",
          {Command{"users-data export",
                   {"Print a user's data as JSON", "ann"},
                   {Option{"USERID", help}.require(), project_option()}}
               .runs(export_data),
           Command{"users-data erase",
                   {"Erase a user's data for good", "ann",
                    "delete older backups and logs, which still hold the data."},
                   {Option{"USERID", help}.in_field("userId").require(), project_option()},
                   "POST /management/usersdata/erase",
                   show_erased}
               .waits(long_wait)}};
}

Group status() {
  return {
      "",
      "",
      {Command{
           "audit",
           {"List who did what, newest first", "--operation createApiKey --limit 100"},
           {Option{"--actor", "Only entries of this e-mail address"}.in_query("actor"),
            Option{"--operation", "Only entries of this operation, such as signIn or createApiKey"}
                .in_query("operation"),
            Option{"--about",
                   "Only entries with this id or trace id, or about this object: a name or an id"}
                .in_query("about"),
            limit_option(25, 10'000), number_after_option()},
           "GET /management/audit",
           rows({column("AT", "at", time_cell), column("WHO", "actor"), column("FROM", "address"),
                 column("OPERATION", "operation"), column("STATUS", "status"),
                 column("OBJECT", "object"), column("USER", "userId"),
                 column("SESSION", "sessionId")},
                "No entries.")}
           .in_pages(),
       Command{"status",
               {"Show the daemon's version, uptime, queue and counts", "",
                "`deadletters list` lists events that could not be processed, with the reasons."},
               {},
               "GET /management/status"}}};
}

}  // namespace

std::vector<Group> data_commands() {
  return {
      {"",
       "",
       {Command{"backup",
                {"Back up store and log of the running daemon", "--name before-the-update",
                 "copy the backup and the master key to other machines."},
                {Option{"--name", "The backup's name; default: the time"}.in_field("name")},
                "POST /management/backups",
                says({"Made {path} ({bytes} bytes), on the daemon's machine.",
                      "The master key is not in it: keep a copy of the key elsewhere."})}
            .waits(long_wait),
        restore_command(),
        Command{
            "rotate-key",
            {"Make a new master key and seal all secrets with it, while the daemon runs", "",
             "copy the new key to a safe place. Older backups need the replaced key: "
             "`restore --key` takes its file, master.key.N."},
            {},
            "POST /management/key/rotate",
            says({"The master key is number {key} now; {resealed} secrets were sealed with it.",
                  "The replaced key is in {replacedKey}, on the daemon's machine: older backups "
                  "need it. Copy both keys to a safe place."})}
            .sends(json::object())
            .waits(long_wait),
        Command{"webhook-secret",
                {"Make a secret for an Endpoint's webhook; needs no daemon", "",
                 "put it into the bundle and into the receiver of the webhook."},
                {}}
            .runs([](Client& client, const Values&) {
              const json made{{"secret", daemon::new_webhook_secret()}};
              return print(client, made, [](const Fields& shown) { say(shown.text("secret")); });
            })}},
      status(),
      user_data_commands()};
}

}  // namespace conversed::ctl

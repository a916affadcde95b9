// conversectl backup, restore, rotate-key, users-data.
#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "config/load.h"
#include "daemon/ctl/commands.h"
#include "daemon/restore.h"
#include "store/model/clock.h"

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

int print(const Client& client, const json& answer, const std::string& lines) {
  std::cout << (client.options().json ? answer.dump() : lines) << "\n";
  return 0;
}

int back_up(Client& client, const Arguments& args) {
  json body = json::object();
  if (!args.name.empty()) body["name"] = args.name;
  auto made = client.manage("POST", "/management/backups", body, long_wait);
  if (!made) return failed(made.error());
  return print(client, *made,
               "Made " + made->value("path", "") + " (" +
                   std::to_string(made->value("bytes", std::int64_t{0})) +
                   " bytes), on the daemon's machine.\nThe master key is not in it: keep a copy of "
                   "that, apart.");
}

int restore(const Client& client, const Arguments& args) {
  std::optional<std::filesystem::path> file;
  if (!args.config.empty()) file = args.config;
  const auto settings = config::load(config::inputs_of_process(file, {.kafka = true}));
  if (!settings) {
    std::cerr << config::format_problems(settings.error());
    return 1;
  }
  using Log = daemon::RestoreOrder::Log;
  const daemon::RestoreOrder order{.backup = args.backup,
                                   .key = args.key,
                                   .log = args.store_alone ? Log::may_be_missing : Log::needed};
  auto restored = daemon::restore(*settings, order, model::SystemClock());
  if (!restored) return failed(restored.error());
  const auto made_at = model::to_unix_ms(restored->created_at) / 1000;
  return print(client,
               {{"dataDir", settings->data_dir.string()},
                {"createdAt", made_at},
                {"program", restored->program}},
               "Restored " + args.backup + " into " + settings->data_dir.string() +
                   ". The daemon can be started.");
}

int rotate_key(Client& client) {
  auto done = client.manage("POST", "/management/key/rotate", json::object(), long_wait);
  if (!done) return failed(done.error());
  return print(client, *done,
               "The master key is number " + std::to_string(done->value("key", 0)) + " now; " +
                   std::to_string(done->value("resealed", 0)) +
                   " secrets were sealed anew by it.\nBackups from before need the key from "
                   "before: keep that with them, and copy the new one.");
}

std::string project_query(const Arguments& args, char begin) {
  return args.project.empty() ? "" : begin + ("projectId=" + encode(args.project));
}

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// One JSON document, written as its pages come.
int export_data(Client& client, const Arguments& args) {
  const std::string path =
      "/management/usersdata?limit=100&userId=" + encode(args.user_id) + project_query(args, '&');
  std::string after;
  bool first = true;
  do {
    auto page = client.manage("GET", after.empty() ? path : path + "&after=" + encode(after));
    if (!page) return failed(page.error());
    if (first) std::cout << "{\"userId\":" << text_of(args.user_id) << ",\"items\":[";
    for (const auto& item : page->at("items")) {
      std::cout << (std::exchange(first, false) ? "\n" : ",\n") << text_of(item);
    }
    first = false;
    const auto& next = page->at("next");
    after = next.is_string() ? next.get<std::string>() : "";
  } while (!after.empty());
  std::cout << "\n]}\n";
  std::cout.flush();
  if (std::cout) return 0;
  return failed({model::Errc::unavailable, "what was exported could not be written"});
}

int erase_data(Client& client, const Arguments& args) {
  auto erased = client.manage("POST", "/management/usersdata/erase" + project_query(args, '?'),
                              {{"userId", args.user_id}}, long_wait);
  if (!erased) return failed(erased.error());
  const auto count = [&](const char* what) {
    return std::to_string(erased->value(what, std::int64_t{0}));
  };
  std::string lines = "Erased " + count("sessions") + " sessions with " + count("outputs") +
                      " outputs, " + count("pending") + " pending events, calls and timers, " +
                      count("deadLetters") + " dead letters, " + count("answers") +
                      " kept answers and " + count("profiles") + " profile.";
  if (erased->value("queue", "") == "kept") {
    lines += "\nKafka keeps the user's events until it deletes their segments.";
  }
  return print(client, *erased,
               lines + "\nBackups and logs from before hold what they held: see to them, too.");
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
    sub->add_option("--project", args->project, "The project's id; default: the only one");
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
  add_user_data_commands(app, action);
}

}  // namespace conversed::ctl

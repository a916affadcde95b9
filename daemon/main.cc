// conversed: the daemon, the commands that need its data folder while it is stopped, and those that
// work on its servers while it runs.
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "config/load.h"
#include "daemon/app.h"
#include "daemon/data/move.h"
#include "daemon/data/offline.h"
#include "daemon/data/storage.h"
#include "daemon/ops/logging.h"
#include "daemon/ops/version.h"
#include "daemon/service/open_files.h"
#include "daemon/service/owner.h"
#include "store/text/quantity.h"

// jemalloc reads this variable at its start (jemalloc(3), TUNING). A thread of jemalloc returns
// freed memory to the system after a second. Without that thread an idle daemon keeps the memory of
// its last load, since jemalloc returns memory only while others allocate.
extern "C" const char* malloc_conf;
const char* malloc_conf =
    "background_thread:true,max_background_threads:1,dirty_decay_ms:1000,muzzy_decay_ms:0";

namespace {

namespace config = conversed::config;
namespace daemon = conversed::daemon;
namespace model = conversed::model;

// sysexits.h has the numbers.
constexpr int exit_ok = 0;
constexpr int exit_failed = 1;
constexpr int exit_usage = 2;
constexpr int exit_internal = 70;
constexpr int exit_config = 78;

struct Options {
  std::string config_file;
  bool check_config = false;
  std::string organisation;
  std::string admin_email;
  bool password_stdin = false;
  std::int32_t partition = 0;
  std::size_t to_shard = 0;
  std::string drain = "30s";
};

auto read_settings(const Options& options) {
  std::optional<std::filesystem::path> file;
  if (!options.config_file.empty()) file = options.config_file;
  return config::load(config::inputs_of_process(file, daemon::kafka_problems));
}

std::optional<config::Settings> load_settings(const Options& options) {
  auto settings = read_settings(options);
  if (settings) return std::move(*settings);
  std::cerr << config::format_problems(settings.error());
  return std::nullopt;
}

// Reads the settings for a reload. Logs each problem.
std::optional<config::Settings> reload_settings(const Options& options) {
  auto settings = read_settings(options);
  if (settings) return std::move(*settings);
  for (const auto& problem : settings.error()) {
    auto text = config::format_problems({problem});
    if (text.ends_with('\n')) text.pop_back();
    daemon::log::error("settings refused; the old ones stay", {{"problem", text}});
  }
  return std::nullopt;
}

int report(const model::Error& error) {
  std::cerr << "conversed: " << error.message << "\n";
  return exit_failed;
}

int run_init(const Options& options, const config::Settings& settings) {
  std::string password;
  if (!options.password_stdin || !std::getline(std::cin, password) || password.empty()) {
    std::cerr << "conversed init: give the administrator's password on standard input, with "
                 "--password-stdin\n";
    return exit_usage;
  }
  auto made = daemon::init(settings,
                           {.name = options.organisation,
                            .admin_email = options.admin_email,
                            .admin_password = password},
                           model::SystemClock());
  if (!made) return report(made.error());
  std::cout << "Organisation " << options.organisation << " (" << *made << ") is set up in "
            << settings.data_dir.string() << ".\nNext: start `conversed`, then `conversectl --as "
            << options.admin_email << " import BUNDLE`.\n";
  return exit_ok;
}

int run_new_epoch(const config::Settings& settings) {
  auto epoch = daemon::open_new_epoch(settings, model::SystemClock());
  if (!epoch) return report(epoch.error());
  std::cout << "The log is in epoch " << *epoch << ". The daemon can be started.\n";
  return exit_ok;
}

int run_shards(const config::Settings& settings) {
  auto table = daemon::describe_shards(settings, model::SystemClock());
  if (!table) return report(table.error());
  std::cout << *table;
  return exit_ok;
}

int run_move(const Options& options, const config::Settings& settings) {
  const daemon::PartitionMove move{
      .partition = options.partition,
      .to = options.to_shard,
      .drain = conversed::text::parse_duration(options.drain).value_or(std::chrono::seconds(30))};
  const auto say = [](std::string_view line) { std::cout << line << std::endl; };
  auto moved = daemon::move_partition(settings, move, model::SystemClock(), say);
  if (!moved) return report(moved.error());
  std::cout << "Partition " << move.partition << " is in shard " << move.to
            << ". There is nothing more to do.\n";
  return exit_ok;
}

// The process sends this signal to itself at the end of its start.
constexpr int start_over_signal = SIGUSR1;

// The signals that end or reload the daemon are blocked in every thread and read here, one at a
// time, so that nothing runs in a signal handler. A start may take long: it runs on another thread,
// so that the daemon obeys signals meanwhile.
int run_daemon(const Options& options, const config::Settings& settings) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, start_over_signal}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a write above the limit of file sizes fails like others

  daemon::raise_limit_of_open_files();
  daemon::log::open(settings.log);
  const model::SystemClock clock;
  daemon::App app(settings, clock);
  std::atomic<bool> start_over{false};
  model::Result<void> started;
  std::jthread starting([&] {
    started = app.start();
    start_over = true;
    kill(getpid(), start_over_signal);
  });
  bool up = false;
  bool reload_wanted = false;
  for (;;) {
    int signal = 0;
    sigwait(&signals, &signal);
    if (signal == start_over_signal) {
      if (up || !start_over) continue;  // another process sent it
      starting.join();
      if (!started) {
        daemon::log::error("not started", {{"error", started.error().message}});
        return exit_failed;
      }
      up = true;
      if (!reload_wanted) continue;
      signal = SIGHUP;
    }
    if (signal != SIGHUP) break;
    reload_wanted = !up;
    if (up) app.reload([&] { return reload_settings(options); });
  }
  app.give_up_start();
  if (starting.joinable()) starting.join();
  app.stop();
  return app.failed() ? exit_internal : exit_ok;
}

struct ShardCommands {
  CLI::App* shards;
  CLI::App* move;
};

ShardCommands add_shard_commands(CLI::App& cli, Options& options) {
  auto* shards = cli.add_subcommand(
      "shards", "Show which server has which partition of the log; daemons may run");
  shards->footer(
      "A store with several servers (store.postgres.shards) keeps the sessions of each partition "
      "on one of them.\nShard 0 is the server of store.postgres.url.\n"
      "Example: conversed shards --config /etc/conversed/conversed.yaml");
  auto* move = cli.add_subcommand("move-partition",
                                  "Move a partition's sessions to another server; daemons may run");
  move->add_option("--partition", options.partition, "Its number; conversed shards lists all")
      ->required()
      ->check(CLI::NonNegativeNumber);
  move->add_option("--to", options.to_shard, "The shard that gets it")
      ->required()
      ->check(CLI::NonNegativeNumber);
  move->add_option("--drain", options.drain,
                   "How long the daemon that owns the partition may take to give it up")
      ->capture_default_str()
      ->check([](const std::string& text) {
        return conversed::text::parse_duration(text) ? std::string()
                                                     : "write a duration such as 500ms, 30s or 2m";
      });
  move->footer(
      "All daemons must run with a store.postgres.shards that lists the new server. Until the move "
      "is done, events\nof the partition wait in the log, its sessions can be read, and requests "
      "to change them get 503. After an error\nor an interruption, give the same command again: "
      "it goes on.\nBefore the rows are copied, the shard where the partition still is ends the "
      "move.\n"
      "Example: conversed move-partition --partition 3 --to 1 --config "
      "/etc/conversed/conversed.yaml\n"
      "Next: conversed shards shows the new place.");
  return {shards, move};
}

}  // namespace

int main(int argc, char** argv) {
  // The memory holds secrets: there is no core dump, and no other process of this user may read it.
  // Only the owner may read files that the daemon makes.
  ::prctl(PR_SET_DUMPABLE, 0);
  ::umask(0077);
  CLI::App cli{
      "Runs conversations: takes events, runs them through Flows in order, delivers the "
      "answers.\n\n"
      "Without a command it runs as the daemon, in the foreground, and logs to stderr. SIGTERM "
      "drains and ends\n"
      "it, SIGHUP reads the settings again. First set up a data folder with `conversed init`.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 70 stopped by a defect, 78 wrong settings."};
  cli.fallthrough();
  cli.set_version_flag("--version", std::string("conversed ") + conversed::daemon::version);
  Options options;
  cli.add_option("--config", options.config_file,
                 "Settings file (YAML); default: built-in settings")
      ->check([](const std::string& file) {
        return file.empty() ? "the name of the file is empty" : std::string();
      });
  cli.add_flag("--check-config", options.check_config, "Check the settings and exit: 0 or 78");
  auto* init = cli.add_subcommand(
      "init", "Make the data folder, the first organisation and its administrator");
  init->add_option("--organisation", options.organisation, "Its name")->required();
  init->add_option("--admin", options.admin_email, "The administrator's e-mail address")
      ->required();
  init->add_flag("--password-stdin", options.password_stdin,
                 "Read the administrator's password from stdin");
  auto* epoch = cli.add_subcommand(
      "new-epoch",
      "Begin a new epoch of the log, if it is older than the store or was lost; stop all daemons "
      "first");
  init->footer(
      "Example: echo \"$PASSWORD\" | conversed init --organisation Shop --admin you@example.com "
      "--password-stdin\nNext: start conversed, then import a bundle with conversectl import.");
  epoch->footer(
      "Example: conversed new-epoch --config /etc/conversed/conversed.yaml\n"
      "Next: start all daemons.");
  const auto of_shards = add_shard_commands(cli, options);
  cli.footer(
      "Example: conversed --config /etc/conversed/conversed.yaml\n"
      "Next: curl http://127.0.0.1:9464/readyz says whether it is ready.");
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return cli.exit(error) == 0 ? exit_ok : exit_usage;
  }
  const auto settings = load_settings(options);
  if (!settings) return exit_config;
  if (options.check_config) {
    std::cout << (options.config_file.empty()
                      ? "The built-in settings are fine; no file was read. Name yours: --config "
                        "FILE\n"
                      : "The settings in " + options.config_file + " are fine.\n");
    return exit_ok;
  }
  // Everything below makes files in the data folder.
  if (auto owner = daemon::become_owner(settings->data_dir); !owner) return report(owner.error());
  if (init->parsed()) return run_init(options, *settings);
  if (epoch->parsed()) return run_new_epoch(*settings);
  if (of_shards.shards->parsed()) return run_shards(*settings);
  if (of_shards.move->parsed()) return run_move(options, *settings);
  return run_daemon(options, *settings);
}

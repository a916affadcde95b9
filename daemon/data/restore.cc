#include "daemon/data/restore.h"

#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "daemon/data/data_folder.h"
#include "daemon/data/late_log.h"
#include "daemon/data/storage.h"
#include "daemon/service/open_files.h"
#include "daemon/service/owner.h"
#include "daemon/turns/flight_recorder.h"
#include "queue/file/recovery.h"
#include "store/sql/sqlite_copy.h"
#include "store/store.h"

namespace conversed::daemon {

namespace fs = std::filesystem;
using model::Errc;
using model::fail;
using model::Result;

namespace {

constexpr const char* data_files[] = {"store.db", "store.db-wal", "store.db-shm", "log"};

// Of the log in a backup: `log/` and the name of a segment.
bool is_log_file(std::string_view name) {
  return name.starts_with("log/") && queue::segment_number(name.substr(4));
}

// Of all data in the folder, a folder behind its files.
std::vector<std::string> restored_files(const fs::path& folder) {
  std::vector<std::string> names{"store.db", "store.db-wal", "store.db-shm"};
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder / "log", ignored)) {
    names.push_back("log/" + entry.path().filename().string());
  }
  names.insert(names.end(), {"log", "lock", "master.key"});
  return names;
}

void remove_data(const fs::path& folder) {
  std::error_code ignored;
  for (const char* name : data_files) fs::remove_all(folder / name, ignored);
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Checks before the first write.
Result<void> check_order(const config::Settings& settings, const RestoreOrder& order,
                         const BackupManifest& manifest) {
  if (settings.store.driver == config::StoreDriver::postgres) {
    return fail(Errc::not_supported,
                "the settings keep the store in PostgreSQL, whose backups pg_restore puts back; "
                "restore this one with store.driver: sqlite");
  }
  const bool embedded = settings.queue.driver == config::QueueDriver::embedded;
  if (manifest.log == "embedded" && !embedded) {
    return fail(Errc::conflict,
                "the backup was made of an embedded log, and the settings name Kafka; restore it "
                "with queue.driver: embedded");
  }
  if (manifest.log != "embedded" && order.log == RestoreOrder::Log::needed) {
    return fail(Errc::conflict,
                "the backup holds a store without its log: events that were finished after it was "
                "made would be lost. If that is what you want: --store-alone");
  }
  if (manifest.schema > store::schema_version) {
    return fail(Errc::conflict, "the backup was made by a newer program, version " +
                                    manifest.program + "; restore it with that version");
  }
  return {};
}

Result<void> check_folder(const fs::path& folder) {
  std::error_code ignored;
  for (const char* name : data_files) {
    if (!fs::exists(folder / name, ignored)) continue;
    return fail(Errc::conflict, folder.string() + " holds " + name +
                                    " already; move store.db* and log out of it, or name an empty "
                                    "folder as data_dir");
  }
  return {};
}

// Makes sure that a master key exists. True: this restore has copied it.
Result<bool> take_key(const config::Settings& settings, const RestoreOrder& order) {
  const auto place = master_key(settings);
  std::error_code ignored;
  const bool there = fs::exists(place, ignored);
  if (order.key.empty()) {
    if (there) return false;
    return fail(Errc::not_found, "there is no master key " + place.string() +
                                     ": backups don't hold it; give your copy of it with "
                                     "--key FILE");
  }
  if (there && !fs::exists(order.key, ignored)) {
    return fail(Errc::unavailable, order.key.string() + " can't be read: there is no such file");
  }
  if (there && text_of(place) == text_of(order.key)) return false;
  if (there) {
    return fail(Errc::conflict, "there is another master key already, " + place.string() +
                                    ": move it away, and keep it for newer backups");
  }
  if (auto copied = copy_private(order.key, place); !copied) return fail(copied.error());
  return true;
}

Result<void> copy_data(const fs::path& folder, const RestoreOrder& order,
                       const BackupManifest& manifest) {
  if (auto made = queue::open_disk(folder / "log"); !made) return fail(made.error());
  for (const auto& [name, expected] : manifest.files) {
    if (name != "store.db" && !is_log_file(name)) continue;
    auto copied = copy_private(order.backup / name, folder / name);
    if (!copied) return fail(copied.error());
    if (copied->sha256 != expected.sha256 || copied->bytes != expected.bytes) {
      return fail(Errc::invalid_argument,
                  name + " of the backup was changed since it was made; use another backup");
    }
  }
  auto checked = store::check_sqlite_file(folder / "store.db");
  if (checked) checked = queue::check_log(folder / "log");
  if (!checked) return fail(Errc::invalid_argument, checked.error().message);
  if (auto durable = make_durable(folder / "log"); !durable) return durable;
  return make_durable(folder);
}

// Opens the copies and checks that they belong together.
Result<void> settle(const config::Settings& settings, const RestoreOrder& order,
                    const BackupManifest& manifest, const model::Clock& clock) {
  auto opening = store_settings(settings, store::PostgresSettings::Place::alone);
  opening.wrong_key = store::StoreSettings::WrongKey::counted;
  auto store = store::Store::open(opening, clock);
  if (!store) return fail(store.error());
  if (const auto unreadable = (*store)->unreadable_secrets(); unreadable > 0) {
    const auto key = order.key.empty() ? master_key(settings) : order.key;
    return fail(Errc::conflict, "the master key " + key.string() + " does not open " +
                                    std::to_string(unreadable) +
                                    " of the store's secrets; give --key the key file of the time "
                                    "of the backup, with all its lines");
  }
  if (manifest.log == "embedded") {
    auto log = open_log(settings, **store, clock, queue::Pruning::held);
    if (!log) return fail(log.error());
    if (auto whole = checked_ranges(*log->log, **store); !whole) return fail(whole.error());
    if (!manifest.committed.empty()) {
      if (auto rewound = log->embedded->rewind(manifest.committed); !rewound) return rewound;
    }
    log->log->stop();
  }
  return {};
}

}  // namespace

Result<BackupManifest> restore(const config::Settings& settings, const RestoreOrder& order,
                               const model::Clock& clock) {
  raise_limit_of_open_files();  // the log opens all of its segments
  auto manifest = BackupManifest::read(order.backup);
  if (!manifest) return manifest;
  if (auto fits = check_order(settings, order, *manifest); !fits) return fail(fits.error());
  auto folder = DataFolder::open(settings.data_dir, DataFolder::Use::restore);
  if (!folder) return fail(folder.error());
  // Data of a restore that was not finished.
  if (folder->is_being_restored()) remove_data(folder->path());
  if (auto free = check_folder(folder->path()); !free) return fail(free.error());
  if (auto begun = folder->begin_restore(); !begun) return fail(begun.error());
  // The flight recorder's notes belong to the former data.
  std::error_code ignored;
  fs::remove(flight_recorder_file(folder->path()), ignored);

  auto own_key = take_key(settings, order);
  auto done = own_key ? copy_data(folder->path(), order, *manifest) : fail(own_key.error());
  if (done) done = settle(settings, order, *manifest, clock);
  if (done) done = give_to_owner(folder->path(), restored_files(folder->path()));
  if (!done) {
    remove_data(folder->path());
    if (own_key && *own_key) fs::remove(master_key(settings), ignored);
  }
  if (auto ended = folder->end_restore(); !ended && done) return fail(ended.error());
  if (!done) return fail(done.error());
  return manifest;
}

}  // namespace conversed::daemon

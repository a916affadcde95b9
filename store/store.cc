#include "store/store.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <utility>

#include "store/sql/postgres_watch.h"
#include "store/sql/read.h"
#include "store/sql/sql.h"

namespace conversed::store {

namespace {

std::filesystem::path store_file(const StoreSettings& settings) {
  return settings.data_dir / "store.db";
}

model::Error another_key(const StoreSettings& settings) {
  const auto key =
      settings.master_key.empty() ? settings.data_dir / "master.key" : settings.master_key;
  return {Errc::conflict, "the master key " + key.string() +
                              " is not the one that this store's secrets are sealed with"};
}

std::optional<std::int64_t> known_key(Connection& connection) {
  return connection.value<std::int64_t>("SELECT value FROM meta WHERE name = 'key'");
}

bool has_another_key(Connection& connection, const Sealer& sealer) {
  const auto known = known_key(connection);
  return known && !sealer.has_key(*known);
}

void note_key(Connection& connection, const Sealer& sealer) {
  connection.run("INSERT INTO meta (name, value) VALUES ('key', :v)", sealer.fingerprint());
}

// All daemons on a store need the same key: otherwise they could not read each other's secrets.
Result<void> check_key(Connection& connection, const Sealer& sealer) {
  connection.begin();
  const auto known = known_key(connection);
  if (!known) note_key(connection, sealer);
  connection.commit();
  if (!known || sealer.has_key(*known)) return {};
  return fail(Errc::conflict,
              "the store was made with another master.key: copy that file from the data_dir of a "
              "daemon that uses the store");
}

// A store of a file may have no secret yet, or may be of an older program, which noted no key.
Result<void> check_key_of_file(Connection& connection, const StoreSettings& settings,
                               const Sealer& sealer) {
  const bool refuses = settings.wrong_key == StoreSettings::WrongKey::refused;
  if (!refuses || !has_another_key(connection, sealer)) return {};
  return fail(another_key(settings));
}

// The next start does it if this one can't: a start must not depend on a store that can be written.
void note_key_of_file(Connection& connection, const Sealer& sealer) {
  if (known_key(connection)) return;
  try {
    connection.begin();
    note_key(connection, sealer);
    connection.commit();
  } catch (const SqlError&) {
    connection.rollback();
  }
}

// A store without its key is an operator's mistake, and a new key would hide it. So would a
// handed-over key that did not seal the stored values.
Result<Sealer> open_sealer(const StoreSettings& settings, bool key_was_used) {
  const auto own = settings.data_dir / "master.key";
  std::error_code ignored;
  const bool has_own = std::filesystem::exists(own, ignored);
  if (settings.master_key.empty()) {
    if (!has_own && !key_was_used) {
      auto created = Sealer::create_key_file(own);
      if (!created) return fail(created.error());
    }
    return Sealer::open(own);
  }
  auto handed_over = Sealer::open(settings.master_key, KeyFile::handed_over);
  if (!handed_over || !has_own) return handed_over;
  auto sealed_with = Sealer::open(own);
  if (!sealed_with) return sealed_with;
  if (handed_over->has_keys_of(*sealed_with)) return handed_over;
  return fail(Errc::conflict, "the credential " + settings.master_key.string() +
                                  " lacks a key of " + own.string() +
                                  ", which values are sealed with: make it a copy of that file, or "
                                  "remove the file if it is not needed");
}

// Indexes chunks that a program without the index wrote.
void take_in_knowledge(Connection& connection) {
  // A start must not depend on a store that can be written.
  if (!connection.value<std::int64_t>("SELECT 1 FROM knowledge_unindexed LIMIT 1")) return;
  connection.begin();
  try {
    index_knowledge(connection);
    connection.commit();
  } catch (...) {
    connection.rollback();
    throw;
  }
}

}  // namespace

struct Store::Opened {
  std::unique_ptr<Database> database;
  Sealer sealer;
  std::shared_ptr<PostgresPulse> pulse{};  // of a server
};

Result<Store::Opened> Store::open_in_file(const StoreSettings& settings) {
  const auto file = store_file(settings);
  std::error_code ignored;
  auto sealer = open_sealer(settings, std::filesystem::exists(file, ignored));
  if (!sealer) return fail(sealer.error());
  auto database = Database::open({.file = file,
                                  .readers = settings.readers,
                                  .busy_timeout = settings.busy_timeout,
                                  .go_on = settings.go_on});
  if (!database) return fail(database.error());
  auto checked = with_errors((*database)->writer(), [&](Connection& connection) -> Result<void> {
    return check_key_of_file(connection, settings, *sealer);
  });
  if (!checked) return fail(checked.error());
  return Opened{*std::move(database), *std::move(sealer)};
}

Result<Store::Opened> Store::open_in_postgres(const StoreSettings& settings) {
  auto pulse = std::make_shared<PostgresPulse>();
  auto database = Database::open({.postgres = settings.postgres,
                                  .pulse = pulse,
                                  .readers = settings.readers,
                                  .go_on = settings.go_on});
  if (!database) return fail(database.error());
  Connection& connection = (*database)->writer();
  auto used = with_errors(
      connection, [](Connection& writer) -> Result<bool> { return known_key(writer).has_value(); });
  if (!used) return fail(used.error());
  auto sealer = open_sealer(settings, *used);
  if (!sealer) return fail(sealer.error());
  auto checked = with_errors(
      connection, [&](Connection& writer) -> Result<void> { return check_key(writer, *sealer); });
  if (!checked) return fail(checked.error());
  return Opened{*std::move(database), *std::move(sealer), std::move(pulse)};
}

Store::Store(Opened opened, const StoreSettings& settings, const model::Clock& clock)
    : sealer_(std::move(opened.sealer)),
      database_(std::move(opened.database)),
      file_(settings.postgres ? std::filesystem::path() : store_file(settings)),
      timer_clock_(settings.committer.timer_clock == nullptr ? clock
                                                             : *settings.committer.timer_clock),
      pulse_(std::move(opened.pulse)),
      committer_(*database_, clock, settings.committer) {
  if (!settings.postgres) return;
  watch_.emplace(
      *settings.postgres,
      [this](std::string_view heard) {
        note_change(heard);
        notifications_.tell(heard);
      },
      *pulse_);
}

Store::~Store() {
  committer_.stop();
}

// Notes a change by another daemon. It may also be a change by this daemon, which is noted already.
// Rights depend on roles and on tokens, so caches of principals compare the sum of the generations.
void Store::note_change(std::string_view topic) {
  if (topic.empty() || topic == "people") accounts_.bump_generation();
  if (topic.empty() || topic == "assets") assets_.bump_generation();
}

Result<std::unique_ptr<Store>> Store::open(const StoreSettings& settings,
                                           const model::Clock& clock) {
  auto opened = settings.postgres ? open_in_postgres(settings) : open_in_file(settings);
  if (!opened) return fail(opened.error());
  std::unique_ptr<Store> store(new Store(*std::move(opened), settings, clock));
  if (auto begun = store->begin(settings); !begun) return fail(begun.error());
  return store;
}

Result<void> Store::begin(const StoreSettings& settings) {
  auto indexed = with_errors(database_->writer(), [&](Connection& connection) {
    const Connection::Asking asking(connection, settings.go_on);
    take_in_knowledge(connection);
  });
  if (!indexed) return indexed;
  const auto secrets = key_rotation_.check();
  if (!secrets) return fail(secrets.error());
  const bool opens_none = secrets->unreadable > 0 && secrets->opened == 0;
  if (opens_none && settings.wrong_key == StoreSettings::WrongKey::refused) {
    return fail(another_key(settings));
  }
  // Only a key that opens all secrets is known to be the store's.
  if (!settings.postgres && secrets->unreadable == 0) {
    auto noted = with_errors(database_->writer(), [&](Connection& connection) {
      note_key_of_file(connection, sealer_);
    });
    if (!noted) return noted;
  }
  if (watch_) {
    if (auto watching = watch_->start(); !watching) return watching;
  }
  auto of_another_key = with_errors(database_->writer(), [&](Connection& connection) {
    return has_another_key(connection, sealer_);
  });
  if (!of_another_key) return fail(of_another_key.error());
  // A store without secrets has a key, too.
  unreadable_secrets_ = std::max<std::int64_t>(secrets->unreadable, *of_another_key ? 1 : 0);
  committer_.start();
  return {};
}

Result<void> Store::forget_writers() {
  return committer_.write_and_wait([](Writer& writer) {
    // A daemon that does not know the outcome of its COMMIT may still read a younger row.
    writer.connection().run("DELETE FROM writers WHERE written_at < :t",
                            writer.now() - std::chrono::weeks(1));
  });
}

bool Store::healthy() const {
  return committer_.healthy() && (!pulse_ || pulse_->answers());
}

std::string Store::failure() const {
  if (healthy()) return {};
  if (committer_.healthy()) return "the database server does not answer";
  auto failure = committer_.last_failure();
  if (!file_.empty()) failure = file_.string() + ": " + failure;
  return failure;
}

}  // namespace conversed::store

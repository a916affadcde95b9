#include "store/store.h"

#include <filesystem>
#include <optional>
#include <string_view>

#include "store/postgres_watch.h"
#include "store/read.h"
#include "store/sql.h"

namespace conversed::store {

using model::Errc;
using model::fail;
using model::Result;

namespace {

// What must be the same for all who share a store: nobody could read the others' secrets.
Result<void> check_key(Connection& connection, const Sealer& sealer) {
  connection.begin();
  const auto known = connection.value<std::int64_t>("SELECT value FROM meta WHERE name = 'key'");
  if (!known) {
    connection.run("INSERT INTO meta (name, value) VALUES ('key', :v)", sealer.fingerprint());
  }
  connection.commit();
  if (!known || *known == sealer.fingerprint()) return {};
  return fail(Errc::conflict,
              "the store was made with another master.key: copy that file from the data_dir of a "
              "daemon that uses the store");
}

// An operator's mistake is not hidden by a new key: one is made only where none was ever used.
Result<Sealer> open_sealer(const std::filesystem::path& file, bool key_was_used) {
  std::error_code ignored;
  if (!key_was_used && !std::filesystem::exists(file, ignored)) {
    auto created = Sealer::create_key_file(file);
    if (!created) return fail(created.error());
  }
  return Sealer::open(file);
}

struct Opened {
  std::unique_ptr<Database> database;
  Sealer sealer;
};

Result<Opened> open_in_file(const StoreSettings& settings) {
  const auto file = settings.data_dir / "store.db";
  std::error_code ignored;
  auto sealer =
      open_sealer(settings.data_dir / "master.key", std::filesystem::exists(file, ignored));
  if (!sealer) return fail(sealer.error());
  auto database = Database::open(
      {.file = file, .readers = settings.readers, .busy_timeout = settings.busy_timeout});
  if (!database) return fail(database.error());
  return Opened{*std::move(database), *std::move(sealer)};
}

Result<Opened> open_in_postgres(const StoreSettings& settings) {
  auto database = Database::open({.postgres = settings.postgres, .readers = settings.readers});
  if (!database) return fail(database.error());
  Connection& connection = (*database)->writer();
  auto used = with_errors(connection, [](Connection& writer) -> Result<bool> {
    return writer.value<std::int64_t>("SELECT value FROM meta WHERE name = 'key'").has_value();
  });
  if (!used) return fail(used.error());
  auto sealer = open_sealer(settings.data_dir / "master.key", *used);
  if (!sealer) return fail(sealer.error());
  auto checked = with_errors(
      connection, [&](Connection& writer) -> Result<void> { return check_key(writer, *sealer); });
  if (!checked) return fail(checked.error());
  return Opened{*std::move(database), *std::move(sealer)};
}

}  // namespace

struct Store::Impl {
  Impl(Opened opened, const StoreSettings& settings, const model::Clock& clock)
      : sealer(std::move(opened.sealer)),
        database(std::move(opened.database)),
        committer(*database, clock, settings.committer),
        sessions(*database, committer),
        outbox(*database, committer),
        calls(*database),
        dead_letters(*database, committer),
        append_keys(*database, committer),
        attempts(*database, committer),
        answers(*database, committer),
        jobs(*database, committer),
        assets(*database, committer, sealer),
        accounts(*database, committer),
        oauth(*database, committer, sealer),
        usage(*database) {
    if (settings.postgres) {
      watch.emplace(*settings.postgres, [this](std::string_view topic) { note_change(topic); });
    }
  }

  // Another daemon's change, or one of ours that is known already. People's rights hang on roles
  // and tokens alike: whoever caches them asks for the sum of the generations.
  void note_change(std::string_view topic) {
    if (topic.empty() || topic == "people") accounts.bump_generation();
    if (topic.empty() || topic == "lexicons") assets.bump_generation();
    if (topic == "assets") assets.bump_generation(Assets::Changed::no_lexicon);
  }

  Sealer sealer;
  std::unique_ptr<Database> database;
  Committer committer;
  Sessions sessions;
  Outbox outbox;
  Calls calls;
  DeadLetters dead_letters;
  AppendKeys append_keys;
  Attempts attempts;
  Answers answers;
  Jobs jobs;
  Assets assets;
  Accounts accounts;
  Oauth oauth;
  Usage usage;
  bool was_clean = true;
  std::optional<PostgresWatch> watch;
};

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() {
  impl_->committer.stop();
}

Result<std::unique_ptr<Store>> Store::open(const StoreSettings& settings,
                                           const model::Clock& clock) {
  auto opened = settings.postgres ? open_in_postgres(settings) : open_in_file(settings);
  if (!opened) return fail(opened.error());
  auto impl = std::make_unique<Impl>(*std::move(opened), settings, clock);
  auto clean = with_errors(impl->database->writer(), [](Connection& connection) -> Result<bool> {
    return connection.value<std::int64_t>("SELECT value FROM meta WHERE name = 'clean'")
               .value_or(1) != 0;
  });
  if (!clean) return fail(clean.error());
  impl->was_clean = *clean;
  if (impl->watch) {
    if (auto watching = impl->watch->start(); !watching) return fail(watching.error());
  }
  impl->committer.start();
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

bool Store::was_clean() const {
  return impl_->was_clean;
}

namespace {

void mark(Connection& connection, int clean) {
  connection.run(
      "INSERT INTO meta (name, value) VALUES ('clean', :v)"
      " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
      clean);
}

}  // namespace

Result<void> Store::mark_running() {
  const auto work = [](Writer& writer) -> Result<void> {
    mark(writer.connection(), 0);
    // Markers of earlier runs: nobody asks for their outcome any more.
    writer.connection().run("DELETE FROM writers");
    return {};
  };
  return impl_->committer.write_and_wait(work, {}, Committer::Patience::until_it_works);
}

Result<void> Store::mark_clean_stop() {
  impl_->committer.stop();
  if (!impl_->committer.healthy()) {
    return fail(Errc::unavailable, "the store failed while it stopped");
  }
  // The Committer's thread is gone: its connection is ours.
  return with_errors(impl_->database->writer(), [](Connection& connection) -> Result<void> {
    mark(connection, 1);
    return {};
  });
}

Committer& Store::committer() {
  return impl_->committer;
}
Sessions& Store::sessions() {
  return impl_->sessions;
}
Outbox& Store::outbox() {
  return impl_->outbox;
}
Calls& Store::calls() {
  return impl_->calls;
}
DeadLetters& Store::dead_letters() {
  return impl_->dead_letters;
}
AppendKeys& Store::append_keys() {
  return impl_->append_keys;
}
Attempts& Store::attempts() {
  return impl_->attempts;
}
Answers& Store::answers() {
  return impl_->answers;
}
Jobs& Store::jobs() {
  return impl_->jobs;
}
Assets& Store::assets() {
  return impl_->assets;
}
Accounts& Store::accounts() {
  return impl_->accounts;
}
Oauth& Store::oauth() {
  return impl_->oauth;
}
Usage& Store::usage() {
  return impl_->usage;
}

}  // namespace conversed::store

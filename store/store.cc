#include "store/store.h"

#include <filesystem>

#include "store/read.h"
#include "store/sql.h"

namespace conversed::store {

using model::Errc;
using model::fail;
using model::Result;

struct Store::Impl {
  Impl(std::unique_ptr<Database> opened, Sealer keys, const model::Clock& clock,
       const CommitterSettings& settings)
      : sealer(std::move(keys)),
        database(std::move(opened)),
        committer(*database, clock, settings),
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
        usage(*database),
        key_rotation(*database, committer, sealer),
        user_data(*database, committer) {}

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
  KeyRotation key_rotation;
  UserData user_data;
  bool was_clean = true;
};

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() {
  impl_->committer.stop();
}

Result<std::unique_ptr<Store>> Store::open(const StoreSettings& settings,
                                           const model::Clock& clock) {
  const auto file = settings.data_dir / "store.db";
  const auto key_file =
      settings.key_file.empty() ? settings.data_dir / "master.key" : settings.key_file;
  std::error_code ignored;
  // A store without its key is an operator's mistake; a new key would hide it.
  if (settings.key_file_is == Sealer::KeyFile::own && !std::filesystem::exists(file, ignored) &&
      !std::filesystem::exists(key_file, ignored)) {
    auto created = Sealer::create_key_file(key_file);
    if (!created) return fail(created.error());
  }
  auto sealer = Sealer::open(key_file, settings.key_file_is);
  if (!sealer) return fail(sealer.error());
  auto database = Database::open(
      {.file = file, .readers = settings.readers, .busy_timeout = settings.busy_timeout});
  if (!database) return fail(database.error());

  auto impl =
      std::make_unique<Impl>(*std::move(database), *std::move(sealer), clock, settings.committer);
  auto clean = with_errors(impl->database->writer(), [](Connection& connection) -> Result<bool> {
    return connection.value<std::int64_t>("SELECT value FROM meta WHERE name = 'clean'")
               .value_or(1) != 0;
  });
  if (!clean) return fail(clean.error());
  impl->was_clean = *clean;
  const auto secrets = impl->key_rotation.check();
  if (!secrets) return fail(secrets.error());
  if (secrets->unreadable > 0 && secrets->opened == 0) {
    return fail(Errc::conflict, "the master key " + key_file.string() +
                                    " is not the one that this store's secrets are sealed with");
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
KeyRotation& Store::key_rotation() {
  return impl_->key_rotation;
}
UserData& Store::user_data() {
  return impl_->user_data;
}

}  // namespace conversed::store

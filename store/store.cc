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
        follow_ups(*database, committer),
        schedules(*database, committer),
        dead_letters(*database, committer),
        append_keys(*database, committer),
        attempts(*database, committer),
        answers(*database, committer),
        jobs(*database, committer),
        proactive(*database, sealer),
        assets(*database, committer, sealer),
        knowledge(make_knowledge_search(*database)),
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
  FollowUps follow_ups;
  Schedules schedules;
  DeadLetters dead_letters;
  AppendKeys append_keys;
  Attempts attempts;
  Answers answers;
  Jobs jobs;
  Proactive proactive;
  Assets assets;
  std::unique_ptr<KnowledgeSearch> knowledge;
  Accounts accounts;
  Oauth oauth;
  Usage usage;
  KeyRotation key_rotation;
  UserData user_data;
  bool was_clean = true;
};

namespace {

// What an older program has left to be taken in, or wrote before there was an index.
Result<void> take_in_knowledge(Connection& connection) {
  // A start that has nothing to write must not depend on being able to.
  if (!connection.value<std::int64_t>("SELECT 1 FROM knowledge_unindexed LIMIT 1")) return {};
  connection.begin();
  try {
    index_knowledge(connection);
    connection.commit();
  } catch (...) {
    connection.rollback();
    throw;
  }
  return {};
}

}  // namespace

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() {
  impl_->committer.stop();
}

namespace {

// A store without its key is an operator's mistake; a new key would hide it. So would a key that is
// handed over and is not the one that values were sealed with.
Result<Sealer> open_sealer(const StoreSettings& settings, const std::filesystem::path& store_file) {
  const auto own = settings.data_dir / "master.key";
  std::error_code ignored;
  const bool has_own = std::filesystem::exists(own, ignored);
  if (settings.master_key.empty()) {
    if (!has_own && !std::filesystem::exists(store_file, ignored)) {
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
                                  "remove the file if it is of no use");
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const StoreSettings& settings,
                                           const model::Clock& clock) {
  const auto file = settings.data_dir / "store.db";
  auto sealer = open_sealer(settings, file);
  if (!sealer) return fail(sealer.error());
  auto database = Database::open({.file = file,
                                  .readers = settings.readers,
                                  .busy_timeout = settings.busy_timeout,
                                  .go_on = settings.go_on});
  if (!database) return fail(database.error());

  auto impl =
      std::make_unique<Impl>(*std::move(database), *std::move(sealer), clock, settings.committer);
  auto clean = with_errors(impl->database->writer(), [](Connection& connection) -> Result<bool> {
    return connection.value<std::int64_t>("SELECT value FROM meta WHERE name = 'clean'")
               .value_or(1) != 0;
  });
  if (!clean) return fail(clean.error());
  impl->was_clean = *clean;
  auto indexed = with_errors(impl->database->writer(), [&](Connection& connection) {
    const Connection::Asking asking(connection, settings.go_on);
    return take_in_knowledge(connection);
  });
  if (!indexed) return fail(indexed.error());
  const auto secrets = impl->key_rotation.check();
  if (!secrets) return fail(secrets.error());
  if (secrets->unreadable > 0 && secrets->opened == 0) {
    const auto key =
        settings.master_key.empty() ? settings.data_dir / "master.key" : settings.master_key;
    return fail(Errc::conflict, "the master key " + key.string() +
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
  return impl_->committer.write_and_wait(work, Committer::Patience::until_it_works);
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
FollowUps& Store::follow_ups() {
  return impl_->follow_ups;
}
Schedules& Store::schedules() {
  return impl_->schedules;
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
Proactive& Store::proactive() {
  return impl_->proactive;
}
Assets& Store::assets() {
  return impl_->assets;
}
KnowledgeSearch& Store::knowledge() {
  return *impl_->knowledge;
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

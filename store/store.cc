#include "store/store.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "store/sql/postgres_watch.h"
#include "store/sql/read.h"
#include "store/sql/sql.h"

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
  if (!known || sealer.has_key(*known)) return {};
  return fail(Errc::conflict,
              "the store was made with another master.key: copy that file from the data_dir of a "
              "daemon that uses the store");
}

// A store without its key is an operator's mistake; a new key would hide it. So would a key that is
// handed over and is not the one that values were sealed with.
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
                                  "remove the file if it is of no use");
}

struct Opened {
  std::unique_ptr<Database> database;
  Sealer sealer;
  std::shared_ptr<PostgresPulse> pulse{};  // of a server
};

Result<Opened> open_in_file(const StoreSettings& settings) {
  const auto file = settings.data_dir / "store.db";
  std::error_code ignored;
  auto sealer = open_sealer(settings, std::filesystem::exists(file, ignored));
  if (!sealer) return fail(sealer.error());
  auto database = Database::open({.file = file,
                                  .readers = settings.readers,
                                  .busy_timeout = settings.busy_timeout,
                                  .go_on = settings.go_on});
  if (!database) return fail(database.error());
  return Opened{*std::move(database), *std::move(sealer)};
}

Result<Opened> open_in_postgres(const StoreSettings& settings) {
  auto pulse = std::make_shared<PostgresPulse>();
  auto database = Database::open({.postgres = settings.postgres,
                                  .pulse = pulse,
                                  .readers = settings.readers,
                                  .go_on = settings.go_on});
  if (!database) return fail(database.error());
  Connection& connection = (*database)->writer();
  auto used = with_errors(connection, [](Connection& writer) -> Result<bool> {
    return writer.value<std::int64_t>("SELECT value FROM meta WHERE name = 'key'").has_value();
  });
  if (!used) return fail(used.error());
  auto sealer = open_sealer(settings, *used);
  if (!sealer) return fail(sealer.error());
  auto checked = with_errors(
      connection, [&](Connection& writer) -> Result<void> { return check_key(writer, *sealer); });
  if (!checked) return fail(checked.error());
  return Opened{*std::move(database), *std::move(sealer), std::move(pulse)};
}

}  // namespace

struct Store::Impl {
  Impl(Opened opened, const StoreSettings& settings, const model::Clock& clock)
      : sealer(std::move(opened.sealer)),
        database(std::move(opened.database)),
        timer_clock(settings.committer.timer_clock == nullptr ? clock
                                                              : *settings.committer.timer_clock),
        pulse(std::move(opened.pulse)),
        committer(*database, clock, settings.committer),
        sessions(*database, committer),
        outbox(*database, committer),
        calls(*database, committer),
        follow_ups(*database, committer),
        schedules(*database, committer),
        timers(*database, committer),
        pending_timers(*database, committer),
        audit(*database, committer),
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
        sign_ins(*database, committer, sealer),
        usage(*database),
        key_rotation(*database, committer, sealer),
        user_data(*database, committer),
        members(*database, committer) {
    if (settings.postgres) {
      watch.emplace(
          *settings.postgres,
          [this](std::string_view heard) {
            note_change(heard);
            notifications.tell(heard);
          },
          *pulse);
    }
  }

  // Another daemon's change, or one of ours that is known already. People's rights hang on roles
  // and tokens alike: whoever caches them asks for the sum of the generations.
  void note_change(std::string_view topic) {
    if (topic.empty() || topic == "people") accounts.bump_generation();
    if (topic.empty() || topic == "lexicons") {
      assets.bump_generation(Assets::Lexicons::may_change);
    }
    if (topic == "assets") assets.bump_generation(Assets::Lexicons::stay);
  }

  Sealer sealer;
  std::unique_ptr<Database> database;
  const model::Clock& timer_clock;
  std::shared_ptr<PostgresPulse> pulse;  // null: there is no server
  Committer committer;
  Sessions sessions;
  Outbox outbox;
  Calls calls;
  FollowUps follow_ups;
  Schedules schedules;
  Timers timers;
  PendingTimers pending_timers;
  Audit audit;
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
  SignIns sign_ins;
  Usage usage;
  KeyRotation key_rotation;
  UserData user_data;
  Members members;
  Notifications notifications;
  std::optional<PostgresWatch> watch;
  std::int64_t unreadable_secrets = 0;
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

Result<std::unique_ptr<Store>> Store::open(const StoreSettings& settings,
                                           const model::Clock& clock) {
  auto opened = settings.postgres ? open_in_postgres(settings) : open_in_file(settings);
  if (!opened) return fail(opened.error());
  auto impl = std::make_unique<Impl>(*std::move(opened), settings, clock);
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
  if (impl->watch) {
    if (auto watching = impl->watch->start(); !watching) return fail(watching.error());
  }
  impl->unreadable_secrets = secrets->unreadable;
  impl->committer.start();
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

std::int64_t Store::unreadable_secrets() const {
  return impl_->unreadable_secrets;
}

Result<void> Store::forget_writers() {
  return impl_->committer.write_and_wait([](Writer& writer) -> Result<void> {
    // A younger one may be asked for yet, by a daemon that does not know what became of its COMMIT.
    writer.connection().run("DELETE FROM writers WHERE written_at < :t",
                            model::to_unix_ms(writer.now() - std::chrono::weeks(1)));
    return {};
  });
}

model::Timestamp Store::timer_now() const {
  return impl_->timer_clock.now();
}

bool Store::healthy() const {
  return impl_->committer.healthy() && (!impl_->pulse || impl_->pulse->answers());
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
Timers& Store::timers() {
  return impl_->timers;
}

PendingTimers& Store::pending_timers() {
  return impl_->pending_timers;
}
Audit& Store::audit() {
  return impl_->audit;
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

SignIns& Store::sign_ins() {
  return impl_->sign_ins;
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

Members& Store::members() {
  return impl_->members;
}
Notifications& Store::notifications() {
  return impl_->notifications;
}

}  // namespace conversed::store

#include "store/store.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/commit/row_numbers.h"
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

// A server keeps its place in the list of shards. Otherwise sessions would be looked for on other
// servers than their own.
Result<void> check_number(Connection& connection, std::size_t number) {
  connection.begin();
  const auto known = connection.value<std::size_t>("SELECT value FROM meta WHERE name = 'shard'");
  // A server that has a key and no number is a store by itself. It may only be the first.
  const bool is_foreign = !known && number > 0 && known_key(connection);
  if (!known && !is_foreign) {
    const auto base = base_of_numbers(number);
    connection.run("INSERT INTO meta (name, value) VALUES ('shard', :n)", number);
    connection.run("INSERT INTO meta (name, value) VALUES ('numbers_from', :n)", base);
    connection.run("INSERT INTO meta (name, value) VALUES ('numbers_to', :n)",
                   last_number(base + 1));
    if (number > 0) {
      (void)connection.number("SELECT setval(pg_get_serial_sequence('sessions', 'id'), :n)", base);
      (void)connection.number("SELECT setval(pg_get_serial_sequence('outputs', 'id'), :n)", base);
    }
  }
  connection.commit();
  if (is_foreign) {
    return fail(Errc::conflict, "server " + std::to_string(number) +
                                    " of store.postgres.shards has a store of its own; give it an "
                                    "empty database");
  }
  if (!known || *known == number) return {};
  return fail(Errc::conflict, "server " + std::to_string(number) +
                                  " of store.postgres.shards is shard " + std::to_string(*known) +
                                  "; keep the order of the list, whose first server is the one of "
                                  "store.postgres.url");
}

// `number`: its place in the list of shards; none: there is one server.
Result<void> check_server(Connection& connection, std::optional<std::size_t> number,
                          const Sealer& sealer) {
  if (number) {
    if (auto right = check_number(connection, *number); !right) return right;
  }
  return check_key(connection, sealer);
}

struct OpenedServer {
  ShardPlace place;
  std::unique_ptr<Database> database;
  std::shared_ptr<PostgresPulse> pulse{};  // null: it is a file
  bool is_away = false;
};

enum class IfAway : std::uint8_t { refused, opened_later };

Result<OpenedServer> open_server(const PostgresSettings& server, const StoreSettings& settings,
                                 IfAway if_away = IfAway::refused) {
  DatabaseSettings opening{.postgres = server,
                           .pulse = std::make_shared<PostgresPulse>(),
                           .readers = settings.readers,
                           .go_on = settings.go_on};
  auto database = Database::open(opening);
  const bool is_away = !database && database.error().code == Errc::unavailable;
  if (is_away && if_away == IfAway::opened_later) {
    opening.opens_later = true;
    opening.pulse->lost();
    database = Database::open(opening);
  }
  if (!database) return fail(database.error());
  return OpenedServer{
      {.postgres = server}, *std::move(database), std::move(opening.pulse), is_away};
}

// A server of a store that is laid out has been used before. It may be away at a start.
Result<IfAway> if_away(Connection& first) {
  return with_errors(first, [](Connection& connection) {
    const bool laid_out = connection.exists("SELECT 1 FROM partition_shards LIMIT 1");
    return laid_out ? IfAway::opened_later : IfAway::refused;
  });
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

namespace {

Shards make_shards(std::vector<OpenedServer> servers, const Sealer& sealer,
                   const StoreSettings& settings, const model::Clock& clock) {
  Shards shards;
  for (auto& server : servers) {
    CommitterSettings committer = settings.committer;
    if (server.is_away) {
      committer.admit = [database = server.database.get(), number = shards.size(),
                         &sealer]() -> Result<void> {
        if (auto migrated = database->admit(); !migrated) return migrated;
        return check_server(database->writer(), number, sealer);
      };
    }
    shards.push_back(std::make_unique<Shard>(std::move(server.place), std::move(server.database),
                                             std::move(server.pulse), committer, clock));
    // Finds out that it is away.
    if (server.is_away) shards.back()->committer().probe();
  }
  return shards;
}

}  // namespace

struct Store::Opened {
  Sealer sealer;
  std::vector<OpenedServer> servers;
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
  Opened opened{*std::move(sealer), {}};
  opened.servers.push_back({{.file = file}, *std::move(database)});
  return opened;
}

Result<Store::Opened> Store::open_in_postgres(const StoreSettings& settings) {
  auto first = open_server(*settings.postgres, settings);
  if (!first) return fail(first.error());
  Connection& connection = first->database->writer();
  auto used = with_errors(
      connection, [](Connection& writer) -> Result<bool> { return known_key(writer).has_value(); });
  if (!used) return fail(used.error());
  auto sealer = open_sealer(settings, *used);
  if (!sealer) return fail(sealer.error());
  Opened opened{*std::move(sealer), {}};
  opened.servers.push_back(*std::move(first));
  const auto later = if_away(connection);
  if (!later) return fail(later.error());
  for (const auto& each : settings.shards) {
    auto server = open_server(each, settings, *later);
    if (!server) {
      return fail(server.error().code, "server " + std::to_string(opened.servers.size()) +
                                           " of store.postgres.shards: " + server.error().message);
    }
    opened.servers.push_back(*std::move(server));
  }
  for (std::size_t number = 0; number < opened.servers.size(); ++number) {
    if (opened.servers[number].is_away) continue;
    auto checked = with_errors(opened.servers[number].database->writer(), [&](Connection& writer) {
      return check_server(writer, settings.shards.empty() ? std::nullopt : std::optional(number),
                          opened.sealer);
    });
    if (!checked) return fail(checked.error());
  }
  return opened;
}

Store::Store(Opened opened, const StoreSettings& settings, const model::Clock& clock)
    : sealer_(std::move(opened.sealer)),
      shards_(make_shards(std::move(opened.servers), sealer_, settings, clock)) {}

Store::~Store() {
  for (const auto& shard : shards_) shard->stop();
}

Shard& Store::of(const model::SessionKey& key) const {
  return *shards_[layout_.shard_of(key)];
}

Shard& Store::of(std::int32_t partition) const {
  return *shards_[layout_.shard_of(partition)];
}

std::vector<Notifications::Subscription> Store::subscribe(std::string_view topic,
                                                          const Notifications::Heard& heard) const {
  std::vector<Notifications::Subscription> subscriptions;
  for (const auto& shard : shards_) {
    subscriptions.push_back(shard->notifications().subscribe(std::string(topic), heard));
  }
  return subscriptions;
}

Result<std::vector<model::Position>> Store::highest_positions() const {
  std::vector<model::Position> all;
  for (const auto& shard : shards_) {
    if (!shard->healthy()) continue;
    auto positions = shard->sessions().highest_positions();
    if (!positions) return positions;
    all.insert(all.end(), positions->begin(), positions->end());
  }
  return all;
}

void Store::stop_retrying() {
  for (const auto& shard : shards_) shard->committer().stop_retrying();
}

void Store::stop_commits() {
  for (const auto& shard : shards_) shard->committer().stop();
}

std::vector<Database*> Store::databases() const {
  std::vector<Database*> all;
  for (const auto& shard : shards_) all.push_back(&shard->database());
  return all;
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
  auto indexed = with_errors(database_.writer(), [&](Connection& connection) {
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
    auto noted = with_errors(
        database_.writer(), [&](Connection& connection) { note_key_of_file(connection, sealer_); });
    if (!noted) return noted;
  }
  if (auto laid_out = layout_.read(); !laid_out) return laid_out;
  for (const auto& shard : shards_) {
    auto watching = shard->watch([this](std::string_view heard) { note_change(heard); });
    if (!watching) return watching;
  }
  auto of_another_key = with_errors(database_.writer(), [&](Connection& connection) {
    return has_another_key(connection, sealer_);
  });
  if (!of_another_key) return fail(of_another_key.error());
  // A store without secrets has a key, too.
  unreadable_secrets_ = std::max<std::int64_t>(secrets->unreadable, *of_another_key ? 1 : 0);
  for (const auto& shard : shards_) shard->committer().start();
  return {};
}

}  // namespace conversed::store

#include "store/database.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "store/migrations/migrations.h"
#include "store/postgres.h"
#include "store/sql.h"
#include "store/sqlite.h"

namespace conversed::store {
namespace {

using model::Errc;
using model::fail;
using model::Result;

bool has_schema(Connection& connection) {
  const auto count = connection.value<std::int64_t>(
      connection.dialect() == Dialect::sqlite
          ? "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'"
          : "SELECT COUNT(*) FROM pg_tables WHERE schemaname = current_schema()"
            " AND tablename = 'schema_version'");
  return count.value_or(0) > 0;
}

// The version of the schema, 0 for none. A newer one is left alone if we may still use it.
Result<std::int64_t> version_of(Connection& connection) {
  const auto min_reader =
      connection.value<std::int64_t>("SELECT MAX(min_reader) FROM schema_version").value_or(0);
  if (min_reader > schema_version) {
    return fail(Errc::conflict, "the store was written by a newer program: it needs version " +
                                    std::to_string(min_reader) + " of the schema, this one has " +
                                    std::to_string(schema_version));
  }
  return connection.value<std::int64_t>("SELECT MAX(version) FROM schema_version").value_or(0);
}

Result<void> take_step(Connection& connection, const Migration& migration) {
  connection.begin();
  try {
    connection.run(
        "CREATE TABLE IF NOT EXISTS schema_version "
        "(version BIGINT PRIMARY KEY, min_reader BIGINT NOT NULL)");
    // Another daemon may have been here meanwhile.
    auto current = version_of(connection);
    if (!current) {
      connection.rollback();
      return fail(current.error());
    }
    if (migration.version > *current) {
      connection.script(migration.sql);
      connection.run("INSERT INTO schema_version (version, min_reader) VALUES (:v, :r)",
                     migration.version, migration.min_reader);
    }
    connection.commit();
    return {};
  } catch (...) {
    connection.rollback();
    throw;
  }
}

// Brings the schema up to ours, each step in its own transaction, in which another daemon that
// migrates has to wait. Writes nothing if there is nothing to do: a start must not depend on being
// able to. Returns the version that was found.
Result<std::int64_t> migrate(Connection& connection, std::span<const Migration> steps) {
  auto found = has_schema(connection) ? version_of(connection) : Result<std::int64_t>(0);
  if (!found) return found;
  for (const Migration& migration : steps) {
    if (migration.version <= *found) continue;
    if (auto taken = take_step(connection, migration); !taken) return fail(taken.error());
  }
  return found;
}

// SQLite gives its WAL the mode of the database: the file is made with 0600 before it opens it.
bool make_private(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return false;
  ::close(descriptor);
  return true;
}

struct ReaderSlot {
  std::mutex in_use;
  std::unique_ptr<Connection> connection;
};

// Threads take numbers in turn; a thread's number is the reader that it prefers.
std::size_t thread_number() {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t number = next.fetch_add(1);
  return number;
}

}  // namespace

struct Database::Impl {
  std::unique_ptr<Connection> writer;  // closed last, so that it can checkpoint
  std::vector<std::unique_ptr<ReaderSlot>> readers;
  bool is_new = false;
};

Database::Database(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Database::~Database() = default;

Result<std::unique_ptr<Database>> Database::open(const DatabaseSettings& settings) {
  // PostgreSQL's URL may hold a password.
  const std::string name =
      "the store " + (settings.postgres ? std::string("in PostgreSQL") : settings.file.string());
  if (!settings.postgres && !make_private(settings.file)) {
    return fail(Errc::unavailable, name + " can't be opened");
  }
  const auto pulse = settings.pulse ? settings.pulse : std::make_shared<PostgresPulse>();
  const auto connect = [&](Connection::Role role) {
    return settings.postgres ? open_postgres(*settings.postgres, role, pulse)
                             : open_sqlite(settings.file, role, settings.busy_timeout);
  };
  try {
    auto impl = std::make_unique<Impl>();
    impl->writer = connect(Connection::Role::writer);
    const Connection::Asking asking(*impl->writer, settings.go_on);
    const auto found =
        migrate(*impl->writer, settings.postgres ? postgres_steps() : sqlite_steps());
    if (!found) return fail(found.error());
    impl->is_new = *found == 0;
    const auto readers = std::clamp<std::size_t>(settings.readers, 1, 64);
    for (std::size_t i = 0; i < readers; ++i) {
      auto slot = std::make_unique<ReaderSlot>();
      slot->connection = connect(Connection::Role::reader);
      impl->readers.push_back(std::move(slot));
    }
    return std::unique_ptr<Database>(new Database(std::move(impl)));
  } catch (const PostgresUnusable& error) {
    return fail(Errc::invalid_argument, name + " can't be used: " + error.what());
  } catch (const SqlError& error) {
    return fail(Errc::unavailable, name + " can't be opened: " + error.what());
  }
}

bool Database::is_new() const {
  return impl_->is_new;
}

Result<std::int64_t> Database::stored_version(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return 0;
  try {
    const auto connection =
        open_sqlite(file, Connection::Role::reader, std::chrono::milliseconds(250));
    const auto tables = connection->value<std::int64_t>(
        "SELECT COUNT(*) FROM sqlite_master WHERE name = 'schema_version'");
    if (tables.value_or(0) == 0) return 0;
    return connection->value<std::int64_t>("SELECT MAX(version) FROM schema_version").value_or(0);
  } catch (const SqlError& error) {
    return fail(Errc::unavailable,
                "the store " + file.string() + " can't be opened: " + error.what());
  }
}

Dialect Database::dialect() const {
  return impl_->writer->dialect();
}

Connection& Database::writer() {
  return *impl_->writer;
}

Database::Lease Database::reader() {
  auto& readers = impl_->readers;
  const std::size_t preferred = thread_number() % readers.size();
  for (std::size_t i = 0; i < readers.size(); ++i) {
    ReaderSlot& slot = *readers[(preferred + i) % readers.size()];
    if (slot.in_use.try_lock()) return {*slot.connection, &slot};
  }
  ReaderSlot& slot = *readers[preferred];
  slot.in_use.lock();
  return {*slot.connection, &slot};
}

Database::Lease::Lease(Lease&& other) noexcept
    : connection_(other.connection_), slot_(std::exchange(other.slot_, nullptr)) {}

Database::Lease::~Lease() {
  if (slot_ != nullptr) static_cast<ReaderSlot*>(slot_)->in_use.unlock();
}

}  // namespace conversed::store

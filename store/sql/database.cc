#include "store/sql/database.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "store/sql/migrations.h"
#include "store/sql/postgres.h"
#include "store/sql/sql.h"
#include "store/sql/sqlite.h"

namespace conversed::store {
namespace {

using model::Errc;
using model::fail;
using model::Result;

// Of SQLite's file. A commit writes whole pages, and changes a few rows that lie far apart.
constexpr int page_bytes = 1024;

// Threads take numbers in turn; a thread's number is the reader that it prefers.
std::size_t thread_number() {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t number = next.fetch_add(1);
  return number;
}

}  // namespace

Database::Database() = default;
Database::~Database() = default;

Result<std::unique_ptr<Database>> Database::open(const DatabaseSettings& settings) {
  // PostgreSQL's URL may hold a password.
  const std::string name =
      "the store " + (settings.postgres ? std::string("in PostgreSQL") : settings.file.string());
  const auto pulse = settings.pulse ? settings.pulse : std::make_shared<PostgresPulse>();
  const auto connect = [&](Connection::Role role) {
    const auto when = settings.opens_later ? Connect::later : Connect::at_once;
    return settings.postgres ? open_postgres(*settings.postgres, role, pulse, when)
                             : open_sqlite(settings.file, role, settings.busy_timeout, page_bytes);
  };
  try {
    std::unique_ptr<Database> database(new Database());
    database->writer_ = connect(Connection::Role::writer);
    const Connection::Asking asking(*database->writer_, settings.go_on);
    if (!settings.opens_later) {
      if (auto admitted = database->admit(); !admitted) return fail(admitted.error());
    }
    const auto readers = std::clamp<std::size_t>(settings.readers, 1, 64);
    for (std::size_t i = 0; i < readers; ++i) {
      database->readers_.emplace_back().connection = connect(Connection::Role::reader);
    }
    return database;
  } catch (const PostgresUnusable& error) {
    return fail(Errc::invalid_argument, name + " can't be used: " + error.what());
  } catch (const SqlError& error) {
    return fail(Errc::unavailable, name + " can't be opened: " + error.what());
  }
}

Result<std::optional<std::int64_t>> Database::stored_version(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return std::nullopt;
  try {
    const auto connection =
        open_sqlite(file, Connection::Role::reader, std::chrono::milliseconds(250));
    return store::stored_version(*connection);
  } catch (const SqlError& error) {
    return fail(Errc::unavailable,
                "the store " + file.string() + " can't be opened: " + error.what());
  }
}

Result<void> Database::admit() {
  return migrate(*writer_, dialect() == Dialect::postgres ? postgres_steps() : sqlite_steps());
}

Dialect Database::dialect() const {
  return writer_->dialect();
}

Database::Lease Database::reader() {
  const std::size_t preferred = thread_number() % readers_.size();
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    Reader& found = readers_[(preferred + i) % readers_.size()];
    std::unique_lock lock(found.in_use, std::try_to_lock);
    if (lock) return {*found.connection, std::move(lock)};
  }
  Reader& found = readers_[preferred];
  return {*found.connection, std::unique_lock(found.in_use)};
}

}  // namespace conversed::store

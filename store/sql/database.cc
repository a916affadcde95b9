#include "store/sql/database.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "store/sql/migrations.h"
#include "store/sql/postgres.h"
#include "store/sql/sql.h"
#include "store/sql/sqlite.h"

namespace conversed::store {
namespace {

using model::Errc;
using model::fail;
using model::Result;

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
    const auto migrated =
        migrate(*impl->writer, settings.postgres ? postgres_steps() : sqlite_steps());
    if (!migrated) return fail(migrated.error());
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

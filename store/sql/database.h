#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "store/model/result.h"
#include "store/sql/postgres_settings.h"

namespace conversed::store {

class Connection;
enum class Dialect : std::uint8_t;

struct DatabaseSettings {
  std::filesystem::path file{};                // of SQLite's
  std::optional<PostgresSettings> postgres{};  // instead of the file
  // Shared by all connections to that server; null: the connections of this Database share one.
  std::shared_ptr<PostgresPulse> pulse{};
  std::size_t readers = 4;                      // 1 to 64 connections for reading
  std::chrono::milliseconds busy_timeout{250};  // how long one statement waits for a foreign lock
  std::function<bool()> go_on{};                // as in StoreSettings
  // For a server that is away now: connects when it is used, and migrates nothing. Whoever uses it
  // first calls `admit`.
  bool opens_later = false;
};

// The version of the schema that this program makes: the last step of store/migrations.
inline constexpr std::int64_t schema_version = 1;

// One connection that writes, and a few that read, to one SQLite file or to PostgreSQL. The file is
// in WAL mode with `synchronous=FULL`.
//
// One writer: only it writes and checkpoints, since SQLite 3.40 can corrupt a WAL file if two
// connections write or checkpoint at once. In PostgreSQL the writers of all daemons take turns by
// an advisory lock that a transaction holds to its end. So a checked fact stays true until the
// COMMIT. Kept by: Database.ReadersCanNotWrite, PostgresTest.OfTwoDaemonsOneWinsEachVersion.
class Database {
 public:
  // Opens or creates the file, sets its mode to 0600 when it creates it, and migrates it; or
  // migrates the schema that PostgreSQL's session finds first.
  // `conflict` if the store needs a newer program, `invalid_argument` if the URL is wrong or the
  // database has another encoding than UTF8, `unavailable` if it can't be opened or written.
  [[nodiscard]] static model::Result<std::unique_ptr<Database>> open(
      const DatabaseSettings& settings);

  // The version of the schema that a file has. None if there is no file or it has no schema. No
  // process may have the file open. `unavailable` if it can't be read.
  [[nodiscard]] static model::Result<std::optional<std::int64_t>> stored_version(
      const std::filesystem::path& file);

  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  // Migrates the schema, by the writer. Errors: as of `open`.
  [[nodiscard]] model::Result<void> admit();

  [[nodiscard]] Dialect dialect() const;

  // The connection that writes. For one thread at a time: the Committer's while it runs.
  [[nodiscard]] Connection& writer() { return *writer_; }

  // A connection for reading, held until the lease is destroyed. With at most as many threads as
  // readers, a thread gets the same connection each time; further threads wait. A thread must not
  // hold two leases. Thread-safe.
  class Lease {
   public:
    [[nodiscard]] Connection& operator*() const { return *connection_; }
    [[nodiscard]] Connection* operator->() const { return connection_; }

   private:
    friend class Database;
    Lease(Connection& connection, std::unique_lock<std::mutex> lock)
        : connection_(&connection), lock_(std::move(lock)) {}
    Connection* connection_;
    std::unique_lock<std::mutex> lock_;
  };
  [[nodiscard]] Lease reader();

 private:
  struct Reader {
    std::mutex in_use;
    std::unique_ptr<Connection> connection;
  };
  Database();

  std::unique_ptr<Connection> writer_;  // closed last, so that it can checkpoint
  std::deque<Reader> readers_;
};

}  // namespace conversed::store

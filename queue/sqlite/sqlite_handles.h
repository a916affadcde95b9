#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "store/model/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace conversed::queue {

enum class SqliteAccess : std::uint8_t { write, read };

// An SQLite result code as an Error. Codes that say "nothing was done" are `unavailable`; damage
// is `internal`. The message is the code's, without SQL or paths.
[[nodiscard]] model::Error sqlite_error(int code, std::string_view doing);
// The same, where nothing was done: before a COMMIT.
[[nodiscard]] model::Result<void> undone(int code, std::string_view doing);

// Owns a connection. It never checkpoints by itself, closing included: one thread of the program
// does that, by hand. One thread at a time.
class SqliteConnection {
 public:
  // `path` may be a URI that begins with "file:". A reader sees a WAL file that a writer of the
  // same process keeps open.
  [[nodiscard]] static model::Result<SqliteConnection> open(const std::string& path,
                                                            SqliteAccess access);
  SqliteConnection(SqliteConnection&& other) noexcept : db_(std::exchange(other.db_, nullptr)) {}
  SqliteConnection& operator=(SqliteConnection&&) = delete;
  ~SqliteConnection();

  // Runs one or more statements that return nothing of interest; the SQLite result code.
  int run(const char* sql);
  // The error of the first statement that could not be prepared: the tables are not as expected.
  [[nodiscard]] model::Result<void> prepared() const;
  [[nodiscard]] sqlite3* raw() const { return db_; }

 private:
  friend class SqliteStatement;
  explicit SqliteConnection(sqlite3* db) : db_(db) {}
  sqlite3* db_;
  int prepare_error_ = 0;
};

// Owns a prepared statement. Bound text and blobs are not copied: they must live until `reset`. The
// connection must outlive it. One thread at a time.
class SqliteStatement {
 public:
  // With bad SQL or a damaged file the statement is empty: each `step` returns the error.
  SqliteStatement(SqliteConnection& connection, const char* sql);
  SqliteStatement(SqliteStatement&& other) noexcept
      : statement_(std::exchange(other.statement_, nullptr)), error_(other.error_) {}
  SqliteStatement& operator=(SqliteStatement&&) = delete;
  ~SqliteStatement();

  // Parameters and columns are numbered as SQLite does: from 1 and from 0.
  SqliteStatement& bind(int parameter, std::int64_t value);
  SqliteStatement& bind(int parameter, std::string_view bytes);  // as a blob

  int step();     // SQLITE_ROW, SQLITE_DONE or an error
  int execute();  // steps to the end and resets; SQLITE_OK or an error
  void reset();

  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::string_view bytes(int column) const;  // valid until the next step or reset

 private:
  sqlite3_stmt* statement_ = nullptr;
  int error_;  // of preparing it
};

}  // namespace conversed::queue

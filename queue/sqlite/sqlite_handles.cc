#include "queue/sqlite/sqlite_handles.h"

#include <sqlite3.h>

namespace conversed::queue {

model::Error sqlite_error(int code, std::string_view doing) {
  const int primary = code & 0xff;
  const bool damaged =
      primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_ERROR;
  std::string message = "The log's file, " + std::string(doing) + ": " + sqlite3_errstr(code) +
                        " (" + std::to_string(code) + ").";
  return {damaged ? model::Errc::internal : model::Errc::unavailable, std::move(message)};
}

model::Result<void> undone(int code, std::string_view doing) {
  return model::fail(model::Errc::unavailable, sqlite_error(code, doing).message);
}

model::Result<SqliteConnection> SqliteConnection::open(const std::string& path,
                                                       SqliteAccess access) {
  const int flags = (access == SqliteAccess::write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                                   : SQLITE_OPEN_READONLY) |
                    SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_URI;
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &db, flags, nullptr);
  SqliteConnection connection(db);
  if (code != SQLITE_OK) return model::fail(sqlite_error(code, "opening it"));
  sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_busy_timeout(db, 5'000);  // ms; met only while the other connection recovers the file
  // Pages of deleted records need not be overwritten with zeros at once (Debian's default): they
  // are used again soon. The log's writer has a setting of its own.
  const int set = connection.run(
      "PRAGMA wal_autocheckpoint=0; PRAGMA secure_delete=OFF; PRAGMA temp_store=MEMORY;");
  if (set != SQLITE_OK) return model::fail(sqlite_error(set, "opening it"));
  return connection;
}

SqliteConnection::~SqliteConnection() {
  sqlite3_close_v2(db_);  // a null pointer is fine
}

int SqliteConnection::run(const char* sql) {
  return sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
}

model::Result<void> SqliteConnection::prepared() const {
  if (prepare_error_ == SQLITE_OK) return {};
  return model::fail(sqlite_error(prepare_error_, "reading its tables"));
}

SqliteStatement::SqliteStatement(SqliteConnection& connection, const char* sql)
    : error_(sqlite3_prepare_v3(connection.raw(), sql, -1, SQLITE_PREPARE_PERSISTENT, &statement_,
                                nullptr)) {
  if (connection.prepare_error_ == SQLITE_OK) connection.prepare_error_ = error_;
}

SqliteStatement::~SqliteStatement() {
  sqlite3_finalize(statement_);
}

SqliteStatement& SqliteStatement::bind(int parameter, std::int64_t value) {
  sqlite3_bind_int64(statement_, parameter, value);
  return *this;
}

SqliteStatement& SqliteStatement::bind(int parameter, std::string_view bytes) {
  // A null pointer would bind NULL instead of the empty blob.
  const char* data = bytes.data() == nullptr ? "" : bytes.data();
  sqlite3_bind_blob64(statement_, parameter, data, bytes.size(), SQLITE_STATIC);
  return *this;
}

int SqliteStatement::step() {
  return statement_ == nullptr ? error_ : sqlite3_step(statement_);
}

int SqliteStatement::execute() {
  int code = step();
  while (code == SQLITE_ROW) code = step();
  reset();
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

void SqliteStatement::reset() {
  sqlite3_reset(statement_);
}

bool SqliteStatement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

std::int64_t SqliteStatement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

std::string_view SqliteStatement::bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  if (data == nullptr || size <= 0) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

}  // namespace conversed::queue

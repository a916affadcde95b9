#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include "store/sql/sql.h"

// SQL over SQLite. For the .cc files of this folder, and their tests.
namespace conversed::store {

// The error that a result code of SQLite stands for. SQLite's connections throw no other SqlError.
class SqliteError : public SqlError {
 public:
  explicit SqliteError(int code);
  // SQLite's primary result code.
  [[nodiscard]] int code() const { return code_; }

 private:
  int code_;
};

// Opens the file, or creates it with mode 0600 and pages of this size for a writer. A writer sets
// it to WAL mode with `synchronous=FULL`, and alone checkpoints; a reader can't write.
// `busy_timeout`: how long a statement waits for a foreign lock. Throws SqliteError.
[[nodiscard]] std::unique_ptr<Connection> open_sqlite(const std::filesystem::path& file,
                                                      Connection::Role role,
                                                      std::chrono::milliseconds busy_timeout,
                                                      int page_bytes = 4096);

}  // namespace conversed::store

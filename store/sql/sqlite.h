#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include "store/sql/sql.h"

// SQL over SQLite. For the .cc files of this folder and their tests.
namespace conversed::store {

// Opens or creates the file. A writer sets it to WAL mode with `synchronous=FULL`, and alone
// checkpoints; a reader can't write. `busy_timeout`: how long a statement waits for a foreign lock.
// Throws SqlError.
[[nodiscard]] std::unique_ptr<Connection> open_sqlite(const std::filesystem::path& file,
                                                      Connection::Role role,
                                                      std::chrono::milliseconds busy_timeout);

// The error that a result code of SQLite stands for.
[[nodiscard]] SqlError sqlite_error(int code);

}  // namespace conversed::store

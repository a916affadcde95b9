#pragma once

#include <chrono>
#include <optional>

namespace conversed::store {

// When statements of a connection have to end; none: whenever they do.
using Deadline = std::optional<std::chrono::steady_clock::time_point>;
[[nodiscard]] inline bool is_over(const Deadline& deadline) {
  return deadline && std::chrono::steady_clock::now() >= *deadline;
}

// Makes `knowledge_rank(table, chunks, terms)` known to a connection: BM25 of a row of an FTS5
// table in millionths of what a row that holds all that was asked could come to. FTS5's own bm25()
// counts over all rows; this one takes the number of rows and of terms that count, so that ranks
// within one store do not depend on others. `sqlite3`: the connection's handle, whose type SOCI
// hides. Counting may take long and runs no statement, so it looks at `deadline` itself, which must
// outlive the connection; past it the query is interrupted. Returns SQLite's result code.
[[nodiscard]] int add_knowledge_rank(void* sqlite3, const Deadline& deadline);

}  // namespace conversed::store

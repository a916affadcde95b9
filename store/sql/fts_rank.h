#pragma once

#include <functional>

struct sqlite3;

namespace conversed::store {

// What Driver::ask_meanwhile was given; null: nothing is asked.
using GoOn = std::function<bool()>;
[[nodiscard]] inline bool goes_on(const GoOn* asked) {
  return asked == nullptr || (*asked)();
}

// Makes `knowledge_rank(table, chunks, terms)` known to a connection: BM25 of a row of an FTS5
// table in millionths of what a row that holds all that was asked could come to. FTS5's own bm25()
// counts over all rows; this one takes the number of rows and of terms that count, so that ranks
// within one store do not depend on others. Counting may take long and runs no statement, so it
// asks `go_on` itself, which must outlive the connection; at a no the query is interrupted. Returns
// SQLite's result code.
[[nodiscard]] int add_knowledge_rank(sqlite3* handle, const GoOn* const& go_on);

}  // namespace conversed::store

#pragma once

#include <functional>

struct sqlite3;

namespace conversed::store {

// The argument of Driver::ask_meanwhile; null: none.
using GoOn = std::function<bool()>;
[[nodiscard]] inline bool goes_on(const GoOn* asked) {
  return asked == nullptr || (*asked)();
}

// Adds `knowledge_rank(table, chunks, terms)` to a connection: BM25 of a row of an FTS5 table, in
// millionths of the highest possible rank. FTS5's own bm25() counts over all rows; this one takes
// the number of rows and terms, so that ranks within one store do not depend on others. Counting
// may take long and runs no statement, so it asks `go_on` itself, which must outlive the
// connection; false interrupts the query. Returns SQLite's result code.
[[nodiscard]] int add_knowledge_rank(sqlite3* handle, const GoOn* const& go_on);

}  // namespace conversed::store

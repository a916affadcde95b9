#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "store/knowledge/knowledge.h"

// What each database has behind store/knowledge/knowledge.h. For knowledge*.cc alone.
namespace conversed::store {

// By SQLite's FTS5. `database` must outlive it.
[[nodiscard]] std::unique_ptr<KnowledgeSearch> make_sqlite_knowledge_search(Database& database);
// By PostgreSQL's tsvector.
[[nodiscard]] std::unique_ptr<KnowledgeSearch> make_postgres_knowledge_search(Database& database);

struct UnindexedChunk {
  std::string id, store, text;
};
// Some chunks that the index lacks; empty: it lacks none.
[[nodiscard]] std::vector<UnindexedChunk> unindexed_chunks(Connection& connection);
// The number of the store's vocabulary. Makes one if there is none.
[[nodiscard]] std::int64_t vocabulary_of(Connection& connection, const std::string& store);

// As `index_knowledge`.
void index_knowledge_in_sqlite(Connection& connection);
void index_knowledge_in_postgres(Connection& connection);

}  // namespace conversed::store

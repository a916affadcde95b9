#pragma once

#include <memory>

#include "store/knowledge.h"

// What each database has behind store/knowledge.h. For knowledge*.cc alone.
namespace conversed::store {

// By SQLite's FTS5. `database` must outlive it.
[[nodiscard]] std::unique_ptr<KnowledgeSearch> make_sqlite_knowledge_search(Database& database);
// By PostgreSQL's tsvector.
[[nodiscard]] std::unique_ptr<KnowledgeSearch> make_postgres_knowledge_search(Database& database);

// As `index_knowledge`.
void index_knowledge_in_sqlite(Connection& connection);
void index_knowledge_in_postgres(Connection& connection);

}  // namespace conversed::store

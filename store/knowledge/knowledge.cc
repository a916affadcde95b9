#include "store/knowledge/knowledge.h"

#include <utility>

#include "store/knowledge/knowledge_index.h"
#include "store/sql/database.h"
#include "store/sql/sql.h"

namespace conversed::store {

std::vector<UnindexedChunk> unindexed_chunks(Connection& connection) {
  constexpr std::int64_t chunks_a_page = 500;
  return connection.all(
      [&](std::string id, std::string store, std::string text) {
        return UnindexedChunk{std::move(id), std::move(store), std::move(text)};
      },
      "SELECT k.id, c.store_id, k.text FROM knowledge_unindexed u"
      " JOIN knowledge_chunks k ON k.id = u.chunk_id"
      " JOIN knowledge_sources c ON c.id = k.source_id LIMIT :l",
      chunks_a_page);
}

std::int64_t vocabulary_of(Connection& connection, const std::string& store) {
  connection.run(
      "INSERT INTO knowledge_vocabularies (store_id) VALUES (:s) ON CONFLICT (store_id) DO NOTHING",
      store);
  return *connection.value<std::int64_t>("SELECT n FROM knowledge_vocabularies WHERE store_id = :s",
                                         store);
}

std::unique_ptr<KnowledgeSearch> make_knowledge_search(Database& database) {
  switch (database.dialect()) {
    case Dialect::sqlite:
      return make_sqlite_knowledge_search(database);
    case Dialect::postgres:
      break;
  }
  return make_postgres_knowledge_search(database);
}

void index_knowledge(Connection& connection) {
  switch (connection.dialect()) {
    case Dialect::sqlite:
      return index_knowledge_in_sqlite(connection);
    case Dialect::postgres:
      break;
  }
  index_knowledge_in_postgres(connection);
}

}  // namespace conversed::store

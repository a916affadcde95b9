#include "store/knowledge/knowledge.h"

#include <utility>

#include "store/knowledge/knowledge_index.h"
#include "store/sql/read.h"

namespace conversed::store {
namespace {

// Numbers the stores that have no vocabulary yet.
void add_vocabularies(Connection& connection) {
  connection.run(
      "INSERT INTO knowledge_vocabularies (store_id) SELECT DISTINCT c.store_id"
      " FROM knowledge_unindexed u JOIN knowledge_chunks k ON k.id = u.chunk_id"
      " JOIN knowledge_sources c ON c.id = k.source_id WHERE TRUE"
      " ON CONFLICT (store_id) DO NOTHING");
}

// Some chunks that the index lacks; empty: it lacks none.
std::vector<UnindexedChunk> unindexed_chunks(Connection& connection) {
  constexpr std::int64_t chunks_a_page = 500;
  return connection.all(
      row_of<&UnindexedChunk::id, &UnindexedChunk::text, &UnindexedChunk::vocabulary>,
      "SELECT k.id, k.text, v.n FROM knowledge_unindexed u"
      " JOIN knowledge_chunks k ON k.id = u.chunk_id"
      " JOIN knowledge_sources c ON c.id = k.source_id"
      " JOIN knowledge_vocabularies v ON v.store_id = c.store_id LIMIT :l",
      chunks_a_page);
}

}  // namespace

Result<std::vector<KnowledgeHit>> KnowledgeSearch::search(const std::string& project_id,
                                                          const model::KnowledgeQuery& query,
                                                          std::chrono::milliseconds most) const {
  using Hits = std::vector<KnowledgeHit>;
  return read_within(database_, most, [&](Connection& connection) -> Result<Hits> {
    const auto vocabulary = connection.first(
        row_of<&Vocabulary::number, &Vocabulary::chunks, &Vocabulary::terms>,
        "SELECT COALESCE(v.n, 0), COALESCE(v.chunk_count, 0), COALESCE(v.term_count, 0)"
        " FROM knowledge_stores s LEFT JOIN knowledge_vocabularies v ON v.store_id = s.id"
        " WHERE s.project_id = :p AND s.name = :n",
        project_id, query.store);
    if (!vocabulary) return fail(Errc::not_found, "there is no such knowledge store");
    const auto question = question_parts(query.text);
    if (question.empty() || vocabulary->number == 0) return Hits{};
    return connection.dialect() == Dialect::sqlite
               ? ranked_in_sqlite(connection, *vocabulary, question, query)
               : ranked_in_postgres(connection, *vocabulary, question, query);
  });
}

void index_knowledge(Connection& connection) {
  add_vocabularies(connection);
  for (auto page = unindexed_chunks(connection); !page.empty();
       page = unindexed_chunks(connection)) {
    connection.dialect() == Dialect::sqlite ? index_in_sqlite(connection, page)
                                            : index_in_postgres(connection, page);
    for (const auto& chunk : page) {
      connection.run("DELETE FROM knowledge_unindexed WHERE chunk_id = :c", chunk.id);
    }
  }
}

}  // namespace conversed::store

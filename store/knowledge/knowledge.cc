#include "store/knowledge/knowledge.h"

#include <nlohmann/json.hpp>

#include "store/knowledge/knowledge_index.h"
#include "store/sql/read.h"

namespace conversed::store {
namespace {

// Gives a vocabulary number to each knowledge store without one.
void add_vocabularies(Connection& connection) {
  connection.run(
      "INSERT INTO knowledge_vocabularies (store_id) SELECT DISTINCT c.store_id"
      " FROM knowledge_unindexed u JOIN knowledge_chunks k ON k.id = u.chunk_id"
      " JOIN knowledge_sources c ON c.id = k.source_id WHERE TRUE"
      " ON CONFLICT (store_id) DO NOTHING");
}

// Some chunks that are not in the index. Empty: all are.
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

// ---- By SQLite's FTS5. The index holds words that this program has folded, so that it works the
// same for all languages. Triggers update it: see migrations/001_schema.

// The question as an expression of FTS5. Any part of it makes a hit.
std::string match_of(const std::string& prefix, const std::vector<QuestionPart>& question) {
  std::string match;
  for (const auto& part : question) {
    if (!match.empty()) match += " OR ";
    match += '"' + prefix + part.term;
    if (part.kind == QuestionPart::Kind::pair) match += ' ' + prefix + part.second;
    match += '"';
    if (part.kind == QuestionPart::Kind::beginning) match += '*';
  }
  return match;
}

std::string prefix_of(std::int64_t vocabulary) {
  return std::to_string(vocabulary) + '_';
}

std::vector<KnowledgeHit> ranked_in_sqlite(Connection& connection, const Vocabulary& vocabulary,
                                           const std::vector<QuestionPart>& question,
                                           const model::KnowledgeQuery& query) {
  // Reads only the texts of the best chunks: the inner query sorts numbers and ids.
  return connection.all(
      row_of<&KnowledgeHit::chunk_id, &KnowledgeHit::source, &KnowledgeHit::text,
             &KnowledgeHit::data, &KnowledgeHit::score_ppm>,
      "SELECT k.id, c.name, k.text, k.data, best.score FROM"
      " (SELECT k.id AS chunk, c.n AS source_n, k.n AS chunk_n,"
      " knowledge_rank(knowledge_index, :n, :t) AS score"
      " FROM knowledge_index JOIN knowledge_terms w ON w.n = knowledge_index.rowid"
      " JOIN knowledge_chunks k ON k.id = w.chunk_id"
      " JOIN knowledge_sources c ON c.id = k.source_id"
      " WHERE knowledge_index MATCH :q AND k.disabled = 0"
      " AND (:a = 1 OR c.name IN (SELECT value FROM json_each(:s)))"
      " ORDER BY score DESC, c.n, k.n LIMIT :l) AS best"
      " JOIN knowledge_chunks k ON k.id = best.chunk"
      " JOIN knowledge_sources c ON c.id = k.source_id"
      " ORDER BY best.score DESC, best.source_n, best.chunk_n",
      vocabulary.chunks, vocabulary.terms, match_of(prefix_of(vocabulary.number), question),
      query.sources.empty(), nlohmann::json(query.sources), static_cast<std::int64_t>(query.limit));
}

void index_in_sqlite(Connection& connection, std::span<const UnindexedChunk> chunks) {
  for (const auto& chunk : chunks) {
    const std::string prefix = prefix_of(chunk.vocabulary);
    std::string terms;
    const auto words = words_of_chunk(chunk.text);
    for (const auto& word : words) {
      if (!terms.empty()) terms += ' ';
      terms += prefix + term_of(word.text);
    }
    connection.run(
        "INSERT INTO knowledge_terms (chunk_id, vocabulary, term_count, terms)"
        " VALUES (:c, :v, :n, :t)",
        chunk.id, chunk.vocabulary, words.size(), terms);
  }
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

// Search in knowledge by SQLite's FTS5. The index holds words that were folded here, so that it
// works alike for all languages; migrations/001_schema says how triggers keep it in step.
#include <nlohmann/json.hpp>
#include <string_view>

#include "store/knowledge/knowledge_index.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

// The question as an expression of FTS5. Any part of it makes a hit; the rank says how good it is.
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

}  // namespace

std::vector<KnowledgeHit> ranked_in_sqlite(Connection& connection, const Vocabulary& vocabulary,
                                           const std::vector<QuestionPart>& question,
                                           const model::KnowledgeQuery& query) {
  // Texts are read of the best ones only: the inner query sorts no more than numbers and ids.
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

}  // namespace conversed::store

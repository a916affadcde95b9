// Search in knowledge by SQLite's FTS5. The index holds words that were folded here, so that it
// works alike for all languages; migrations/001_schema says how triggers keep it in step.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "store/knowledge/knowledge_index.h"
#include "store/sql/read.h"
#include "store/text/knowledge_words.h"

namespace conversed::store {

using model::Errc;
using model::fail;
using model::Result;

namespace {

// The question as an expression of FTS5. Any part of it makes a hit; the rank says how good it is.
// Empty: the question has no words.
std::string match_of(const std::string& prefix, std::string_view question) {
  std::string match;
  for (const auto& part : question_parts(question)) {
    if (!match.empty()) match += " OR ";
    match += '"' + prefix + part.term;
    if (part.kind == QuestionPart::Kind::pair) match += ' ' + prefix + part.second;
    match += '"';
    if (part.kind == QuestionPart::Kind::beginning) match += '*';
  }
  return match;
}

class SqliteKnowledgeSearch final : public KnowledgeSearch {
 public:
  explicit SqliteKnowledgeSearch(Database& database) : database_(database) {}

  Result<std::vector<KnowledgeHit>> search(const std::string& project_id,
                                           const model::KnowledgeQuery& query,
                                           std::chrono::milliseconds most) const override {
    using Hits = std::vector<KnowledgeHit>;
    return read_within(database_, most, [&](Connection& connection) -> Result<Hits> {
      const auto store = connection.value<std::string>(
          "SELECT id FROM knowledge_stores WHERE project_id = :p AND name = :n", project_id,
          query.store);
      if (!store) return fail(Errc::not_found, "there is no such knowledge store");
      const auto vocabulary = connection.row<std::int64_t, std::int64_t, std::int64_t>(
          "SELECT n, chunk_count, term_count FROM knowledge_vocabularies WHERE store_id = :s",
          *store);
      if (!vocabulary) return Hits{};  // nothing was ever in it
      const auto [number, chunks, terms] = *vocabulary;
      const std::string match = match_of(std::to_string(number) + '_', query.text);
      if (match.empty()) return Hits{};
      return ranked(connection, query, match, chunks, terms);
    });
  }

 private:
  static std::vector<KnowledgeHit> ranked(Connection& connection,
                                          const model::KnowledgeQuery& query,
                                          const std::string& match, std::int64_t chunks,
                                          std::int64_t terms) {
    // A name that is no UTF-8 is none of a source.
    constexpr auto replace = nlohmann::json::error_handler_t::replace;
    return connection.all(
        [&](std::string id, std::string source, std::string chunk, std::string data,
            std::int64_t score) {
          return KnowledgeHit{std::move(id), std::move(source), std::move(chunk), std::move(data),
                              score};
        },  // Texts are read of the best ones only: the inner query sorts no more than numbers and
            // ids.
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
        chunks, terms, match, query.sources.empty(),
        nlohmann::json(query.sources).dump(-1, ' ', false, replace),
        static_cast<std::int64_t>(query.limit));
  }

  Database& database_;
};

void index_chunk(Connection& connection, const UnindexedChunk& chunk) {
  const std::int64_t vocabulary = vocabulary_of(connection, chunk.store);
  const std::string prefix = std::to_string(vocabulary) + '_';
  std::string terms;
  const auto words = words_of_chunk(chunk.text);
  for (const auto& word : words) {
    if (!terms.empty()) terms += ' ';
    terms += prefix + term_of(word.text);
  }
  connection.run(
      "INSERT INTO knowledge_terms (chunk_id, vocabulary, term_count, terms)"
      " VALUES (:c, :v, :n, :t)",
      chunk.id, vocabulary, words.size(), terms);
}

}  // namespace

std::unique_ptr<KnowledgeSearch> make_sqlite_knowledge_search(Database& database) {
  return std::make_unique<SqliteKnowledgeSearch>(database);
}

void index_knowledge_in_sqlite(Connection& connection) {
  for (auto page = unindexed_chunks(connection); !page.empty();
       page = unindexed_chunks(connection)) {
    for (const auto& chunk : page) {
      index_chunk(connection, chunk);
      connection.run("DELETE FROM knowledge_unindexed WHERE chunk_id = :c", chunk.id);
    }
  }
}

}  // namespace conversed::store

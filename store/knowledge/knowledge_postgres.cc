// Search in knowledge by PostgreSQL's tsvector. It uses only the index of PostgreSQL's text search:
// this program splits and folds the words, and the rank is the same as in SQLite. Triggers update
// the index (migrations/001_schema/postgres).
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "store/knowledge/knowledge_index.h"
#include "store/sql/read.h"

namespace conversed::store {

using nlohmann::json;

namespace {

constexpr double millionths = 1e6;
constexpr std::size_t statement_bytes = 4 << 20;     // of a statement that adds chunks
constexpr std::size_t max_vector_bytes = 1'000'000;  // PostgreSQL's limit is a little higher
constexpr std::size_t max_positions = 255;

// The lexeme of a part of a question in the vocabulary of this number.
std::string lexeme_of(const std::string& vocabulary, const QuestionPart& part) {
  return part.kind == QuestionPart::Kind::pair ? vocabulary + '+' + part.term + ' ' + part.second
                                               : vocabulary + '_' + part.term;
}

// One part of the question with its weight. The sum of all weights is the upper bound of a chunk's
// rank.
struct WeighedPart {
  std::string lexeme;
  std::string query;
  bool beginning = false;
  double weight = 0;
};

std::vector<WeighedPart> weigh(Connection& connection, const std::string& vocabulary,
                               const std::vector<QuestionPart>& question, std::int64_t chunks) {
  std::vector<WeighedPart> parts;
  json queries = json::array();
  for (const auto& part : question) {
    WeighedPart weighed{.lexeme = lexeme_of(vocabulary, part),
                        .query = {},
                        .beginning = part.kind == QuestionPart::Kind::beginning};
    weighed.query = '\'' + weighed.lexeme + (weighed.beginning ? "':*" : "'");
    queries.push_back(weighed.query);
    parts.push_back(std::move(weighed));
  }
  std::map<std::string, std::int64_t> with;
  connection.rows([&](const std::string& query, std::int64_t count) { with[query] = count; },
                  "SELECT p.value, (SELECT COUNT(*) FROM knowledge_terms w"
                  " WHERE w.terms @@ CAST(p.value AS tsquery)) FROM json_each(:q) p",
                  queries);
  double most = 0;
  for (auto& part : parts) {
    part.weight = rank_weight(static_cast<double>(chunks), static_cast<double>(with[part.query]));
    most += part.weight * (rank_saturation + 1);
  }
  for (auto& part : parts) part.weight *= millionths * (rank_saturation + 1) / most;
  return parts;
}

// The words of a chunk as the text of a tsvector. If the chunk has more different words than a
// tsvector can hold, only the first ones are in it.
std::string vector_of(const std::string& vocabulary, const std::vector<text::Word>& words) {
  std::map<std::string, std::size_t> times;
  std::size_t bytes = 0;
  const auto add = [&](std::string lexeme) {
    const auto known = times.find(lexeme);
    const std::size_t cost = known == times.end() ? lexeme.size() + 6 : 2;
    if (bytes + cost > max_vector_bytes) return;
    bytes += cost;
    if (known == times.end()) {
      times.emplace(std::move(lexeme), 1);
    } else {
      known->second = std::min(known->second + 1, max_positions);
    }
  };
  std::string before;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string term = term_of(words[i].text);
    add(lexeme_of(vocabulary, {QuestionPart::Kind::word, term}));
    if (i > 0 && words[i - 1].end == words[i].begin) {
      add(lexeme_of(vocabulary, {QuestionPart::Kind::pair, before, term}));
    }
    before = std::move(term);
  }
  std::string text;
  for (const auto& [lexeme, count] : times) {
    text += (text.empty() ? "'" : " '") + lexeme + "':1";
    for (std::size_t i = 2; i <= count; ++i) text += ',' + std::to_string(i);
  }
  return text;
}

void take_in(Connection& connection, json& rows) {
  if (rows.empty()) return;
  connection.run(
      "INSERT INTO knowledge_terms (chunk_id, vocabulary, term_count, terms)"
      " SELECT r.chunk, r.vocabulary, r.count, CAST(r.terms AS tsvector)"
      " FROM jsonb_to_recordset(CAST(:r AS jsonb))"
      " AS r(chunk TEXT, vocabulary BIGINT, count BIGINT, terms TEXT)",
      rows);
  rows = json::array();
}

}  // namespace

// Computes BM25 as fts_rank.cc does for SQLite.
std::vector<KnowledgeHit> ranked_in_postgres(Connection& connection, const Vocabulary& vocabulary,
                                             const std::vector<QuestionPart>& question,
                                             const model::KnowledgeQuery& query) {
  const auto parts =
      weigh(connection, std::to_string(vocabulary.number), question, vocabulary.chunks);
  std::string match;
  json rows = json::array();
  for (const auto& part : parts) {
    if (!match.empty()) match += " | ";
    match += part.query;
    rows.push_back({{"n", rows.size()},
                    {"lexeme", part.lexeme},
                    {"beginning", part.beginning},
                    {"weight", part.weight}});
  }
  const json ranking{
      {"saturation", rank_saturation},
      {"short", 1 - rank_length_share},
      {"long", vocabulary.terms > 0 ? rank_length_share * static_cast<double>(vocabulary.chunks) /
                                          static_cast<double>(vocabulary.terms)
                                    : 0.0}};
  return connection.all(
      row_of<&KnowledgeHit::chunk_id, &KnowledgeHit::source, &KnowledgeHit::text,
             &KnowledgeHit::data, &KnowledgeHit::score_ppm>,
      "WITH parts AS MATERIALIZED (SELECT * FROM jsonb_to_recordset(CAST(:p AS jsonb))"
      " AS p(n BIGINT, lexeme TEXT, beginning BOOLEAN, weight FLOAT8))"
      " SELECT k.id, c.name, k.text, k.data, CAST(ROUND(s.total) AS BIGINT) AS score"
      " FROM jsonb_to_record(CAST(:r AS jsonb))"
      " AS r(saturation FLOAT8, \"short\" FLOAT8, \"long\" FLOAT8)"
      " CROSS JOIN knowledge_terms w"
      " JOIN knowledge_chunks k ON k.id = w.chunk_id"
      " JOIN knowledge_sources c ON c.id = k.source_id"
      " CROSS JOIN LATERAL (SELECT SUM(h.weight * h.times / (h.times"
      " + r.saturation * (r.\"short\" + r.\"long\" * w.term_count))) AS total"
      " FROM (SELECT p.weight, SUM(cardinality(u.positions)) AS times FROM unnest(w.terms) u"
      " JOIN parts p ON u.lexeme = p.lexeme"
      " OR (p.beginning AND starts_with(u.lexeme, p.lexeme)) GROUP BY p.n, p.weight) h) s"
      " WHERE w.terms @@ CAST(:q AS tsquery) AND k.disabled = 0"
      " AND (:a = 1 OR c.name IN (SELECT value FROM json_each(:s)))"
      " ORDER BY score DESC, c.n, k.n LIMIT :l",
      rows, ranking, match, query.sources.empty(), json(query.sources),
      static_cast<std::int64_t>(query.limit));
}

void index_in_postgres(Connection& connection, std::span<const UnindexedChunk> chunks) {
  json rows = json::array();
  std::size_t bytes = 0;
  for (const auto& chunk : chunks) {
    const auto words = words_of_chunk(chunk.text);
    auto terms = vector_of(std::to_string(chunk.vocabulary), words);
    bytes += terms.size();
    rows.push_back({{"chunk", chunk.id},
                    {"vocabulary", chunk.vocabulary},
                    {"count", words.size()},
                    {"terms", std::move(terms)}});
    if (bytes > statement_bytes) {
      take_in(connection, rows);
      bytes = 0;
    }
  }
  take_in(connection, rows);
}

}  // namespace conversed::store

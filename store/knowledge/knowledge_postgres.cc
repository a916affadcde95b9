// Search in knowledge by PostgreSQL's tsvector. Of text search it uses the index alone: words are
// parted and folded here, and the rank is that of SQLite. Migration 008 says how all is kept in
// step.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "store/knowledge/knowledge_index.h"
#include "store/sql/read.h"
#include "store/text/knowledge_words.h"

namespace conversed::store {

using model::Errc;
using model::fail;
using model::Result;
using nlohmann::json;

namespace {

constexpr double millionths = 1e6;
constexpr std::size_t statement_bytes = 4 << 20;     // of a statement that adds chunks
constexpr std::size_t max_vector_bytes = 1'000'000;  // PostgreSQL's limit is a little higher
constexpr std::size_t max_positions = 255;

std::string text_of(const json& value) {
  // A name that is no UTF-8 is none of a source.
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// The lexeme of a part of a question in the vocabulary of this number.
std::string lexeme_of(const std::string& vocabulary, const QuestionPart& part) {
  return part.kind == QuestionPart::Kind::pair ? vocabulary + '+' + part.term + ' ' + part.second
                                               : vocabulary + '_' + part.term;
}

// One part as it is looked for, and how much it counts: a chunk that is all of it to the end of
// time would come to the sum of all.
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
                  text_of(queries));
  double most = 0;
  for (auto& part : parts) {
    part.weight = rank_weight(static_cast<double>(chunks), static_cast<double>(with[part.query]));
    most += part.weight * (rank_saturation + 1);
  }
  for (auto& part : parts) part.weight *= millionths * (rank_saturation + 1) / most;
  return parts;
}

class PostgresKnowledgeSearch final : public KnowledgeSearch {
 public:
  explicit PostgresKnowledgeSearch(Database& database) : database_(database) {}

  Result<std::vector<KnowledgeHit>> search(const std::string& project_id,
                                           const model::KnowledgeQuery& query,
                                           std::chrono::milliseconds most) const override {
    using Hits = std::vector<KnowledgeHit>;
    return read_within(database_, most, [&](Connection& connection) -> Result<Hits> {
      const auto store = connection.row<std::string, std::optional<std::int64_t>,
                                        std::optional<std::int64_t>, std::optional<std::int64_t>>(
          "SELECT s.id, v.n, v.chunk_count, v.term_count FROM knowledge_stores s"
          " LEFT JOIN knowledge_vocabularies v ON v.store_id = s.id"
          " WHERE s.project_id = :p AND s.name = :n",
          project_id, query.store);
      if (!store) return fail(Errc::not_found, "there is no such knowledge store");
      const auto& [id, vocabulary, chunks, terms] = *store;
      if (!vocabulary) return Hits{};  // nothing was ever in it
      const auto question = question_parts(query.text);
      if (question.empty()) return Hits{};
      return ranked(connection, query,
                    weigh(connection, std::to_string(*vocabulary), question, chunks.value_or(0)),
                    chunks.value_or(0), terms.value_or(0));
    });
  }

 private:
  // BM25, as fts_rank.cc has it for SQLite.
  static std::vector<KnowledgeHit> ranked(Connection& connection,
                                          const model::KnowledgeQuery& query,
                                          const std::vector<WeighedPart>& parts,
                                          std::int64_t chunks, std::int64_t terms) {
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
    const json ranking{{"saturation", rank_saturation},
                       {"short", 1 - rank_length_share},
                       {"long", terms > 0 ? rank_length_share * static_cast<double>(chunks) /
                                                static_cast<double>(terms)
                                          : 0.0}};
    return connection.all(
        [&](std::string id, std::string source, std::string chunk, std::string data,
            std::int64_t score) {
          return KnowledgeHit{std::move(id), std::move(source), std::move(chunk), std::move(data),
                              score};
        },
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
        text_of(rows), text_of(ranking), match, query.sources.empty(), text_of(query.sources),
        static_cast<std::int64_t>(query.limit));
  }

  Database& database_;
};

// The words of a chunk as the text of a tsvector. Of a chunk with more different words than one
// holds the first ones count.
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
      text_of(rows));
  rows = json::array();
}

}  // namespace

std::unique_ptr<KnowledgeSearch> make_postgres_knowledge_search(Database& database) {
  return std::make_unique<PostgresKnowledgeSearch>(database);
}

void index_knowledge_in_postgres(Connection& connection) {
  std::map<std::string, std::int64_t> vocabularies;  // of stores
  for (auto page = unindexed_chunks(connection); !page.empty();
       page = unindexed_chunks(connection)) {
    json rows = json::array();
    std::size_t bytes = 0;
    for (const auto& chunk : page) {
      auto [known, fresh] = vocabularies.try_emplace(chunk.store, 0);
      if (fresh) known->second = vocabulary_of(connection, chunk.store);
      const auto words = words_of_chunk(chunk.text);
      auto terms = vector_of(std::to_string(known->second), words);
      bytes += terms.size();
      rows.push_back({{"chunk", chunk.id},
                      {"vocabulary", known->second},
                      {"count", words.size()},
                      {"terms", std::move(terms)}});
      if (bytes > statement_bytes) {
        take_in(connection, rows);
        bytes = 0;
      }
      connection.run("DELETE FROM knowledge_unindexed WHERE chunk_id = :c", chunk.id);
    }
    take_in(connection, rows);
  }
}

}  // namespace conversed::store

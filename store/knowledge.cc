// Search in knowledge by SQLite's FTS5. The index holds words that were folded here, so that it
// works alike for all languages; migration 008 says how it is kept in step.
#include "store/knowledge.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "store/read.h"
#include "store/text/utf8.h"
#include "store/text/words.h"

namespace conversed::store {

using model::Errc;
using model::fail;
using model::Result;

namespace {

constexpr std::size_t max_chunk_words = 100'000;
constexpr std::size_t max_query_words = 64;
constexpr std::size_t max_term_bytes = 64;
constexpr std::int64_t chunks_a_page = 500;

// A word as the index has it. FTS5's `ascii` tokenizer parts at what is neither letter nor digit in
// ASCII, but for `_`: so that is written as a number, and no word can end what quotes enclose.
std::string term_of(std::string_view word) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string term;
  for (const char c : text::cut(word, max_term_bytes)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        byte >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (plain) {
      term += c;
    } else {
      term += '_';
      term += digits[byte >> 4];
      term += digits[byte & 0xF];
    }
  }
  return term;
}

// What a word and its inflected forms have in common, whatever the language: its beginning. Short
// words, and those of few characters as in Chinese, are only themselves.
std::string_view stem_of(std::string_view word) {
  constexpr std::size_t shortest = 4;
  constexpr std::size_t ending = 2;
  std::vector<std::size_t> begins;  // of the characters
  for (std::size_t at = 0; at < word.size(); at += text::decode(word, at).bytes) {
    begins.push_back(at);
  }
  if (begins.size() <= shortest) return {};
  return word.substr(0, begins[std::max(shortest, begins.size() - ending)]);
}

// The question as an expression of FTS5: all words, the beginnings of the longer ones, and pairs
// that stand together without a blank, which are what parts words of writing without spaces. Any
// of them makes a hit; the rank says how good it is. Empty: the question has no words.
std::string match_of(const std::string& prefix, std::string_view question) {
  const auto words = text::words_of(question, max_query_words);
  std::set<std::string> parts;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string term = prefix + term_of(words[i].text);
    parts.insert('"' + term + '"');
    if (const auto stem = stem_of(text::cut(words[i].text, max_term_bytes)); !stem.empty()) {
      parts.insert('"' + prefix + term_of(stem) + "\"*");
    }
    if (i > 0 && words[i - 1].end == words[i].begin) {
      parts.insert('"' + prefix + term_of(words[i - 1].text) + ' ' + term + '"');
    }
  }
  std::string match;
  for (const auto& part : parts) {
    if (!match.empty()) match += " OR ";
    match += part;
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
    return read(database_, [&](Connection& connection) -> Result<Hits> {
      const Connection::TimeLimit limit(connection, most);
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
    std::vector<KnowledgeHit> hits;
    connection.rows<std::string, std::string, std::string, std::string, std::int64_t>(
        [&](std::string id, std::string source, std::string chunk, std::string data,
            std::int64_t score) {
          hits.push_back(
              {std::move(id), std::move(source), std::move(chunk), std::move(data), score});
        },
        // Texts are read of the best ones only: the inner query sorts no more than numbers and ids.
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
    return hits;
  }

  Database& database_;
};

std::int64_t vocabulary_of(Connection& connection, const std::string& store) {
  connection.run(
      "INSERT INTO knowledge_vocabularies (store_id) VALUES (:s) ON CONFLICT (store_id) DO NOTHING",
      store);
  return *connection.value<std::int64_t>("SELECT n FROM knowledge_vocabularies WHERE store_id = :s",
                                         store);
}

void index_chunk(Connection& connection, const std::string& chunk, const std::string& store,
                 const std::string& content) {
  const std::int64_t vocabulary = vocabulary_of(connection, store);
  const std::string prefix = std::to_string(vocabulary) + '_';
  std::string terms;
  const auto words = text::words_of(content, max_chunk_words);
  for (const auto& word : words) {
    if (!terms.empty()) terms += ' ';
    terms += prefix + term_of(word.text);
  }
  connection.run(
      "INSERT INTO knowledge_terms (chunk_id, vocabulary, term_count, terms)"
      " VALUES (:c, :v, :n, :t)",
      chunk, vocabulary, words.size(), terms);
}

}  // namespace

std::unique_ptr<KnowledgeSearch> make_knowledge_search(Database& database) {
  return std::make_unique<SqliteKnowledgeSearch>(database);
}

void index_knowledge(Connection& connection) {
  struct New {
    std::string chunk, store, content;
  };
  while (true) {
    std::vector<New> page;
    connection.rows<std::string, std::string, std::string>(
        [&](std::string chunk, std::string store, std::string content) {
          page.push_back({std::move(chunk), std::move(store), std::move(content)});
        },
        "SELECT k.id, c.store_id, k.text FROM knowledge_unindexed u"
        " JOIN knowledge_chunks k ON k.id = u.chunk_id"
        " JOIN knowledge_sources c ON c.id = k.source_id LIMIT :l",
        chunks_a_page);
    if (page.empty()) return;
    for (const auto& one : page) {
      index_chunk(connection, one.chunk, one.store, one.content);
      connection.run("DELETE FROM knowledge_unindexed WHERE chunk_id = :c", one.chunk);
    }
  }
}

}  // namespace conversed::store

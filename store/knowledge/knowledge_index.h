#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "store/knowledge/knowledge.h"
#include "store/text/knowledge_words.h"

// The functions that differ in PostgreSQL. For knowledge*.cc only. All throw SqlError.
namespace conversed::store {

// The index of one knowledge store. Its terms begin with the number, so that stores do not mix.
struct Vocabulary {
  std::int64_t number = 0;
  std::int64_t chunks = 0;
  std::int64_t terms = 0;
};

// The best chunks for a question with at least one part.
[[nodiscard]] std::vector<KnowledgeHit> ranked_in_postgres(
    Connection& connection, const Vocabulary& vocabulary, const std::vector<QuestionPart>& question,
    const model::KnowledgeQuery& query);

struct UnindexedChunk {
  std::string id;
  std::string text;
  std::int64_t vocabulary = 0;
};
void index_in_postgres(Connection& connection, std::span<const UnindexedChunk> chunks);

}  // namespace conversed::store

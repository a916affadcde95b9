#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "store/model/effects.h"
#include "store/model/result.h"

namespace conversed::store {

class Connection;
class Database;

// A chunk that answers a question.
struct KnowledgeHit {
  std::string chunk_id;
  std::string source;  // the source's name
  std::string text;
  std::string data;            // JSON text; "null" without data
  std::int64_t score_ppm = 0;  // above 0, below a million: the part of the question that it answers
};

// Search in the chunks of knowledge stores, by SQLite's FTS5 or PostgreSQL's tsvector. Thread-safe;
// blocks on the disk.
//
// Any text is a question, in any language. Its words are searched without regard to case and
// accents; it has no operators. Disabled chunks are not found.
// Kept by: KnowledgeTest.NoTextIsASyntaxError, KnowledgeTest.RandomTextsAreQuestions. Chunks of
// other knowledge stores change neither hits nor ranks.
// Kept by: KnowledgeTest.NothingOfOthersIsFoundOrChangesRanks.
class KnowledgeSearch {
 public:
  // Must outlive it.
  explicit KnowledgeSearch(Database& database) : database_(database) {}

  // The best `query.limit` chunks, best first; equal ranks in the store's order. All committed
  // chunks are found. `not_found`: the project has no store of that name; `timed_out`: the search
  // takes longer than `most`; `unavailable`.
  [[nodiscard]] model::Result<std::vector<KnowledgeHit>> search(
      const std::string& project_id, const model::KnowledgeQuery& query,
      std::chrono::milliseconds most) const;

 private:
  Database& database_;
};

// Adds the words of new and changed chunks to the index, in the open transaction. Triggers note
// each such chunk in `knowledge_unindexed`, so no writer can miss one. Throws SqlError.
// Kept by: KnowledgeTest.TheIndexFollowsDeletedChangedAndDisabledChunks.
void index_knowledge(Connection& connection);

}  // namespace conversed::store

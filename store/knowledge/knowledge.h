#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
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
  std::string source;  // its name
  std::string text;
  std::string data;  // JSON text; "null" when there is none
  std::int64_t score_ppm =
      0;  // above 0, below a million: how much of what was asked is found in it
};

// Search in the chunks of knowledge stores: what each database has of its own. Any text is a
// question: its words are looked for, in any language, whatever their case and accents; nothing in
// it is an operator. Chunks that are switched off are not found. Thread-safe; blocks on the disk.
class KnowledgeSearch {
 public:
  KnowledgeSearch() = default;
  KnowledgeSearch(const KnowledgeSearch&) = delete;
  KnowledgeSearch& operator=(const KnowledgeSearch&) = delete;
  virtual ~KnowledgeSearch() = default;

  // The best `query.limit` chunks, the best one first; of those that are equally good the one that
  // the store lists first. Chunks that were committed before are found. `not_found`: the project
  // has no store of that name; `timed_out`: it takes longer than `most`; `unavailable`.
  [[nodiscard]] virtual model::Result<std::vector<KnowledgeHit>> search(
      const std::string& project_id, const model::KnowledgeQuery& query,
      std::chrono::milliseconds most) const = 0;
};

// By SQLite's FTS5, or PostgreSQL's tsvector. `database` must outlive it.
[[nodiscard]] std::unique_ptr<KnowledgeSearch> make_knowledge_search(Database& database);

// Takes the words of new and changed chunks in, within the transaction that is open. Throws
// SqlError.
void index_knowledge(Connection& connection);

}  // namespace conversed::store

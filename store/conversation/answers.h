#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "store/commit/committer.h"
#include "store/model/result.h"

namespace conversed::store {

// Answers that were given to keyed `POST /{URLToken}` requests, kept by the input's id until they
// expire. Written by the Committer with the Turn they answer. Thread-safe; blocks on the disk.
// Errors: `unavailable`.
class Answers {
 public:
  // Both must outlive it.
  Answers(Database& database, Committer& committer) : database_(database), committer_(committer) {}

  // None if there is none or it has expired at `now`.
  [[nodiscard]] model::Result<std::optional<NewAnswer>> find(const std::string& input_id,
                                                             model::Timestamp now) const;

  // Whether the claim of a keyed event has been consumed.
  [[nodiscard]] model::Result<bool> claimed(const std::string& event_id) const;

  // Deletes expired answers and claims of keyed events from before `claims_before`, up to `limit`
  // of each in one transaction. Returns the larger of the two numbers.
  [[nodiscard]] model::Result<std::int64_t> prune(model::Timestamp now,
                                                  model::Timestamp claims_before,
                                                  std::size_t limit);

 private:
  Database& database_;
  Committer& committer_;
};

}  // namespace conversed::store

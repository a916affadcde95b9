#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "store/committer.h"
#include "store/model/effects.h"
#include "store/model/result.h"

namespace conversed::store {

// Follow-ups that wait for their time. A row is the claim of the follow-up's event: the Turn that
// runs it deletes it, and so does the Turn of a user's message that comes before. Thread-safe;
// blocks on the disk. Errors: `unavailable`, `internal`.
class FollowUps {
 public:
  // Both must outlive it.
  FollowUps(Database& database, Committer& committer)
      : database_(database), committer_(committer) {}

  [[nodiscard]] model::Result<bool> waits(const std::string& id) const;

  // The ones that are due first, behind (`after_due`, `after_id`).
  [[nodiscard]] model::Result<std::vector<model::FollowUp>> by_due(model::Timestamp after_due,
                                                                   const std::string& after_id,
                                                                   std::size_t limit) const;

  [[nodiscard]] model::Result<std::vector<model::FollowUp>> of_session(
      const model::SessionKey& key) const;

  // From here on the output is being delivered and can't be withdrawn. Does not block; `done` is
  // called on the Committer's thread: `not_found` if it was withdrawn before.
  void begin_delivery(const model::SessionKey& key, std::int64_t seq, Committer::WriteDone done);

 private:
  Database& database_;
  Committer& committer_;
};

}  // namespace conversed::store

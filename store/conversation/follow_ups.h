#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/commit/committer.h"
#include "store/commit/rows.h"
#include "store/model/effects.h"
#include "store/model/result.h"

namespace conversed::store {

// Follow-ups that wait for their time. A row is the claim of the follow-up's event. The Turn that
// runs the follow-up deletes the row. So does the Turn of an earlier message of the user.
// Thread-safe; blocks on the disk. Errors: `unavailable`, `internal`.
class FollowUps : Rows {
 public:
  using Rows::Rows;

  [[nodiscard]] model::Result<bool> waits(const std::string& id) const;

  [[nodiscard]] model::Result<std::optional<model::FollowUp>> find(const std::string& id) const;

  [[nodiscard]] model::Result<std::vector<model::FollowUp>> of_session(
      const model::SessionKey& key) const;

  // Marks the output as being delivered: a message of the user no longer withdraws it. Does not
  // block. `done` is called on the Committer's thread, with `not_found` if it was withdrawn before.
  void begin_delivery(const model::SessionKey& key, std::int64_t seq, Committer::WriteDone done);
};

}  // namespace conversed::store

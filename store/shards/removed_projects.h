#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/model/result.h"
#include "store/model/session_keys.h"
#include "store/shards/shard.h"

namespace conversed::store {

// Erases the conversations of deleted projects in all shards: sessions with all their rows,
// profiles, dead letters and kept answers. The first shard knows the deleted projects, and has
// their ended jobs. The project with its parts is gone before (store/assets/project_removal.h). One
// thread at a time; blocks on the disk.
//
// An event that the log still has becomes a dead letter, so a project stays known for `lifetime`.
class RemovedProjects {
 public:
  static constexpr std::chrono::milliseconds lifetime = std::chrono::days(7);

  // Must outlive it.
  explicit RemovedProjects(const Shards& shards) : shards_(shards) {}

  struct Hooks {
    // Ends the erasure between two transactions, if it returns true.
    std::function<bool()> stopped;
    // Whether the log has committed the record at this position. If not, the record's session stays
    // until the next call, because the record would make a new session.
    std::function<bool(const model::Position&)> finished;
    // Frees the Idempotency-Keys of these sessions in the log, before their answers are deleted.
    std::function<model::Result<void>(const model::KeyRange& sessions)> forget_keys{};
  };
  struct Erased {
    std::int64_t sessions = 0;
    std::int64_t rows = 0;  // of all tables

    bool operator==(const Erased&) const = default;
  };
  // Works in transactions of bounded size, and forgets projects that were deleted `lifetime` before
  // `now`, by the wall clock. While a shard fails, it erases in the others, forgets no project and
  // returns the error. After an error, call it again: it goes on. Errors: `unavailable`,
  // `internal`, and those of `forget_keys`, which may be called for each shard.
  // Kept by: RemovedProjectsTest.NothingOfADeletedProjectStays,
  // ShardsTest.ADeletedProjectIsErasedInAllShards.
  [[nodiscard]] model::Result<Erased> erase(const Hooks& hooks, model::Timestamp now);

 private:
  [[nodiscard]] model::Result<void> erase_project(Shard& shard, const std::string& id,
                                                  const Hooks& hooks, Erased& erased);
  [[nodiscard]] static model::Result<void> erase_sessions(Committer& committer,
                                                          const std::string& project_id,
                                                          const Hooks& hooks, Erased& erased);
  [[nodiscard]] model::Result<void> forget(const std::string& id);

  const Shards& shards_;
};

}  // namespace conversed::store

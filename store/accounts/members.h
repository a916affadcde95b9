#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::store {

struct ClusterMember {
  std::string id;   // its name; stays the same from start to start
  std::string run;  // new at each start
  std::vector<std::string> roles;
  std::string version;
  std::vector<std::int32_t> partitions;  // the log's partitions that it owns
  model::Timestamp started_at{};         // by the store's clock, as all times here
  model::Timestamp seen_at{};
};

// A member without a heartbeat for this long has ended. Longer than an interval of heartbeats and
// the 5 s that a heartbeat may wait for the Committer's batch, which may wait for another writer.
inline constexpr std::chrono::milliseconds member_lifetime{8'000};

// The daemons that share a PostgreSQL store. Times are the database server's, so no daemon's clock
// matters. Thread-safe; blocks on the disk. Further errors: `unavailable`, `timed_out`, `internal`.
//
// A name belongs to one run at a time. Kept by: MembersTest.ANameBelongsToOneRunAtATime.
class Members : Rows {
 public:
  using Rows::Rows;

  // The run to which the name belongs.
  struct Holder {
    std::string run;  // empty: the caller's run now has the name
    model::Timestamp seen_at{};
  };
  // Adds the member and sets its times. If another run with a recent heartbeat has its name,
  // returns that run and changes nothing. `previous_run` does not count: the caller knows that it
  // has ended. Part of a start: waits until the store works.
  [[nodiscard]] model::Result<Holder> join(const ClusterMember& member,
                                           const std::string& previous_run);

  [[nodiscard]] model::Result<void> leave(const ClusterMember& member);

  // The members with a recent heartbeat, by name; `now` by the server's clock.
  struct Present {
    model::Timestamp now{};
    std::vector<ClusterMember> members;
  };
  // Writes the member's heartbeat and returns the members, this one included. `conflict` if another
  // run has taken its name. One statement outside of a transaction, which waits for no other
  // daemon's writer. A failure does not change Committer::healthy. `begins` is called on the
  // Committer's thread when the statement begins, which follows the Committer's batch.
  [[nodiscard]] model::Result<Present> beat(const ClusterMember& member,
                                            const std::function<void()>& begins);
};

}  // namespace conversed::store

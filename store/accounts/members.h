#pragma once

#include <chrono>
#include <cstdint>
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
  std::vector<std::int32_t> partitions;  // of the log, that it owns
  model::Timestamp started_at{};         // by the store's clock, as all times here
  model::Timestamp seen_at{};
};

// A member that has not beaten for this long is gone.
inline constexpr std::chrono::milliseconds member_lifetime{5'000};

// The daemons that share the store. Times are the database server's, so no daemon's clock matters.
// Thread-safe; blocks on the disk. Errors beside those named: `unavailable`, `timed_out`,
// `internal`.
//
// One run at a time has a name. Kept by: MembersTest.ANameBelongsToOneRunAtATime.
class Members : Rows {
 public:
  using Rows::Rows;

  // The run that has the name.
  struct Holder {
    std::string run;  // empty: the caller's run has the name now
    model::Timestamp seen_at{};
  };
  // Adds the member and sets its times. If another run that was seen lately has its name, returns
  // that run and does nothing. `previous_run` does not count: the caller knows that it has ended.
  // Part of a start: waits until the store works.
  [[nodiscard]] model::Result<Holder> join(const ClusterMember& member,
                                           const std::string& previous_run);

  // The member is alive. `conflict` if another run has its name meanwhile.
  [[nodiscard]] model::Result<void> beat(const ClusterMember& member);

  [[nodiscard]] model::Result<void> leave(const ClusterMember& member);

  // The members that were seen lately, by name; `now` by the server's clock.
  struct Present {
    model::Timestamp now{};
    std::vector<ClusterMember> members;
  };
  [[nodiscard]] model::Result<Present> present() const;
};

}  // namespace conversed::store

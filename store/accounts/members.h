#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::store {

// A daemon that runs on the store.
struct ClusterMember {
  std::string id;   // its name; stays the same from start to start
  std::string run;  // new at each start
  std::vector<std::string> roles;
  std::string version;
  std::vector<std::int32_t> partitions;  // of the log, that it has now
  model::Timestamp started_at{};         // by the store's clock, as all times here
  model::Timestamp seen_at{};
};

// Who has not said a word for so long is gone.
inline constexpr std::chrono::milliseconds member_lifetime{5'000};

// The daemons that share the store. Times are those of the database's server, so that nobody's own
// clock matters. Thread-safe; blocks on the disk. Errors beside those named: `unavailable`,
// `timed_out`, `internal`.
class Members {
 public:
  // Both must outlive it.
  Members(Database& database, Committer& committer) : database_(database), committer_(committer) {}

  // Somebody who has the name that was asked for.
  struct Holder {
    std::string run;  // empty: nobody has it any more, and it is the caller's now
    model::Timestamp seen_at{};
  };
  // From now on the member is there; its times are set here. If another run that was seen lately
  // has its name, that is returned and nothing is done, unless it is `previous_run`, of which the
  // caller knows that it has ended. Part of a start: waits until the store works.
  [[nodiscard]] model::Result<Holder> join(const ClusterMember& member,
                                           const std::string& previous_run);

  // The member is there still. `conflict` if another run has its name meanwhile.
  [[nodiscard]] model::Result<void> beat(const ClusterMember& member);

  // The member ends.
  [[nodiscard]] model::Result<void> leave(const ClusterMember& member);

  // Those that were seen lately, by their names, at the moment `now`.
  struct Present {
    model::Timestamp now{};
    std::vector<ClusterMember> members;
  };
  [[nodiscard]] model::Result<Present> present() const;

 private:
  Database& database_;
  Committer& committer_;
};

}  // namespace conversed::store

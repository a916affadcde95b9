#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/assets/assets.h"
#include "store/commit/committer.h"
#include "store/model/assets.h"

// Versions of Flows. For .cc files of store/ only.
namespace conversed::store {

struct WantedVersion {
  std::string project_id{};
  std::string name{};
  std::string definition{};
  std::string by{};  // a user's id; empty: no user
  std::optional<std::int64_t> restored_from{};
  NewVersions as = NewVersions::in_effect;  // of a Flow that is there
};

// Returns the version in effect if its definition is the same, else makes a new version. Returns
// the version in a ramp, and for `held` the newest one, if its definition is the same. Makes the
// Flow if it is missing. `conflict` if a new version would be in effect beside a ramp. Throws
// SqlError. Kept by: FlowRamps.RefuseAThirdVersionUnlessItIsHeld.
[[nodiscard]] model::Result<model::FlowVersion> write_flow_version(Writer& writer,
                                                                   const WantedVersion& wanted);

// The version of the Flow's running ramp.
[[nodiscard]] std::optional<std::int64_t> version_in_ramp(Connection& connection,
                                                          const std::string& flow_id);

// The refusal of another version beside a ramp. `name`: the Flow's.
[[nodiscard]] model::Error in_ramp(const std::string& name, std::int64_t version);

// Removes the versions of a project's Flows beyond `kept_flow_versions`, except the version in
// effect, the version in a ramp, and versions to which an execution is pinned. Reads the project's
// busy sessions only if there is a version to remove. Throws SqlError. Kept by:
// FlowVersions.AVersionThatASessionIsPinnedToIsKeptBeyondTheLastTwenty.
//
// Does nothing if sessions are in several shards, since the transaction sees only the first shard's
// sessions. Assets::prune_all_flow_versions removes the versions then.
void prune_flow_versions(Connection& connection, const std::string& project_id);

}  // namespace conversed::store

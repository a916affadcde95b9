#pragma once

#include <cstdint>
#include <optional>
#include <string>

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
};

// Returns the Flow's newest version if its definition is the same, else makes a new version. Makes
// the Flow if it is missing. Throws SqlError.
[[nodiscard]] model::FlowVersion write_flow_version(Writer& writer, const WantedVersion& wanted);

// Removes the versions of a project's Flows beyond `kept_flow_versions`, except versions to which
// an execution is pinned. Reads the project's busy sessions only if there is a version to remove.
// Throws SqlError. Kept by: FlowVersions.AVersionThatASessionIsPinnedToIsKeptBeyondTheLastTwenty.
void prune_flow_versions(Connection& connection, const std::string& project_id);

}  // namespace conversed::store

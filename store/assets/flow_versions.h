#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/commit/committer.h"
#include "store/model/assets.h"

// How Flows get their versions. For the .cc files of this folder only.
namespace conversed::store {

struct WantedVersion {
  std::string project_id{};
  std::string name{};
  std::string definition{};
  std::string by{};  // a user's id; empty: nobody's doing
  std::optional<std::int64_t> restored_from{};
};

// The Flow's newest version if its definition is the same, else a new one; a Flow that is not there
// yet is made. Throws SqlError.
[[nodiscard]] model::FlowVersion write_flow_version(Writer& writer, const WantedVersion& wanted);

// Removes versions beyond the kept ones from the Flows of a project, but for those that a session
// is pinned to. Looks at the project's busy sessions only if there is something to remove. Throws
// SqlError.
void prune_flow_versions(Connection& connection, const std::string& project_id);

}  // namespace conversed::store

#pragma once

#include <string>
#include <vector>

#include "store/assets/removal.h"

// Deletes whole projects, unless something still uses them: see Removals. The transaction deletes
// the project with all its parts, members and knowledge. Its name and URLTokens are free at once.
// RemovedProjects erases the conversations afterwards.
namespace conversed::store {

// The first step: all Flows and Endpoints, and the sessions and follow-ups that use the Endpoints.
[[nodiscard]] model::Result<PartsToDelete> parts_of_project(const Removals& removals,
                                                            const std::string& project_id,
                                                            const FlowReader& reader,
                                                            model::Timestamp now);

// The second step: deletes the project, or returns what uses it. A dry run only returns that. The
// caller calls Assets::grow. Errors: as those of Removals; `conflict`, too, while jobs of the
// project have not ended, or if its list of Flows or Endpoints has changed since the first step.
[[nodiscard]] model::Result<std::vector<PartUsage>> remove_project(Writer& writer,
                                                                   const PartsToDelete& parts,
                                                                   Removals::Mode mode);

}  // namespace conversed::store

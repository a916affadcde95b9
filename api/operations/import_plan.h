#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/operations/standing_sessions.h"
#include "store/assets/removal.h"
#include "store/model/bundle.h"

namespace conversed::api {

// One part of a project, and the change that an import of a bundle makes to it.
struct PlannedPart {
  enum class Change : std::uint8_t { added, changed, unchanged, left_over, deleted };

  std::string part;  // `Flow`, `Endpoint` and so on
  std::string name;
  Change change = Change::unchanged;

  // For a changed or left over Flow: the Nodes at which sessions wait.
  struct Waiting {
    std::string node;
    std::int64_t sessions = 0;
    bool stays = false;  // the sessions wait on; false: they start the Flow again
  };
  std::vector<Waiting> waiting{};
};

[[nodiscard]] std::string_view to_string(PlannedPart::Change change);

// `project` is an export of the present project, with its secrets put in. `removed`: the parts that
// the import deletes. Pure.
[[nodiscard]] std::vector<PlannedPart> import_plan(const model::Bundle& project,
                                                   const model::Bundle& bundle,
                                                   const StandingSessions& sessions,
                                                   const std::vector<store::RemovedPart>& removed);

}  // namespace conversed::api

#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "store/commit/committer.h"
#include "store/model/result.h"

namespace conversed::store {

// Replaces the journey of a project that is set up, also if it is switched off; `definition` as
// Proactive::add_journey takes it. If the definition names a Flow, that Flow follows up silent
// users from now on. A generated Flow stays, since an author may have edited it. Does nothing in a
// project that is not set up.
[[nodiscard]] model::Result<void> replace_journey(Writer& writer, const std::string& project_id,
                                                  const nlohmann::json& definition);

}  // namespace conversed::store

#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "store/commit/committer.h"
#include "store/model/result.h"

namespace conversed::store {

// In a project that is set up, or switched off since, another journey instead of its own;
// `definition` as Proactive::add_journey takes it. Its Flow, where it names one, follows silent
// users up from now on; one that was generated stays, since its author may have edited it. Does
// nothing in a project that is not set up.
[[nodiscard]] model::Result<void> replace_journey(Writer& writer, const std::string& project_id,
                                                  const nlohmann::json& definition);

}  // namespace conversed::store

#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "store/conversation/calls.h"
#include "store/conversation/sessions.h"
#include "store/model/result.h"
#include "store/store.h"

namespace conversed::api {

// The calls, timers and Flow states of a page of sessions. The key is the number of the session's
// row.
struct PageRows {
  std::map<std::int64_t, store::Calls::Shown> running;    // calls and timers of executions
  std::map<std::int64_t, store::Calls::Shown> questions;  // their timers
  std::map<std::int64_t, nlohmann::json> idle;            // the Flow states of sessions at rest
};

// Reads the rows of each session's shard. Errors: those of the store.
[[nodiscard]] model::Result<PageRows> read_page_rows(
    const store::Store& store, const std::vector<store::SessionSummary>& sessions);

}  // namespace conversed::api

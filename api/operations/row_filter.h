#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/openapi/description.h"
#include "api/operation.h"
#include "api/services.h"
#include "store/model/result.h"

// The filter of lists of dead letters and of deliveries, and of the jobs that work on them.
namespace conversed::api {

struct RowFilter {
  std::string project_id;
  std::string endpoint_id{};  // of the project; empty: all
  std::optional<model::SessionKey> session{};
  std::optional<model::Timestamp> created_from{};
  std::optional<model::Timestamp> created_before{};
};

// Reads `projectId`, `URLToken`, `userId`, `sessionId`, `olderThan` and `newerThan` from the query,
// for a principal with conversationAdmin in the project. May block.
[[nodiscard]] model::Result<RowFilter> row_filter(const Call& call, SessionServices& services);
// The parameters that `row_filter` reads, with `more` behind them.
[[nodiscard]] std::vector<openapi::Parameter> row_filter_parameters(
    std::vector<openapi::Parameter> more);

}  // namespace conversed::api

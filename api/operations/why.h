#pragma once

#include <optional>

#include "api/openapi/description.h"
#include "store/model/reason.h"
#include "store/model/result.h"

namespace conversed::api {

// Reasons as the API shows them, the thing's own first.
[[nodiscard]] Value waits_json(const model::Waits& waits);
// Null if they can't be read.
[[nodiscard]] Value waits_json(const model::Result<model::Waits>& waits);
[[nodiscard]] openapi::Schema waits_schema();

// ---- `reason`, which lists filter by

[[nodiscard]] openapi::Parameter reason_parameter(model::Listed list);
// `invalid_argument` for a reason that no entry of the list can have.
[[nodiscard]] model::Result<std::optional<model::Reason>> reason_filter(const Request& request,
                                                                        model::Listed list);
// Whether one of these is the reason. None wanted: yes.
[[nodiscard]] bool has_reason(const model::Waits& waits,
                              const std::optional<model::Reason>& wanted);

}  // namespace conversed::api

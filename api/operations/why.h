#pragma once

#include "api/openapi/schemas.h"
#include "store/model/reason.h"
#include "store/model/result.h"

namespace conversed::api {

// Reasons as the API shows them, the thing's own first.
[[nodiscard]] Value waits_json(const model::Waits& waits);
// Null if they can't be read.
[[nodiscard]] Value waits_json(const model::Result<model::Waits>& waits);
[[nodiscard]] openapi::Schema waits_schema();

}  // namespace conversed::api

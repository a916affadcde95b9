#pragma once

#include "api/openapi/shape.h"
#include "store/conversation/deliveries.h"

namespace conversed::api {

// `state`, `attempts` and `dueAt` of a pending output.
[[nodiscard]] const openapi::Shape<store::PendingDelivery>& delivery_progress();

}  // namespace conversed::api

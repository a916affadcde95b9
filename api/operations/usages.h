#pragma once

#include <string_view>

#include "api/http/http.h"
#include "api/openapi/shape.h"
#include "store/assets/removal.h"
#include "store/model/clock.h"

// The uses of parts of a project that a request wants to delete.
namespace conversed::api {

[[nodiscard]] const openapi::Shape<store::PartUsage>& usage_shape();

// Thread-safe.
[[nodiscard]] const store::FlowReader& flow_reader();

// 409 with the usages in `details.usages`. `refused`: what was not done.
[[nodiscard]] Response still_used(std::string_view refused,
                                  const std::vector<store::PartUsage>& usages,
                                  const ExchangeContext& exchange, model::Timestamp now);

}  // namespace conversed::api

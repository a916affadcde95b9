// Makes the OpenAPI 3.1 document of the API from the table of its operations.
#pragma once

#include <span>
#include <string_view>

#include "api/openapi/schemas.h"
#include "api/operation.h"

namespace conversed::api::openapi {

// The document of these operations, for clients that reach them below `base` ("/new" or nothing).
// Aborts if a row has no description, or two schemas have one name. The table is constant, so the
// first test run finds either defect.
[[nodiscard]] Value document(std::span<const Operation* const> operations, std::string_view base);

// The requests that the daemon sends to an Endpoint's webhook: the path item of a delivery. It has
// to agree with daemon/delivery/webhook.cc and deliverer.cc. It has no named schema.
[[nodiscard]] Value delivery_item();
inline constexpr std::string_view webhooks_tag = "Webhooks";

}  // namespace conversed::api::openapi

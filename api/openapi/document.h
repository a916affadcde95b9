// The OpenAPI 3.1 document of the API, made from the table of its operations.
#pragma once

#include <span>
#include <string_view>

#include "api/openapi/schemas.h"
#include "api/operation.h"

namespace conversed::api::openapi {

// The document of these operations, for clients that reach them below `base` ("/new" or nothing).
// Aborts on a row without a description and on two schemas of one name: the table is constant, so
// either is a defect that no run of the tests survives.
[[nodiscard]] Value document(std::span<const Operation* const> operations, std::string_view base);

// The requests that the daemon sends to an Endpoint's webhook: the path item of an output's
// delivery. It has to agree with daemon/delivery/webhook.cc and deliverer.cc. No schema in it has a
// name.
[[nodiscard]] Value delivery_item();
inline constexpr std::string_view webhooks_tag = "Webhooks";

}  // namespace conversed::api::openapi

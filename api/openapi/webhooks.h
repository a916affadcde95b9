// What the document says of the requests that the daemon sends: an Endpoint's webhook. What it is
// true to is daemon/delivery/webhook.cc and daemon/delivery/deliverer.cc.
#pragma once

#include <string_view>

#include "api/openapi/schemas.h"

namespace conversed::api::openapi {

inline constexpr std::string_view webhooks_tag = "Webhooks";

// The path item of an output's delivery. No schema in it has a name.
[[nodiscard]] Value delivery_item();

}  // namespace conversed::api::openapi

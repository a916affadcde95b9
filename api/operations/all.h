#pragma once

#include <span>

#include "api/operation.h"

namespace conversed::api {

// All operations of the API, in the order of the OpenAPI document.
[[nodiscard]] std::span<const Operation* const> all_operations();

}  // namespace conversed::api

#pragma once

#include <span>

#include "api/operation.h"

// All operations of the API: each file of operations/ has the rows of its own. A new file is
// declared here and named in operations.cc.
namespace conversed::api {

using Operations = std::span<const Operation>;

[[nodiscard]] Operations inject_operations();
[[nodiscard]] Operations message_operations();
[[nodiscard]] Operations outputs_operations();
[[nodiscard]] Operations projects_operations();
[[nodiscard]] Operations proactive_operations();
[[nodiscard]] Operations connections_operations();
[[nodiscard]] Operations knowledge_operations();
[[nodiscard]] Operations tasks_operations();
[[nodiscard]] Operations users_operations();
[[nodiscard]] Operations oauth_authorize_operations();
[[nodiscard]] Operations oauth_token_operations();
[[nodiscard]] Operations bundles_operations();
[[nodiscard]] Operations flows_operations();
[[nodiscard]] Operations api_keys_operations();
[[nodiscard]] Operations oauth_clients_operations();
[[nodiscard]] Operations organisations_operations();
[[nodiscard]] Operations sessions_operations();
[[nodiscard]] Operations dead_letters_operations();
[[nodiscard]] Operations schedules_operations();
[[nodiscard]] Operations audit_operations();
[[nodiscard]] Operations daemon_operations();
[[nodiscard]] Operations console_operations();
[[nodiscard]] Operations users_data_operations();
[[nodiscard]] Operations openapi_operations();

// In the order in which the OpenAPI document has them.
[[nodiscard]] std::span<const Operation* const> all_operations();

}  // namespace conversed::api

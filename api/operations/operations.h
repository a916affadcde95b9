#pragma once

#include <span>

#include "api/operation.h"

// The rows of each file of operations/. Declare a new file here and name it in operations.cc. Users
// of the whole list include all.h, so that a new file does not recompile them.
namespace conversed::api {

using Operations = std::span<const Operation>;

[[nodiscard]] Operations inject_operations();
[[nodiscard]] Operations management_tokens_operations();
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
[[nodiscard]] Operations deletions_operations();
[[nodiscard]] Operations endpoints_operations();
[[nodiscard]] Operations flows_operations();
[[nodiscard]] Operations api_keys_operations();
[[nodiscard]] Operations oauth_clients_operations();
[[nodiscard]] Operations organisations_operations();
[[nodiscard]] Operations sessions_operations();
[[nodiscard]] Operations dead_letters_operations();
[[nodiscard]] Operations receipts_operations();
[[nodiscard]] Operations recordings_operations();
[[nodiscard]] Operations deliveries_operations();
[[nodiscard]] Operations endpoint_health_operations();
[[nodiscard]] Operations schedules_operations();
[[nodiscard]] Operations audit_operations();
[[nodiscard]] Operations daemon_operations();
[[nodiscard]] Operations history_operations();
[[nodiscard]] Operations session_events_operations();
[[nodiscard]] Operations console_operations();
[[nodiscard]] Operations users_data_operations();
[[nodiscard]] Operations why_operations();
[[nodiscard]] Operations openapi_operations();

}  // namespace conversed::api

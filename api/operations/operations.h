#pragma once

#include <span>

#include "api/operation.h"

namespace conversed::api {

// Every operation of the API, each defined in operations/<its file>.cc. Their one array is in
// operations.cc; a new operation is declared here and named there.
extern const Operation inject_operation;
extern const Operation inject_by_token_operation;
extern const Operation notify_operation;
extern const Operation notify_by_token_operation;
extern const Operation message_operation;
extern const Operation outputs_operation;

extern const Operation create_token_operation;
extern const Operation update_member_operation;
extern const Operation set_up_proactive_operation;
extern const Operation delete_connection_operation;
extern const Operation chunk_count_operation;
extern const Operation lexicon_entries_operation;
extern const Operation knowledge_chunks_operation;
extern const Operation list_tasks_operation;
extern const Operation show_task_operation;
extern const Operation cancel_task_operation;
extern const Operation manage_tasks_operation;
extern const Operation manage_task_operation;
extern const Operation manage_cancel_task_operation;

extern const Operation deprecate_password_operation;

extern const Operation oauth_authorize_operation;
extern const Operation oauth_sign_in_operation;
extern const Operation oauth_token_operation;
extern const Operation oauth_revoke_operation;
extern const Operation oauth_metadata_operation;

extern const Operation list_audit_operation;

extern const Operation import_operation;
extern const Operation list_projects_operation;
extern const Operation export_operation;
extern const Operation list_flows_operation;
extern const Operation list_flow_versions_operation;
extern const Operation show_flow_definition_operation;
extern const Operation diff_flow_operation;
extern const Operation roll_back_flow_operation;
extern const Operation list_connections_operation;
extern const Operation connection_usages_operation;
extern const Operation create_api_key_operation;
extern const Operation list_api_keys_operation;
extern const Operation revoke_api_key_operation;
extern const Operation create_user_operation;
extern const Operation list_users_operation;
extern const Operation set_password_operation;
extern const Operation set_user_roles_operation;
extern const Operation remove_user_operation;
extern const Operation create_oauth_client_operation;
extern const Operation list_oauth_clients_operation;
extern const Operation remove_oauth_client_operation;
extern const Operation create_organisation_operation;
extern const Operation list_organisations_operation;
extern const Operation set_organisation_domains_operation;
extern const Operation list_sessions_operation;
extern const Operation show_session_operation;
extern const Operation reset_session_operation;
extern const Operation list_dead_letters_operation;
extern const Operation show_dead_letter_operation;
extern const Operation replay_dead_letter_operation;
extern const Operation discard_dead_letter_operation;
extern const Operation management_inject_operation;
extern const Operation create_schedule_operation;
extern const Operation list_schedules_operation;
extern const Operation show_schedule_operation;
extern const Operation cancel_schedule_operation;
extern const Operation reschedule_operation;
extern const Operation list_timers_operation;
extern const Operation cancel_timer_operation;
extern const Operation reschedule_timer_operation;
extern const Operation show_proactive_operation;
extern const Operation switch_proactive_operation;
extern const Operation status_operation;
extern const Operation console_operation;
extern const Operation management_operation;
extern const Operation management_folder_operation;
extern const Operation back_up_operation;
extern const Operation rotate_key_operation;
extern const Operation export_user_data_operation;
extern const Operation erase_user_data_operation;

extern const Operation openapi_json_operation;
extern const Operation openapi_yaml_operation;

[[nodiscard]] std::span<const Operation* const> all_operations();

}  // namespace conversed::api

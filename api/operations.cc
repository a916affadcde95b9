#include "api/operations.h"

#include <array>

namespace conversed::api {
namespace {

constexpr std::array operations{
    &inject_operation,
    &inject_by_token_operation,
    &notify_operation,
    &notify_by_token_operation,
    &message_operation,
    &outputs_operation,
    &create_token_operation,
    &update_member_operation,
    &set_up_proactive_operation,
    &delete_connection_operation,
    &chunk_count_operation,
    &lexicon_entries_operation,
    &knowledge_chunks_operation,
    &list_tasks_operation,
    &show_task_operation,
    &cancel_task_operation,
    &deprecate_password_operation,
    &oauth_authorize_operation,
    &oauth_sign_in_operation,
    &oauth_token_operation,
    &oauth_revoke_operation,
    &import_operation,
    &list_projects_operation,
    &export_operation,
    &list_flows_operation,
    &list_flow_versions_operation,
    &show_flow_definition_operation,
    &diff_flow_operation,
    &roll_back_flow_operation,
    &list_connections_operation,
    &connection_usages_operation,
    &create_api_key_operation,
    &list_api_keys_operation,
    &revoke_api_key_operation,
    &create_user_operation,
    &list_users_operation,
    &set_password_operation,
    &create_oauth_client_operation,
    &list_oauth_clients_operation,
    &remove_oauth_client_operation,
    &create_organisation_operation,
    &list_organisations_operation,
    &list_sessions_operation,
    &show_session_operation,
    &reset_session_operation,
    &list_dead_letters_operation,
    &show_dead_letter_operation,
    &replay_dead_letter_operation,
    &discard_dead_letter_operation,
    &management_inject_operation,
    &create_schedule_operation,
    &list_schedules_operation,
    &show_schedule_operation,
    &cancel_schedule_operation,
    &reschedule_operation,
    &list_audit_operation,
    &list_timers_operation,
    &cancel_timer_operation,
    &reschedule_timer_operation,
    &show_proactive_operation,
    &switch_proactive_operation,
    &manage_tasks_operation,
    &manage_task_operation,
    &manage_cancel_task_operation,
    &status_operation,
    &console_operation,
    &back_up_operation,
    &rotate_key_operation,
    &export_user_data_operation,
    &erase_user_data_operation,
    &openapi_json_operation,
    &openapi_yaml_operation,
};

}  // namespace

std::span<const Operation* const> all_operations() {
  return operations;
}

}  // namespace conversed::api

#include "api/operations/operations.h"

#include <vector>

#include "api/operations/all.h"

namespace conversed::api {

std::span<const Operation* const> all_operations() {
  static const auto all = [] {
    std::vector<const Operation*> operations;
    for (const Operations rows : {inject_operations(),         message_operations(),
                                  outputs_operations(),        projects_operations(),
                                  proactive_operations(),      connections_operations(),
                                  knowledge_operations(),      tasks_operations(),
                                  users_operations(),          oauth_authorize_operations(),
                                  oauth_token_operations(),    bundles_operations(),
                                  endpoints_operations(),      flows_operations(),
                                  deletions_operations(),      api_keys_operations(),
                                  oauth_clients_operations(),  organisations_operations(),
                                  sessions_operations(),       dead_letters_operations(),
                                  deliveries_operations(),     endpoint_health_operations(),
                                  schedules_operations(),      audit_operations(),
                                  daemon_operations(),         console_operations(),
                                  users_data_operations(),     why_operations(),
                                  openapi_operations(),        history_operations(),
                                  session_events_operations(), receipts_operations(),
                                  recordings_operations(),     management_tokens_operations()}) {
      for (const Operation& row : rows) operations.push_back(&row);
    }
    return operations;
  }();
  return all;
}

}  // namespace conversed::api

#pragma once

#include <string_view>

// The statements that find due rows. Tests show that each reads a range of an index. For the .cc
// files of this folder and their tests.
namespace conversed::store {

// Reads one row per session, for any number of its deliveries.
inline constexpr std::string_view sql_of_due_sessions =
    "SELECT d.session, (SELECT key FROM sessions WHERE id = d.session), d.due_at, d.attempts"
    " FROM deliveries d WHERE d.endpoint_id = :e AND (d.due_at, d.session) > (:d, :r)"
    " GROUP BY d.due_at, d.session, d.attempts ORDER BY d.due_at, d.session, d.attempts LIMIT :l";

inline constexpr std::string_view sql_of_due_calls =
    "SELECT c.id, s.key, c.try_at FROM pending_calls c JOIN sessions s ON s.id = c.session"
    " WHERE c.project_id = :p AND c.target = :t AND c.appended = 0"
    " AND (c.try_at, c.id) > (:d, :i) ORDER BY c.try_at, c.id LIMIT :l";

inline constexpr std::string_view sql_of_next_lane =
    "SELECT project_id, target, try_at FROM pending_calls WHERE target IS NOT NULL AND appended = 0"
    " AND (project_id, target) > (:p, :t) ORDER BY project_id, target, try_at, id LIMIT 1";

inline constexpr std::string_view sql_of_next_project =
    "SELECT project_id, target, try_at FROM pending_calls WHERE target IS NOT NULL AND appended = 0"
    " AND project_id > :p ORDER BY project_id, target, try_at, id LIMIT 1";

inline constexpr std::string_view sql_of_due_timers =
    "SELECT due_at, id FROM pending_calls WHERE due_at IS NOT NULL AND appended = 0"
    " AND (due_at, id) > (:d, :i) ORDER BY due_at, id LIMIT :l";

inline constexpr std::string_view sql_of_due_follow_ups =
    "SELECT due_at, id FROM follow_ups WHERE appended = 0"
    " AND (due_at, id) > (:d, :i) ORDER BY due_at, id LIMIT :l";

inline constexpr std::string_view sql_of_due_schedules =
    "SELECT due_at, claim FROM schedules WHERE appended = 0"
    " AND (due_at, claim) > (:d, :i) ORDER BY due_at, claim LIMIT :l";

}  // namespace conversed::store

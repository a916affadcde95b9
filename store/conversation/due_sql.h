#pragma once

#include <string_view>

// The statements that find due rows. Tests show that each reads a range of an index. For the .cc
// files of this folder and their tests.
namespace conversed::store {

// Steps from session to session. All rows of a session have the same due time and attempts, so one
// row per session is enough.
// Kept by: DueSessionsCostTest.SessionWithAnyNumberOfOutputsCostsTheSame.
inline constexpr std::string_view sql_of_due_sessions =
    "WITH RECURSIVE due (n, endpoint_id, due_at, session) AS ("
    " SELECT 0, :e, :d, :r"
    " UNION ALL SELECT due.n + 1, due.endpoint_id,"
    " (SELECT d.due_at FROM deliveries d WHERE d.endpoint_id = due.endpoint_id"
    " AND (d.due_at, d.session) >= (due.due_at, due.session + 1)"
    " ORDER BY d.due_at, d.session LIMIT 1),"
    " (SELECT d.session FROM deliveries d WHERE d.endpoint_id = due.endpoint_id"
    " AND (d.due_at, d.session) >= (due.due_at, due.session + 1)"
    " ORDER BY d.due_at, d.session LIMIT 1)"
    " FROM due WHERE due.n < :l AND due.session IS NOT NULL)"
    " SELECT due.session, s.key, due.due_at,"
    " (SELECT d.attempts FROM deliveries d WHERE d.session = due.session LIMIT 1)"
    " FROM due JOIN sessions s ON s.id = due.session WHERE due.n > 0 ORDER BY due.n";

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

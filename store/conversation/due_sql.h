#pragma once

#include <string_view>

// The statements that find due rows. Tests show that each reads a range of an index. For the .cc
// files of the store and their tests.
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
    " (SELECT d.attempts FROM deliveries d WHERE d.session = due.session ORDER BY d.seq LIMIT 1)"
    " FROM due JOIN sessions s ON s.id = due.session WHERE due.n > 0 ORDER BY due.n";

// The pending outputs of a session behind one of them. CROSS JOIN makes SQLite begin with
// `deliveries`.
inline constexpr std::string_view sql_of_session_deliveries =
    "SELECT d.seq, d.output_id, d.due_at, d.attempts, o.created_at, o.trace_id"
    " FROM deliveries d CROSS JOIN outputs o WHERE d.session = :s AND d.seq > :q"
    " AND o.session = d.session AND o.seq = d.seq ORDER BY d.seq LIMIT :l";

// A session's version, with the tries of its first delivery and of its call.
inline constexpr std::string_view sql_of_session_mark =
    "SELECT s.version, d.seq, d.attempts, d.due_at, c.attempts, c.try_at FROM sessions s"
    " LEFT JOIN deliveries d ON d.session = s.id"
    " AND d.seq = (SELECT MIN(f.seq) FROM deliveries f WHERE f.session = s.id)"
    " LEFT JOIN pending_calls c ON c.session = s.id AND c.try_at IS NOT NULL"
    " WHERE s.key = :k LIMIT 1";

// One of the session's pending outputs.
inline constexpr std::string_view sql_of_delivery =
    "SELECT d.session, s.key, d.seq, d.due_at, d.attempts, o.created_at, o.trace_id"
    " FROM deliveries d CROSS JOIN sessions s CROSS JOIN outputs o WHERE d.session = :s"
    " AND d.output_id = :o AND s.id = d.session AND o.session = d.session AND o.seq = d.seq";

// The session of a pending output in a range of ids, among the pending outputs of the newest
// sessions. An index of ids would cost each event 8,000 instructions, and operators ask rarely.
inline constexpr std::string_view sql_of_pending_session =
    "SELECT session FROM (SELECT session, output_id FROM deliveries"
    " ORDER BY session DESC, seq DESC LIMIT 10000) AS newest"
    " WHERE output_id >= :f AND output_id < :t LIMIT 1";

// A walk over the pending outputs of a project. The first statement finds the last session of a
// step, the second one the sessions of the step that have pending outputs.
inline constexpr std::string_view sql_of_last_session =
    "SELECT MAX(id) FROM (SELECT id FROM sessions WHERE project_id = :p AND id >= :s AND id <= :u"
    " ORDER BY id LIMIT :l) AS part";
inline constexpr std::string_view sql_of_sessions_with_deliveries =
    "SELECT s.id, s.key FROM sessions s WHERE s.project_id = :p AND s.id >= :s AND s.id <= :u"
    " AND EXISTS (SELECT 1 FROM deliveries d WHERE d.session = s.id) ORDER BY s.id LIMIT :l";

// Those of the listed Endpoints that have pending outputs.
inline constexpr std::string_view sql_of_endpoints_with_deliveries =
    "SELECT e.value FROM json_each(:p) e WHERE e.value >= :a"
    " AND EXISTS (SELECT 1 FROM deliveries d WHERE d.endpoint_id = e.value) ORDER BY e.value";

// Where an event waits. CROSS JOIN as above.
inline constexpr std::string_view sql_of_inbox_event =
    "SELECT i.session, i.n, s.key, i.type, i.trace_id, i.value FROM inbox i CROSS JOIN sessions s"
    " WHERE i.event_id = :e AND s.id = i.session";

// The call or timer that an execution waits for: its id begins with the input's.
inline constexpr std::string_view sql_of_execution_call =
    "SELECT id FROM pending_calls WHERE id > :i || '-c' AND id < :j || '-d' AND time_out = 0"
    " ORDER BY id LIMIT 1";

// Whether an output of the session fits a pattern. For EXISTS, PostgreSQL would read the outputs of
// all sessions into a hash table.
// Kept by: PostgresTest.SearchOfListedSessionsReadsTheirOutputsAlone.
inline constexpr std::string_view sql_of_fitting_output =
    "(SELECT 1 FROM outputs WHERE session = sessions.id AND LOWER(text) LIKE :x ESCAPE '!' LIMIT 1)"
    " IS NOT NULL";

// The columns that pages show of the calls, timers and time-outs of several sessions, and of a
// single one of them.
inline constexpr std::string_view sql_of_calls_of_sessions =
    "SELECT session, id, due_at, time_out, attempts, try_at, upstream, retries, time_limit"
    " FROM pending_calls"
    " WHERE session IN (SELECT CAST(value AS BIGINT) FROM json_each(:s)) ORDER BY session, id";
inline constexpr std::string_view sql_of_idle_flow_states =
    "SELECT id, flow_state FROM sessions WHERE execution IS NULL"
    " AND id IN (SELECT CAST(value AS BIGINT) FROM json_each(:s))";
inline constexpr std::string_view sql_of_shown_call =
    "SELECT session, id, due_at, time_out, attempts, try_at, upstream, retries, time_limit"
    " FROM pending_calls WHERE id = :i";

// The dead letters of an event, and of the events that its execution caused: their ids begin with
// the event's id.
inline constexpr std::string_view sql_of_dead_letters_of_event =
    "SELECT id, n, key, event_id, type, trace_id, value, output_seq, attempts, reason, flow,"
    " flow_version, node, state, created_at FROM dead_letters WHERE event_id >= :e AND event_id < "
    ":f || '.'"
    " ORDER BY event_id DESC, n DESC LIMIT :l";

// The first of the session's pending outputs in a range of ids.
inline constexpr std::string_view sql_of_input_delivery =
    "SELECT output_id FROM deliveries WHERE session = :s AND output_id >= :f AND output_id < :t"
    " ORDER BY seq LIMIT 1";

// The rows of counts, for which an index is enough.
// Kept by: WaitingTest.CountsReadIndexesAlone.
inline constexpr std::string_view sql_of_new_letters =
    "SELECT 1 FROM dead_letters WHERE state = 'new'";
inline constexpr std::string_view sql_of_pending_deliveries = "SELECT 1 FROM deliveries";
inline constexpr std::string_view sql_of_inbox_events = "SELECT 1 FROM inbox";
inline constexpr std::string_view sql_of_oldest_inbox_event = "SELECT MIN(event_id) FROM inbox";
inline constexpr std::string_view sql_of_running_calls =
    "SELECT 1 FROM pending_calls WHERE time_out = 0";

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

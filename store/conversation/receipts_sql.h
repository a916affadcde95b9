#pragma once

#include <string_view>

// The statements that read and delete receipts. Tests show that each reads a range of an index. For
// the .cc files of this folder and their tests.
namespace conversed::store {

inline constexpr std::string_view sql_of_receipt_event =
    "SELECT r.input_id FROM receipts r JOIN sessions s ON s.id = r.session"
    " WHERE r.input_id = :i AND s.project_id = :p ORDER BY r.n LIMIT 1";

inline constexpr std::string_view sql_of_found_receipts =
    "SELECT r.input_id FROM receipts r JOIN sessions s ON s.id = r.session"
    " WHERE r.found_by = :f AND s.project_id = :p ORDER BY r.input_id LIMIT :l";

inline constexpr std::string_view sql_of_receipt_rows =
    "SELECT n, session, written_at, found_by, previous, body FROM receipts"
    " WHERE input_id = :i AND n > 0 ORDER BY n LIMIT :l";

// The number of events with this id in the session's inbox is the last column.
inline constexpr std::string_view sql_of_receipt_session =
    "SELECT s.key, s.execution, s.inbox_size,"
    " (SELECT COUNT(*) FROM inbox i WHERE i.session = s.id AND i.event_id = :e)"
    " FROM sessions s WHERE s.id = :s";

inline constexpr std::string_view sql_of_receipt_outputs =
    "SELECT o.output_id, o.seq, o.created_at, d.due_at FROM outputs o"
    " LEFT JOIN deliveries d ON d.session = o.session AND d.seq = o.seq"
    " WHERE o.session = :s AND o.seq >= :f AND o.seq < :t AND o.input_id = :i"
    " ORDER BY o.seq LIMIT :l";

// CROSS JOIN makes SQLite begin with the sessions.
inline constexpr std::string_view sql_of_newest_receipts =
    "SELECT r.input_id, r.body FROM (SELECT id, last_receipt FROM sessions WHERE project_id = :p"
    " ORDER BY id DESC LIMIT :s) AS newest CROSS JOIN receipts r"
    " WHERE r.input_id = newest.last_receipt AND r.n > 0 ORDER BY newest.id DESC, r.n LIMIT :l";

inline constexpr std::string_view sql_of_old_receipts =
    "DELETE FROM receipts WHERE (input_id, n) IN (SELECT input_id, n FROM receipts"
    " WHERE input_id < :i ORDER BY input_id, n LIMIT :l)";

// The events of a session's receipts. The condition on the session ends a walk into another one.
inline constexpr std::string_view sql_of_receipt_chain =
    "WITH RECURSIVE chain (id, session) AS ("
    " SELECT last_receipt || '', id FROM sessions WHERE id = :s"
    " UNION SELECT r.previous || '', chain.session FROM chain"
    " JOIN receipts r ON r.input_id = chain.id AND r.n = 1 WHERE r.session = chain.session)"
    " SELECT id FROM chain WHERE id <> ''";

}  // namespace conversed::store
